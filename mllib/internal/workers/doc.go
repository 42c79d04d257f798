// Package workers trains by workers on tables: it runs them, finds the objective at each tick, ends the run by its
// rules, and has workers that lead astray begin again.
//
// It owns when a run of workers ends, and where the next begins. It must not know the model, nor what a worker does.
package workers
