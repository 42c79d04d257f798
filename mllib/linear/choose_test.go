package linear

import (
	"strings"
	"testing"

	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/storage/pack"
)

// TestWhatIsChosen is of data's shape: second derivatives are not sent where they are far more than what they are of.
func TestWhatIsChosen(t *testing.T) {
	of := func(features, splits int, bytes int64) *pack.Meta {
		m := &pack.Meta{Features: features, Rows: 60_000}
		for range splits {
			m.Splits = append(m.Splits, pack.SplitMeta{Bytes: bytes / int64(splits)})
		}
		return m
	}
	for _, c := range []struct {
		cfg  Config
		meta *pack.Meta
		want solver.Name
		why  string
	}{
		{Config{Loss: Logistic}, of(400, 72, 15<<20), solver.LBFGS, "of 72 splits"},
		{Config{Loss: SquaredHinge}, of(400, 72, 15<<20), solver.LBFGS, "of 72 splits"},
		{Config{Loss: Logistic}, of(400, 72, 100<<20), solver.Newton, "few enough"}, // little beside the data
		{Config{Loss: Logistic}, of(400, 12, 1<<20), solver.Newton, "few enough"},   // little altogether
		{Config{Loss: Logistic, Reg: 1, Alpha: 0.5}, of(400, 72, 15<<20), solver.Newton, "few enough"},
		{Config{Loss: Hinge}, of(400, 72, 15<<20), solver.Interior, "few enough"},
		{Config{Loss: Squared}, of(400, 72, 15<<20), solver.Normal, "one pass"},
		{Config{Loss: Logistic}, of(800, 4, 100<<20), solver.LBFGS, "too many"},
	} {
		if got, why := c.cfg.choose(c.meta); got != c.want || !strings.Contains(why, c.why) {
			t.Errorf("%s, %d features, %d splits: %s, %s", c.cfg.Loss, c.meta.Features, len(c.meta.Splits), got, why)
		}
	}
}
