"""A factorization by LIBMF: its error on ratings that it was not trained on.

usage: mf.py TRAIN TEST RANK ETA LAMBDA ITERATIONS

TRAIN and TEST are CSV with a header and columns user, item, rating, users and items being whole numbers. Ratings are
given to it less their mean. A line of JSON is printed. Its own predict reads what is no model's, so that products are
made of its factors. Needs pip install libmf numpy.
"""
import json
import sys
import time

import numpy as np
from libmf import mf


def ratings(path):
    return np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float64)


def main(train, test, rank, eta, penalty, iterations):
    own, held = ratings(train), ratings(test)
    mean = own[:, 2].mean()
    own[:, 2] -= mean
    engine = mf.MF(k=int(rank), nr_threads=2, nr_iters=int(iterations), eta=float(eta), lambda_p1=0, lambda_q1=0,
                   lambda_p2=float(penalty), lambda_q2=float(penalty), quiet=True)
    own = own.astype(np.float32)
    began = time.time()
    engine.fit(own)
    took = time.time() - began
    m = engine.model
    p = np.ctypeslib.as_array(m.P, shape=(m.m * m.k,)).reshape(m.m, m.k)
    q = np.ctypeslib.as_array(m.Q, shape=(m.n * m.k,)).reshape(m.n, m.k)
    users, items = held[:, 0].astype(int), held[:, 1].astype(int)
    known = (users < m.m) & (items < m.n)
    of = np.nan_to_num((p[users[known]] * q[items[known]]).sum(1)) + mean
    print(json.dumps({"system": "libmf", "quality": float(np.sqrt(((of - held[known, 2]) ** 2).mean())),
                      "seconds": took}))


if __name__ == "__main__":
    main(*sys.argv[1:])
