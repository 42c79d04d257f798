package solver

// OWLQN is LBFGS under an L1 penalty.
const OWLQN Name = "owlqn"

var owlqn = Method{Name: OWLQN, Exact: true, Scaled: true, New: func() Solver { return &quasiNewton{} }}
