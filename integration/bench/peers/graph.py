"""PageRank by networkit or igraph: twenty rounds, or, of igraph, what its solver needs.

usage: graph.py networkit|igraph EDGES

EDGES has two whole numbers a line with a blank between them. A line of JSON is printed, with the seconds of loading and
of ranks. Needs pip install networkit igraph.
"""
import json
import sys
import time


def networkit(path):
    import networkit as nk

    began = time.time()
    graph = nk.graphio.EdgeListReader(" ", 0, "#", True, True).read(path)
    loaded = time.time()
    rank = nk.centrality.PageRank(graph, 0.85, 1e-30)
    rank.maxIterations = 20
    rank.run()
    return loaded - began, time.time() - loaded, max(rank.scores())


def igraph(path):
    import igraph as ig

    began = time.time()
    graph = ig.Graph.Read_Edgelist(path, directed=True)
    loaded = time.time()
    ranks = graph.pagerank(damping=0.85)
    return loaded - began, time.time() - loaded, max(ranks)


def main(system, path):
    load, ranks, greatest = globals()[system](path)
    print(json.dumps({"system": system, "quality": greatest, "seconds": load + ranks}))


if __name__ == "__main__":
    main(*sys.argv[1:])
