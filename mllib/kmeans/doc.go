// Package kmeans owns k-means: the choice of the first centres, Lloyd's steps, bounds that
// spare them work, and the models.
//
// It must not know of other families, nor of drivers, executors or synchronization.
package kmeans
