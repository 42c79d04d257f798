// Package graph owns what is computed of the nodes of a graph that is given by its edges: PageRank, on parameter
// tables, and connected components.
//
// It must not know of other families, nor of drivers, executors or synchronization.
package graph
