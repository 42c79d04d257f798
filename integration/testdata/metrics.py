"""Writes metrics.json: the metrics of scikit-learn's models on public data, which TestMetricsAreScikitLearns compares
Volley's with. Each model minimizes the same objective, to its machine's precision. Run it as

    python3 integration/testdata/metrics.py DATA > integration/testdata/metrics.json

where DATA has the directories a1a, a9a, and so on. Made with scikit-learn 1.9."""
import gzip, io, json, sys, warnings

import numpy as np
from sklearn import metrics as m
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import Lasso, LogisticRegression, Ridge

warnings.filterwarnings("ignore")
ROOT = sys.argv[1] + "/"

# name, job, training data, data to measure by (empty: the same), penalty
TABLE = [
    ("a1a", "logistic", "a1a/a1a", "", 1e-3),
    ("a5a", "logistic", "a1a/a5a", "", 1e-3),
    ("a9a", "logistic", "a9a/a9a.gz", "a9a/a9a.t.gz", 1e-4),
    ("agaricus", "logistic", "agaricus/agaricus.txt.train", "agaricus/agaricus.txt.test", 1e-2),
    ("breast-cancer", "logistic", "breast-cancer/breast-cancer", "", 1e-2),
    ("heart", "logistic", "heart_scale/heart_scale", "", 1e-2),
    ("mushrooms", "logistic", "mushrooms/mushrooms", "", 1e-2),
    ("pendigits", "softmax", "pendigits/pendigits", "pendigits/pendigits", 1e-1),
    ("housing", "ridge", "housing/housing_scale", "", 1e-2),
    ("housing, lasso", "lasso", "housing/housing_scale", "", 1e-1),
    ("california", "ridge", "cal_housing/cal_housing.data.gz", "", 1e-1),
    ("california, lasso", "lasso", "cal_housing/cal_housing.data.gz", "", 1e3),
]


def load(path, features=None):
    if ".data" in path:
        table = np.loadtxt(gzip.open(ROOT + path), delimiter=",")
        return table[:, :-1], table[:, -1]
    raw = gzip.open(ROOT + path).read() if path.endswith(".gz") else open(ROOT + path, "rb").read()
    return load_svmlight_file(io.BytesIO(raw), n_features=features)


def classified(model, x, y):
    p, said = model.predict_proba(x), model.predict(x)
    out = {"accuracy": m.accuracy_score(y, said), "log_loss": m.log_loss(y, p, labels=model.classes_)}
    if p.shape[1] == 2:
        one = (y == model.classes_[1]).astype(int)
        s = (said == model.classes_[1]).astype(int)
        out.update(auc=m.roc_auc_score(one, p[:, 1]), pr_auc=m.average_precision_score(one, p[:, 1]),
                   precision=m.precision_score(one, s), recall=m.recall_score(one, s), f1=m.f1_score(one, s))
    else:
        out.update(auc=m.roc_auc_score(y, p, multi_class="ovr"), precision=m.precision_score(y, said, average="macro"),
                   recall=m.recall_score(y, said, average="macro"), f1=m.f1_score(y, said, average="macro"),
                   balanced_accuracy=m.balanced_accuracy_score(y, said))
    return out


def main():
    out = []
    for name, job, train, test, reg in TABLE:
        x, y = load(train)
        n = len(y)
        if job in ("logistic", "softmax"):
            model = LogisticRegression(C=1 / (reg * n), tol=1e-12, max_iter=100000,
                                       solver="newton-cg" if job == "logistic" else "lbfgs")
        else:
            x = x if isinstance(x, np.ndarray) else x.toarray()
        if job == "ridge":
            # Volley's mean of half squares plus reg / 2 of the weights' squares
            model = Ridge(alpha=reg * n, tol=1e-14, solver="cholesky")
        elif job == "lasso":
            model = Lasso(alpha=reg, tol=1e-14, max_iter=1000000)
        model.fit(x, y)
        if test:
            x, y = load(test, x.shape[1])
        if job in ("logistic", "softmax"):
            values = classified(model, x, y)
        else:
            said = model.predict(x)
            values = {"rmse": m.root_mean_squared_error(y, said), "mae": m.mean_absolute_error(y, said),
                      "r2": m.r2_score(y, said)}
        out.append({"name": name, "job": job, "train": train, "test": test, "reg": reg, "metrics": values})
    print("[" + ",\n ".join(json.dumps(o) for o in out) + "]")


main()
