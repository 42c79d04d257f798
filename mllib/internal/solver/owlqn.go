package solver

var owlqn = Method{Name: OWLQN, Exact: true, Scaled: true, New: func() Solver { return &quasiNewton{} }}
