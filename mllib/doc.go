// Package mllib owns the algorithms: objectives, solvers, models, and their
// evaluation. They are written on rdd alone, and every numeric loop whose
// result enters parameters or objectives is internal/kernel's.
//
// Update code says by float64(x*y) or math.FMA where a product is rounded
// and where it is fused, so that every CPU gives the same bits. The package
// must not know of drivers, executors or synchronization.
package mllib
