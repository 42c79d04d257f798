// Package soak tries the engine on random pipelines: every operation of the dataset
// API over rows of every type, on clusters whose executors have unequal memory and
// speed and are killed, stopped and out of disk, against a reference that knows only
// slices.
//
// It owns the drawing of pipelines, the reference and the harm. It is tests only, and
// nothing else may import it.
package soak
