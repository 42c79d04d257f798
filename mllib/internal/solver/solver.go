package solver

import "encoding"

// Name is what users call a solver.
type Name string

// Solver is a method of minimizing an objective, at work on one. What it keeps between
// steps it lays out, and reads, itself.
type Solver interface {
	// Step takes in what a pass at p.Y has found out, and moves p.Y to where the next one
	// is to be made.
	Step(p *Point, s *Seen) Moved
	// Forget drops what the solver knows of the place where it stands: the run has gone
	// back to one of before, or the objective has become another.
	Forget()
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// Point is where a run stands. Vectors have an entry a variable.
type Point struct {
	X    []float64 // last point accepted
	Y    []float64 // where the next pass is made
	Step float64   // size of the step, 1/L of the accelerated method; of those that look back of the first one
}

// Seen is what a pass has found out: of all rows, or, where a solver does not need the same
// objective each time, of some.
type Seen struct {
	F       float64   // objective
	G       []float64 // gradient of its smooth part, which a solver may change
	Lasso   []float64 // weight of each variable's absolute value; nil without an L1 penalty
	H       []float64 // all second derivatives, row-major, where a solver wants them
	Few     bool      // few rows make them, as of a hinge
	Err     float64   // standard error of the objective, of some rows
	Hidden  float64   // by how much what is least for some rows lies above the least of all
	Anchor  []float64 // gradient of the same rows at the anchor, where a solver has one
	AnchorF float64   // objective of the same rows there
	Noise   float64   // standard error of the gradient, as a part of its length
	Share   float64   // of all rows, that these are
}

// Moved is what has come of a step.
type Moved struct {
	Accepted bool    // where the pass was made is the last point accepted
	Over     bool    // there is no better one
	Falls    float64 // what the next step promises, or the last one gained; infinite where neither is known
	Unsure   bool    // what is promised is none to end by
}

// Pass is what a pass over rows is to find out for a solver.
type Pass int

// The passes. Of Ascents, Seen has Σ Δa·x in G, and by how much the conjugates of the rows'
// losses rose in F. Of Interiors it has gradient and second derivatives of the corrected model.
const (
	Gradients  Pass = iota // the gradient
	Pairs                  // the same, and that of the same rows at an anchor (Anchored)
	Curvatures             // the gradient, and the second derivatives of all pairs of variables
	Ascents                // steps of dual variables, one a row (Ascent)
	Interiors              // several, of rows that have dual variables and slacks (Inner)
)

// Method describes a solver.
type Method struct {
	Name  Name
	Exact bool // it needs the same objective each time: its passes are over all rows
	// Samples says that where steps may be cut it is Growing, but of a hinge or a squared loss.
	Samples bool
	Wants   Pass
	Scaled  bool    // it wants features of one deviation
	Kinked  bool    // it takes a hinge as it is; others one that is smoothed
	Bounded bool    // it is of workers on tables
	First   float64 // size of the first step; 0: by the curvature
	// Refuses returns why a run cannot use it, with a hint; nil: every run can.
	Refuses func(Wish) (why, hint string)
	New     func() Solver
}

// Wish is what a run asks of its solver.
type Wish struct {
	Batches  bool // steps are to be of a share of the rows
	Lasso    bool // there is an L1 penalty
	Squared  bool // the loss is the squared one
	Hinge    bool // the loss is the hinge
	Classes  bool // there are several classes, not a margin a row
	Begins   bool // with a model given
	Bounded  bool // workers on tables are to train
	OtherEnd bool // a rule that is not by the objective ends the run
}

// Refused returns why a run cannot have the solver, and what to do; empty: it can.
func (m *Method) Refused(w Wish) (why, hint string) {
	switch {
	case w.Batches && m.Exact:
		return "it needs the same objective in every step, and --batch-fraction gives it some of the rows",
			"leave --batch-fraction out, or use a solver of first order such as nesterov"
	case w.Bounded && !m.Bounded && m.Name != Auto && m.Name != "":
		return "its steps are of all workers together, and those on tables take their own",
			"leave --solver out, or use --sync auto, bsp, steal, absp or deadline"
	case m.Refuses == nil:
		return "", ""
	}
	return m.Refuses(w)
}

// Begin chooses the size of the first step where the user has not: steepest bounds the
// curvature.
func (m *Method) Begin(p *Point, steepest func() float64) {
	switch {
	case p.Step > 0 || m.Wants == Curvatures || m.Wants == Interiors:
	case m.First > 0:
		p.Step = m.First
	default:
		p.Step = 1 / steepest()
	}
}
