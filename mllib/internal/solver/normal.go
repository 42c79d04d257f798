package solver

// Normal solves the normal equations of a squared loss: one pass.
const Normal Name = "normal"

var normal = Method{Name: Normal, Exact: true, Scaled: true, Wants: Curvatures, New: func() Solver { return &second{} },
	Refuses: func(w Wish) (why, hint string) {
		if why, hint = refusesLasso(w); why == "" {
			why, hint = refusesUnsquared(w)
		}
		return why, hint
	}}

// refusesUnsquared refuses losses that are not squared, for solvers whose quadratic model is the objective.
func refusesUnsquared(w Wish) (why, hint string) {
	if why, hint = refusesCurved(w); why == "" && !w.Squared {
		return "it minimizes squared losses only", "use newton or lbfgs"
	}
	return why, hint
}
