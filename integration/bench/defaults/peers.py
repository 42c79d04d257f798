#!/usr/bin/env python3
"""Measure other libraries with their defaults on the files that `go run ./integration/bench/defaults -write DIR` has
written, and keep the metrics of the test rows in peers.json beside this file.

    peers.py DIR [--only TEXT] [--systems sklearn,spark,cmfrec]

Needs scikit-learn, pandas, cmfrec, pyspark and Java; the product needs none of them. Every estimator has its
defaults alone, rows as they are in the files. What draws lots is run with seeds 0, 1 and 2, and the median kept.
"""
import argparse
import json
import os
import statistics
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import LinearSVC

FIGURES = Path(__file__).resolve().parent / "peers.json"
SEEDS = (0, 1, 2)
warnings.filterwarnings("ignore")


def points(entry):
    """Train and test rows: sparse of LIBSVM, dense of tables with the label in front."""
    if "libsvm" in entry["Train"] or not entry["Train"].endswith(".csv"):
        x, y = load_svmlight_file(entry["Train"])
        tx, ty = load_svmlight_file(entry["Test"], n_features=None)
        d = max(x.shape[1], tx.shape[1])
        return narrow(x, d), y, narrow(tx, d), ty
    head = None if entry["Label"] else 0
    a, b = (pd.read_csv(entry[k], header=head).to_numpy(float) for k in ("Train", "Test"))
    return a[:, 1:], a[:, 0], b[:, 1:], b[:, 0]


def narrow(x, d):
    """The rows with d columns and indices of 32 bits, which LIBLINEAR wants."""
    return csr_matrix((x.data, x.indices.astype(np.int32), x.indptr.astype(np.int32)), (x.shape[0], d))


def median(run):
    return statistics.median(run(seed) for seed in SEEDS)


def sklearn_figure(entry, trial):
    score = accuracy_score if trial["Metric"] == "accuracy" else r2_score
    x, y, tx, ty = points(entry)
    fit = lambda model: float(score(ty, model.fit(x, y).predict(tx)))
    fixed = {"logistic": LogisticRegression, "softmax": LogisticRegression, "linear": LinearRegression,
             "ridge": Ridge, "lasso": Lasso, "elasticnet": ElasticNet}
    if trial["Job"] in fixed:
        return fit(fixed[trial["Job"]]())
    drawn = {"svm": LinearSVC, "mlp": MLPRegressor if score is r2_score else MLPClassifier}
    if trial["Job"] in drawn:
        return median(lambda seed: fit(drawn[trial["Job"]](random_state=seed)))
    return None


def likes(entry):
    train, test = (pd.read_csv(entry[k]) for k in ("Train", "Test"))
    known = test.user.isin(set(train.user)) & test.item.isin(set(train.item))
    return train, test[known]


def rmse(predicted, test):
    return float(np.sqrt(np.mean((np.asarray(predicted) - test.rating.to_numpy()) ** 2)))


def ndcg(users, items, scores, train, test, k=10):
    """Mean over test users of the gain of the k best items that they have no training row of."""
    at_user, at_item = ({v: i for i, v in enumerate(s)} for s in (users, items))
    scores = np.array(scores, float)
    scores[train.user.map(at_user), train.item.map(at_item)] = -np.inf
    gains = []
    for user, rows in test[test.rating > 0].groupby("user"):
        wanted = {at_item[i] for i in rows.item}
        best = np.argsort(-scores[at_user[user]], kind="stable")[:k]
        worth = 1 / np.log2(np.arange(k) + 2)
        gains.append(sum(w for w, i in zip(worth, best) if i in wanted) / worth[:len(wanted)].sum())
    return float(np.mean(gains))


def cmfrec_figure(entry, trial):
    from cmfrec import CMF, CMF_implicit
    train, test = likes(entry)
    names = {"user": "UserId", "item": "ItemId", "rating": "Rating"}
    frame = lambda rows: rows.rename(columns=names)[list(names.values())]
    users, items = np.sort(train.user.unique()), np.sort(train.item.unique())

    def run(seed):
        if trial["Metric"] == "rmse":
            model = CMF(random_state=seed, verbose=False).fit(frame(train))
            return rmse(model.predict(test.user, test.item), test)
        model = CMF_implicit(random_state=seed, verbose=False).fit(frame(train))
        every = model.predict(np.repeat(users, len(items)), np.tile(items, len(users)))
        return ndcg(users, items, every.reshape(len(users), -1), train, test)
    return median(run)


