package solver

var cd = Method{Name: CD, Exact: true, Scaled: true, Wants: Curvatures, Refuses: refusesUnsquared,
	New: func() Solver { return &second{} }}
