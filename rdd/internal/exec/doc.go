// Package exec owns what a task does with rows beyond a function for each: aggregation tables, grouping, hash joins,
// external sorting and merging, and writing the rows of a map output by partition.
//
// It works within the memory that its caller names, and spills to files beyond it. It knows no plan: which
// partitions are read, and what becomes of the rows, is the business of package rdd.
package exec
