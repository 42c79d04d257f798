// Package num owns what all of mllib's families do with vectors of numbers: how they are
// laid out in parameters, results and states, and arithmetic that has the same bits on
// every CPU.
//
// It must not know of rows, models or objectives. Inner loops over rows are
// internal/kernel's.
package num
