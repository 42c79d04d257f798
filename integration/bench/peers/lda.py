"""Topics of tomotopy, MALLET or Spark, held against documents that they were not trained on.

usage: lda.py tomotopy|mallet|spark_em|spark_online TRAIN TEST VOCABULARY_SIZE TOPICS ITERATIONS [SEED…]

TRAIN and TEST are in the format of lda-c. The perplexity is that of volley run lda --test: a test document's tokens are
dealt out to two halves in turn, the mixture of topics is made of the first, and the second is foretold. The first two
begin with alphas of 0.1 and betas of 0.01, make alphas better every tenth iteration, and have two workers. Spark has two
threads and its own priors; an iteration of its online solver is a twentieth of the documents, so that it makes twenty
times as many. A line of JSON is printed for each seed. Needs pip install tomotopy numpy pyspark, and Java; for MALLET
Maven, which fetches it.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np


def documents(path):
    with open(path) as lines:
        return [[tuple(map(int, pair.split(":"))) for pair in line.split()[1:]] for line in lines]


def halves(document):
    first, second, turn = [], [], 0
    for word, count in document:
        one = (count + 1 - turn) // 2
        if one:
            first.append((word, one))
        if count > one:
            second.append((word, count - one))
        turn = (turn + count) % 2
    return first, second


def mixture(share, counts, alpha):
    mix = alpha / alpha.sum()
    for _ in range(50):
        of = mix[:, None] * share
        mix = (alpha + (of / of.sum(0) * counts).sum(1)) / (alpha.sum() + counts.sum())
    return mix


def tomotopy(train, vocabulary, topics, iterations, seed):
    """Returns the words' shares in topics, the topics' alphas, and the seconds of training."""
    import tomotopy

    model = tomotopy.LDAModel(k=topics, alpha=0.1, eta=0.01, seed=seed)
    for document in documents(train):
        model.add_doc([str(word) for word, count in document for _ in range(count)])
    began = time.time()
    model.train(iterations, workers=2)
    took = time.time() - began
    counts = np.array(model.get_count_by_topics())
    share = np.repeat((0.01 / (counts + vocabulary * 0.01))[:, None], vocabulary, 1)
    known = np.array([int(w) for w in model.used_vocabs])
    for k in range(topics):
        share[k, known] = model.get_topic_word_dist(k)
    return share, np.array(model.alpha), took


POM = """<project><modelVersion>4.0.0</modelVersion><groupId>p</groupId><artifactId>p</artifactId><version>1</version>
<dependencies><dependency><groupId>cc.mallet</groupId><artifactId>mallet</artifactId><version>2.0.8</version>
</dependency></dependencies></project>"""


def mallet(train, vocabulary, topics, iterations, seed):
    folder = tempfile.mkdtemp()
    path = lambda name: os.path.join(folder, name)
    with open(path("pom.xml"), "w") as pom:
        pom.write(POM)
    subprocess.run(["mvn", "-q", "-f", path("pom.xml"), "dependency:copy-dependencies",
                    "-DoutputDirectory=" + path("jars")], check=True)
    with open(path("docs.txt"), "w") as out:
        for i, document in enumerate(documents(train)):
            print(i, "x", *(f"w{word}" for word, count in document for _ in range(count)), file=out)
    java = ["java", "-Xmx8g", "-cp", path("jars/*")]
    subprocess.run(java + ["cc.mallet.classify.tui.Csv2Vectors", "--input", path("docs.txt"), "--output", path("docs.bin"),
                           "--keep-sequence", "--token-regex", r"\S+"], check=True, capture_output=True)
    began = time.time()
    subprocess.run(java + ["cc.mallet.topics.tui.TopicTrainer", "--input", path("docs.bin"), "--num-topics", str(topics),
                           "--alpha", str(0.1 * topics), "--beta", "0.01", "--num-iterations", str(iterations),
                           "--num-threads", "2", "--optimize-interval", "10", "--optimize-burn-in", "0",
                           "--random-seed", str(seed), "--output-doc-topics", path("dt"), "--output-topic-keys",
                           path("keys"), "--topic-word-weights-file", path("weights")], check=True, capture_output=True)
    took = time.time() - began
    share = np.full((topics, vocabulary), 0.01)
    with open(path("weights")) as lines:
        for line in lines:
            k, word, weight = line.split()
            share[int(k), int(word[1:])] = float(weight)
    with open(path("keys")) as lines:
        alpha = np.array([float(line.split("\t")[1].replace(",", ".")) for line in lines])
    return share / share.sum(1, keepdims=True), alpha, took


def spark(train, vocabulary, topics, iterations, seed, optimizer):
    from pyspark.ml.clustering import LDA
    from pyspark.ml.linalg import Vectors
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.driver.memory", "8g").config(
        "spark.ui.enabled", "false").config("spark.driver.maxResultSize", "0").getOrCreate()
    rows = [(i, Vectors.sparse(vocabulary, sorted(document))) for i, document in enumerate(documents(train))]
    data = session.createDataFrame(rows, ["id", "features"]).repartition(2).cache()
    data.count()
    began = time.time()
    model = LDA(k=topics, maxIter=iterations, seed=seed, optimizer=optimizer).fit(data)
    share = model.topicsMatrix().toArray().T
    took = time.time() - began
    return share, np.array(model.estimatedDocConcentration().toArray()), took


def spark_em(*of):
    return spark(*of, "em")


def spark_online(train, vocabulary, topics, iterations, seed):
    return spark(train, vocabulary, topics, 20 * iterations, seed, "online")


def main(system, train, test, vocabulary, topics, iterations, *seeds):
    for seed in map(int, seeds or ("1",)):
        share, alpha, took = globals()[system](train, int(vocabulary), int(topics), int(iterations), seed)
        share, log, tokens = share / share.sum(1, keepdims=True), 0.0, 0
        for document in documents(test):
            first, second = halves(document)
            words, counts = np.array(first).T
            mix = mixture(share[:, words], counts, alpha)
            if second:
                words, counts = np.array(second).T
                log += (np.log(mix @ share[:, words]) * counts).sum()
                tokens += counts.sum()
        print(json.dumps({"system": system, "quality": float(np.exp(-log / tokens)), "seconds": took}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
