// Package mlp owns fully connected networks: forward and backward passes over rows, the units
// that features and labels are taken in, and the models.
//
// It must not know of other families, nor of drivers, executors or synchronization.
package mlp
