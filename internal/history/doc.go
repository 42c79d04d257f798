// Package history owns how runs went, as their event logs have it: read, said in words, drawn, and compared.
//
// It must not know of drivers and executors that run, nor of experiments.
package history
