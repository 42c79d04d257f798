// Package als owns the factorization of ratings by alternating least squares: the solving of
// rows, the sweeps, the models and their recommendations.
//
// It must not know of other families, nor of drivers, executors or synchronization.
package als
