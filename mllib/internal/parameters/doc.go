// Package parameters keeps the parameters of a model in a table, as a vector that workers read and add to.
//
// It owns how a vector lies in rows. It must not know what its numbers mean.
package parameters
