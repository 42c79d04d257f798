package solver

// CD is coordinate descent on the normal equations, for an L1 penalty.
const CD Name = "cd"

var cd = Method{Name: CD, Exact: true, Scaled: true, Wants: Curvatures, Refuses: refusesUnsquared,
	New: func() Solver { return &second{} }}
