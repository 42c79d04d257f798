package solver

// SAGA takes steps along the gradients of few rows, each less what these rows had when they were visited before, and
// the mean of what all had then (Defazio, Bach and Lacoste-Julien, 2014). The workers of tables do, each on its own
// rows and all at once.
const SAGA Name = "saga"

var saga = Method{Name: SAGA, Scaled: true, Bounded: true, New: func() Solver { return &plain{} },
	Refuses: func(w Wish) (why, hint string) {
		if w.Bounded {
			return "", ""
		}
		return "it is of workers on tables", "add --sync ssp, asp, cap, vap or cvap"
	}}
