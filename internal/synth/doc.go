// Package synth makes the synthetic data of the papers' workloads, row by
// row, by the laws that SparkBench's generators use: java.util.Random seeded
// by row, so that any number of workers gives the same bytes.
//
// It must not read a clock or draw random numbers of any other kind.
package synth
