// Package linear owns linear models and multinomial logistic regression: their losses as
// passes over rows, the variables that are optimized, what bounds a result, and the models.
// A multinomial regression has a linear model's configuration, penalties and variables, a
// class each, and is here for that.
//
// How a pass's result moves the point is a solver's (mllib/internal/solver). Update code says
// by float64(x*y) or math.FMA where a product is rounded and where it is fused, so that every
// CPU gives the same bits. The package must not know of drivers, executors or
// synchronization.
package linear
