package linear

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/model"
)

// Errors are the standard errors of a model's numbers, by the curvature of its loss at the end: of a logistic
// regression those of maximum likelihood, of a linear one those of least squares, with the variance of what is left.
// Under a penalty they are of the penalized weights about their own mean, which is not the truth.
type Errors struct {
	Intercept float64   `json:"intercept"`
	Residual  float64   `json:"residual,omitempty"` // standard error of a row, of a linear regression
	Freedom   float64   `json:"freedom"`            // what the rows weigh, less the numbers that were fitted
	Weights   []float64 `json:"-"`
}

// checkErrors refuses standard errors that there are none of.
func (c *Config) checkErrors() error {
	why := ""
	switch {
	case !c.Errors:
	case c.Loss != Squared && c.Loss != Logistic:
		why = "a margin's loss is no likelihood"
	case c.lasso():
		why = "an L1 penalty makes weights zero, which have none"
	}
	if why == "" {
		return nil
	}
	return fault.Newf(fault.Usage, c.job(), "--standard-errors", "%s", why)
}

// fitErrors refuses standard errors of data that are too wide for them.
func (c *Config) fitErrors(features int) error {
	most := map[bool]int{true: narrowSquared, false: narrowCurved}[c.Loss == Squared]
	if !c.Errors || features <= most {
		return nil
	}
	return fault.Newf(fault.Usage, c.job(), "--standard-errors",
		"%d features are too many for second derivatives of all pairs: at most %d", features, most)
}

// standardErrors computes the standard errors of the model, by one more pass over all rows.
func (t *trainer) standardErrors(ctx context.Context) error {
	d := t.meta.Features
	p := t.prob.param(t.st.Y)
	p.Shift = t.center
	c, err := t.plan.Second.Run(ctx, t.Session, p)
	if err != nil {
		return err
	}
	weight := float64(t.Session.LastInfo().Weight * t.prob.counted)
	e := &errorsOf{n: t.prob.size(), bare: t.prob.hessian(c, p.Shift, t.Session.LastInfo().Weight)}
	e.factor = append([]float64(nil), e.bare...)
	for j := range t.prob.scale {
		e.bare[j*e.n+j] -= float64(t.prob.reg * t.prob.penalty[j])
	}
	kernel.Cholesky(e.factor, e.n)
	if lost := e.lost(t.out.Model); lost != "" {
		t.out.Chosen = append(t.out.Chosen, "no standard errors: "+lost+
			" can be made of others, so that weights may be moved between them; leave them out, or give --reg")
		return nil
	}
	out := &Errors{Weights: make([]float64, d)}
	free, unit := 0.0, make([]float64, e.n)
	for j := range e.n {
		clear(unit)
		unit[j] = 1
		variance, share := e.of(unit)
		free += share[j]
		if j < d {
			out.Weights[j] = math.Sqrt(variance/weight) / t.prob.scale[j]
		}
	}
	out.Freedom = weight - free
	if t.prob.intercept {
		out.Intercept = math.Sqrt(e.ofIntercept(t.prob) / weight)
	}
	if t.cfg.Loss == Squared {
		if !(out.Freedom > 0) {
			t.out.Chosen = append(t.out.Chosen, "no standard errors: there are no more rows than numbers to fit")
			return nil
		}
		out.Residual = math.Sqrt(2 * c.Loss / out.Freedom)
		kernel.Scale(out.Residual, out.Weights)
		out.Intercept *= out.Residual
	}
	if t.out.Model.Errors = out; !t.out.Converged {
		t.out.Chosen = append(t.out.Chosen, "the standard errors are of a point that is not known to be the optimum")
	}
	return nil
}

// errorsOf has the curvature of the loss, and the factor of that of loss and penalty.
type errorsOf struct {
	n            int
	bare, factor []float64
}

// lost returns the names of variables that depend on others, some of them.
func (e *errorsOf) lost(m *Model) string {
	var names []string
	more := 0
	all := model.FeatureNames(m.Features, m.Prepared, m.Names, m.IndexBase)
	for j := range e.n {
		switch {
		case e.factor[j*e.n+j] > 0:
		case len(names) == 5:
			more++
		case j < len(all):
			names = append(names, all[j])
		default:
			names = append(names, "the intercept")
		}
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// of returns the variance of a sum of variables, given by their coefficients, times the rows' weight; and the
// coefficients of the sum's estimate among the rows' slopes.
func (e *errorsOf) of(sum []float64) (variance float64, share []float64) {
	v := append([]float64(nil), sum...)
	kernel.Solve(e.factor, v, e.n)
	share = make([]float64, e.n)
	for j := range share {
		share[j] = kernel.Dot(e.bare[j*e.n:(j+1)*e.n], v)
	}
	return max(0, kernel.Dot(v, share)), share
}

// ofIntercept returns the variance of the intercept, times the rows' weight: in the model it is about zero, among the
// variables about the features' means.
func (e *errorsOf) ofIntercept(p *problem) float64 {
	sum := make([]float64, e.n)
	sum[e.n-1] = 1
	for j, mean := range p.mean {
		sum[j] = -mean / p.scale[j]
	}
	variance, _ := e.of(sum)
	return variance
}

// shownError returns the standard error of a weight, and how many of it the weight is, as Describe has them.
func shownError(weight, err float64) string {
	if !(err > 1e-12*math.Abs(weight)) {
		return fmt.Sprintf(" ± %.4g", err)
	}
	return fmt.Sprintf(" ± %.4g (%+.4g)", err, weight/err)
}
