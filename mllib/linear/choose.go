package linear

import (
	"fmt"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/storage/pack"
)

// lasso reports whether there is an L1 penalty.
func (c *Config) lasso() bool { return c.Reg > 0 && c.Alpha > 0 }

// byObjective reports whether the objective, and no other rule, ends a run.
func (c *Config) byObjective() bool { return c.Stop == "" || c.Stop == train.ByObjective }

// Check refuses configurations that no data could make right.
func (c *Config) Check() error {
	several := c.Loss.several()
	badWeight := slices.ContainsFunc(c.Classes, func(w float64) bool { return !(w > 0) || !num.Finite(w) })
	if badWeight || several && c.ClassWeights != [2]float64{} || !several && c.Classes != nil {
		return fault.Newf(fault.Usage, c.job(), "--class-weights", "there must be a weight above 0 for each class")
	}
	if err := c.checkErrors(); err != nil {
		return err
	}
	why, hint := solver.Of(c.Solver).Refused(solver.Wish{Batches: c.Batches, Lasso: c.lasso(),
		Squared: c.Loss == Squared, Hinge: c.Loss == Hinge, Classes: several, Begins: c.Init != nil,
		Bounded: c.Bounded != nil, OtherEnd: !c.byObjective()})
	if why == "" {
		return nil
	}
	return fault.Newf(fault.Usage, c.job(), "--solver "+string(c.Solver), "%s", why).WithHint(hint)
}

// The widest data whose second derivatives of all pairs are summed.
const (
	narrowSquared = 2048 // in one pass
	narrowCurved  = 768  // in several
)

// tall is from how many rows a feature on second derivatives of a hinge that is smoothed over little are those of many
// rows, so that newton, whose steps are cheaper, takes few of them.
const tall = 4000

// How much second derivatives may be to send: times the bytes of the splits that they are of, or altogether.
const (
	timesSent = 2
	freeBytes = 32 << 20
)

// sends reports whether a pass that sums second derivatives would send far more than it reads. L1 penalties and hinges
// cost first-order methods too many passes for that to matter.
func (c *Config) sends(m *pack.Meta) bool {
	half := int64(m.Features) * int64(m.Features) / 2
	sent := 8 * half * int64(len(m.Splits))
	return !c.lasso() && c.Loss != Hinge && sent > freeBytes && sent > timesSent*m.Bytes()
}

// choose picks a solver for data, and returns the reason.
func (c *Config) choose(m *pack.Meta) (s solver.Name, why string) {
	features, rows := m.Features, m.Rows
	switch {
	case c.Bounded != nil:
		return solver.SAGA, "workers on tables take steps of their own"
	case c.Batches:
		return c.chooseWide("")
	case !c.byObjective():
		return c.chooseWide("--stop is not by the objective")
	case c.Loss == Squared && features <= narrowSquared && c.lasso():
		return solver.CD, fmt.Sprintf("%d features are few enough for one pass that sums their products", features)
	case c.Loss == Squared && features <= narrowSquared:
		return solver.Normal, fmt.Sprintf("%d features are few enough for one pass that sums their products", features)
	case features <= narrowCurved && c.Loss == Hinge && !c.lasso() && rows < tall*int64(features):
		return solver.Interior, fmt.Sprintf("%d features are few enough to sum second derivatives of all pairs, "+
			"and rows fewer than %d a feature", features, tall)
	case features <= narrowCurved && c.sends(m):
		return c.chooseWide(fmt.Sprintf("second derivatives of all pairs of %d features, of %d splits, are more than "+
			"%d times the data", features, len(m.Splits), timesSent))
	case features <= narrowCurved:
		return solver.Newton, fmt.Sprintf("%d features are few enough to sum second derivatives of all pairs", features)
	}
	return c.chooseWide(fmt.Sprintf("%d features are too many for second derivatives of all pairs", features))
}

// chooseWide picks a solver where second derivatives are not to be had, and adds to
// the reason.
func (c *Config) chooseWide(why string) (solver.Name, string) {
	switch {
	case c.Batches:
		return solver.Nesterov, "steps are of a share of the rows: only their mean gradients are the same"
	case c.lasso():
		return solver.OWLQN, why + ", and there is an L1 penalty"
	}
	return solver.LBFGS, why
}

// choosePenalty takes 1/n where no penalty is asked for: that of a normal law of
// deviation 1 for each weight, before data are seen.
func (c *Config) choosePenalty(sum *train.Summary, rows int64) {
	if !c.RegPerRow {
		return
	}
	c.Reg = 1 / float64(rows)
	sum.Chosen = append(sum.Chosen, fmt.Sprintf("penalty λ = %.3g: 1/n for %d rows; --reg sets another, 0 none", c.Reg,
		rows))
}
