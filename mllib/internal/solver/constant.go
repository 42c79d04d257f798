package solver

var constant = Method{Name: Constant, New: func() Solver { return &plain{} }}