def spark_session():
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession
    spark = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g")
    spark = spark.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "4").config("spark.driver.maxResultSize", "2g").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def frames(spark, x, y):
    """A data frame of label and features."""
    from pyspark.ml.linalg import Vectors
    if hasattr(x, "tocsr"):
        x = x.tocsr()
        x.sum_duplicates()
        part = lambda i: slice(x.indptr[i], x.indptr[i + 1])
        rows = [(float(y[i]), Vectors.sparse(x.shape[1], x.indices[part(i)], x.data[part(i)])) for i in range(x.shape[0])]
    else:
        rows = [(float(v), Vectors.dense(r)) for v, r in zip(y, x)]
    return spark.createDataFrame(rows, ["label", "features"]).cache()


def spark_ratings(spark, entry, trial):
    from pyspark.ml.recommendation import ALS
    train, test = likes(entry)
    users, items = np.sort(train.user.unique()), np.sort(train.item.unique())
    data = spark.createDataFrame(train[["user", "item", "rating"]].astype({"rating": "float32"})).cache()

    def run(seed):
        model = ALS(userCol="user", itemCol="item", ratingCol="rating", seed=seed, implicitPrefs=trial["Metric"] != "rmse")
        model = model.fit(data)
        vectors = lambda f: np.array([r.features for r in f.orderBy("id").collect()])
        scores = vectors(model.userFactors) @ vectors(model.itemFactors).T
        if trial["Metric"] != "rmse":
            return ndcg(users, items, scores, train, test)
        return rmse(scores[np.searchsorted(users, test.user), np.searchsorted(items, test.item)], test)
    return median(run)


def spark_figure(spark, entry, trial):
    from pyspark.ml.classification import LinearSVC as SparkSVC, LogisticRegression as SparkLogistic
    from pyspark.ml.regression import LinearRegression as SparkLinear
    if trial["Job"] == "als":
        return spark_ratings(spark, entry, trial)
    model = {"logistic": SparkLogistic, "softmax": SparkLogistic, "svm": SparkSVC, "linear": SparkLinear}.get(trial["Job"])
    if model is None:  # its ridge and lasso are LinearRegression, penalty 0; its networks have no default layers
        return None
    x, y, tx, ty = points(entry)
    values = np.unique(y)
    regression = trial["Metric"] == "r2"
    coded = (lambda v: v) if regression else (lambda v: np.searchsorted(values, v))
    fitted = model().fit(frames(spark, x, coded(y)))
    tested = fitted.transform(frames(spark, tx, coded(ty))).select("prediction").collect()
    said = np.array([r.prediction for r in tested])
    return float(r2_score(ty, said) if regression else accuracy_score(coded(ty), said))


def figure(system, spark, entry, trial):
    ratings = trial["Job"] == "als"
    if system == "cmfrec":
        return cmfrec_figure(entry, trial) if ratings else None
    if system == "spark":
        return spark_figure(spark, entry, trial)
    return None if ratings else sklearn_figure(entry, trial)


def keep(name, trial, system, value):
    kept = json.loads(FIGURES.read_text())
    kept["figures"].setdefault(name, {}).setdefault(trial, {})[system] = value
    kept["versions"][system] = version(system)
    FIGURES.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("dir", type=Path)
    parse.add_argument("--only", default="")
    parse.add_argument("--systems", default="sklearn,spark,cmfrec")
    args = parse.parse_args()
    systems = args.systems.split(",")
    names = {"sklearn": "scikit-learn", "spark": "pyspark", "cmfrec": "cmfrec"}
    spark = spark_session() if "spark" in systems else None
    for entry in json.loads((args.dir / "sets.json").read_text()):
        for trial in entry["Trials"]:
            if args.only not in f"{entry['Name']} {trial['Name']}":
                continue
            for system in systems:
                try:
                    value = figure(system, spark, entry, trial)
                except Exception as e:  # a peer that cannot take the data has no figure
                    print(entry["Name"], trial["Name"], system, "failed:", str(e).splitlines()[0], flush=True)
                    continue
                if value is None:
                    continue
                keep(entry["Name"], trial["Name"], names[system], value)
                print(entry["Name"], trial["Name"], system, value, flush=True)


if __name__ == "__main__":
    main()
