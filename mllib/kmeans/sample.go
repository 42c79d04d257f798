package kmeans

import (
	"context"
	"math"

	"github.com/volley-engine/volley/rdd"
)

// What the first sample of a run has: a share of the rows, and a number of rows a centre; by how much it grows where a
// step gains hardly more than the sample hides. Larger ones are all rows.
const (
	firstShare = 0.05
	firstRows  = 100
	grows      = 4
	hardly     = 4
	mostShare  = 0.2
)

// samples reports whether steps are of samples of the rows at first, which may be cut, and then of all rows, by leases.
func (t *trainer) samples() bool { return t.cfg.Cut && !t.cfg.Batches }

// beginSamples chooses the first sample of a run.
func (t *trainer) beginSamples() {
	t.growTo(max(firstShare, float64(firstRows*t.cfg.K)/float64(t.meta.Rows)))
}

func (t *trainer) growTo(share float64) {
	if t.st.Share = share; share > mostShare {
		t.st.Share = 1
	}
}

// step folds rows into their clusters: all of them, a sample, or those that came before the step was cut.
func (t *trainer) step(ctx context.Context) (clusters, error) {
	param := t.param(t.st.At)
	switch {
	case !t.samples():
		return t.plan.Step.Run(ctx, t.Session, param)
	case t.st.Share >= 1:
		return t.plan.Step.Uncut().Run(ctx, t.Session, param)
	}
	t.Session.Sample(t.st.Share)
	defer t.Session.Sample(0)
	return t.plan.Step.Run(ctx, t.Session, param)
}

// grow takes a larger sample where the step from some centres has gained hardly more than the sample hides. A centre of
// n rows is off by their variance over n, so that all together hide the cost of a row for each centre; what moving them
// gains is their rows times the square of the way.
func (t *trainer) grow(before []float64, c clusters, info rdd.StepInfo) {
	if !t.samples() {
		return
	}
	gained, d := 0.0, t.meta.Features
	for k, n := range c.N {
		for j := k * d; j < (k+1)*d; j++ {
			way := t.st.At[j] - before[j]
			gained = math.FMA(float64(way*way), n, gained)
		}
	}
	hides := c.Cost / info.NEff * float64(t.cfg.K) * (1 - info.Share)
	if !(gained > float64(hardly*hides)) {
		t.growTo(float64(grows * t.st.Share))
	}
}
