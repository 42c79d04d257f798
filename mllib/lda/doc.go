// Package lda owns topic models: latent Dirichlet allocation by collapsed Gibbs sampling on parameter tables, their
// evaluation on documents that were not trained on, and saved models.
//
// It must not know of other families, nor of drivers, executors or synchronization.
package lda
