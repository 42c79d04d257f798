// Package mllib is what programs call to train, save, load and evaluate models: the names of
// all families, which are in packages of their own (linear, kmeans, als, mlp), and the list
// of the kinds of models that can be loaded.
//
// It must not have algorithms: what a family does is the family's, and what all share is in
// mllib/internal.
package mllib
