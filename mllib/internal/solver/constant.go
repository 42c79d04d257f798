package solver

// Constant is gradient descent with a given step.
const Constant Name = "constant"

var constant = Method{Name: Constant, New: func() Solver { return &plain{} }}
