"""Topics of tomotopy, held against documents that it was not trained on.

usage: lda.py TRAIN TEST VOCABULARY_SIZE TOPICS ITERATIONS [SEED…]

TRAIN and TEST are in the format of lda-c. The perplexity is that of volley run lda --test: a test document's tokens are
dealt out to two halves in turn, the mixture of topics is made of the first, and the second is foretold.
Needs pip install tomotopy numpy.
"""
import sys
import time

import numpy as np
import tomotopy


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


def shares(model, vocabulary, beta):
    counts = np.array(model.get_count_by_topics())
    share = np.repeat((beta / (counts + vocabulary * beta))[:, None], vocabulary, 1)
    known = np.array([int(w) for w in model.used_vocabs])
    for k in range(model.k):
        share[k, known] = model.get_topic_word_dist(k)
    return share / share.sum(1, keepdims=True)


def main(train, test, vocabulary, topics, iterations, *seeds):
    for seed in map(int, seeds or ("1", "2")):
        model = tomotopy.LDAModel(k=int(topics), alpha=0.1, eta=0.01, seed=seed)
        for document in documents(train):
            model.add_doc([str(word) for word, count in document for _ in range(count)])
        began = time.time()
        model.train(int(iterations), workers=2)
        took = time.time() - began
        share, log, tokens = shares(model, int(vocabulary), 0.01), 0.0, 0
        for document in documents(test):
            first, second = halves(document)
            words, counts = np.array(first).T
            mix = mixture(share[:, words], counts, np.array(model.alpha))
            if second:
                words, counts = np.array(second).T
                log += (np.log(mix @ share[:, words]) * counts).sum()
                tokens += counts.sum()
        print(f"tomotopy {tomotopy.__version__}, seed {seed}: perplexity {np.exp(-log / tokens):.1f} of {tokens} tokens, "
              f"trained in {took:.1f} s", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
