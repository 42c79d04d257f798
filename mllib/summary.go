package mllib

import "github.com/volley-engine/volley/rdd"

// Summary is what every training run comes to beside its model.
type Summary struct {
	Objective  float64 // on all data, at the model
	Iterations int
	StoppedBy  string
	Solver     Solver // that was used
	SolverWhy  string // it was chosen, where the user has not
	MeanShare  float64
	MeanNEff   float64
	Rows       int64
	Features   int
	Processed  int64 // rows folded and merged in training steps
}

// accounts keeps the means that a summary has.
type accounts struct {
	out   *Summary
	steps float64 // of this run
}

// account takes a step in.
func (a *accounts) account(info rdd.StepInfo) {
	a.out.Processed += info.Merged
	a.steps++
	a.out.MeanShare += (info.Share - a.out.MeanShare) / a.steps
	a.out.MeanNEff += (info.NEff - a.out.MeanNEff) / a.steps
}
