"""PageRank by networkit, igraph or GraphX: twenty rounds, or, of igraph, what its solver needs.

usage: graph.py networkit|igraph|graphx EDGES

EDGES has two whole numbers a line with a blank between them. A line of JSON is printed, with the seconds of loading and
of ranks. GraphX has two threads. Needs pip install networkit igraph pyspark, and Java.
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


def graphx(path):
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.driver.memory", "12g").config(
        "spark.ui.enabled", "false").getOrCreate()
    jvm, context = session._jvm, session.sparkContext._jsc.sc()
    module = lambda package, name: getattr(getattr(package, name + "$"), "MODULE$")
    memory = jvm.org.apache.spark.storage.StorageLevel.MEMORY_ONLY()
    began = time.time()
    graph = module(jvm.org.apache.spark.graphx, "GraphLoader").edgeListFile(context, path, False, 2, memory, memory)
    graph.edges().count()
    loaded = time.time()
    integer = module(jvm.scala.reflect, "ClassTag").Int()
    ranks = module(jvm.org.apache.spark.graphx.lib, "PageRank").run(graph, 20, 0.15, integer, integer)
    nodes = ranks.vertices().count()
    return loaded - began, time.time() - loaded, float(nodes)


def main(system, path):
    load, ranks, greatest = globals()[system](path)
    print(json.dumps({"system": system, "quality": greatest, "seconds": load + ranks}))


if __name__ == "__main__":
    main(*sys.argv[1:])
