package mlp

import (
	"fmt"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/pack"
)

// Beginning is a network that training begins with, numbers and all, so that a run's log has what it needs to be
// replayed.
type Beginning struct {
	Model
	Numbers []float64
}

// BeginWith returns a network to begin with.
func BeginWith(m *Model) *Beginning { return &Beginning{*m, m.numbers} }

// differs returns how a network is of another kind than a configuration asks for; empty where it is not.
func (b *Beginning) differs(c *Config) string {
	hidden := b.Layers[1 : len(b.Layers)-1]
	switch {
	case !slices.Equal(hidden, c.Hidden):
		return fmt.Sprintf("the model has hidden layers of %v units, wanted are %v", hidden, c.Hidden)
	case b.Activation != c.Activation && len(hidden) > 0:
		return fmt.Sprintf("the model's activation is %s, wanted is %s", b.Activation, c.Activation)
	case (len(b.Labels) == 0) != c.Regression:
		return "one is of a regression, the other tells classes"
	}
	return ""
}

// sameData checks that a network is of the features and classes of the data.
func (b *Beginning) sameData(meta *pack.Meta, sizes []int) error {
	why := ""
	switch {
	case b.Features != meta.Features || b.IndexBase != meta.IndexBase:
		why = fmt.Sprintf("it has %d features from %d on, the data %d from %d on", b.Features, b.IndexBase,
			meta.Features, meta.IndexBase)
	case len(b.Labels) > 0 && !slices.Equal(b.Labels, meta.Labels):
		why = fmt.Sprintf("its classes are %.200q, the data's are %.200q", b.Labels, meta.Labels)
	case len(b.Names) > 0 && len(meta.Names) > 0 && !slices.Equal(b.Names, meta.Names):
		why = fmt.Sprintf("its features are %.200q, those of the data %.200q", b.Names, meta.Names)
	case !b.Prepared.Alike(meta.Prepared):
		why = "its columns are made into features in other ways than those of the data"
	case len(b.Numbers) != numbers(sizes):
		why = fmt.Sprintf("it has %d numbers, layers of %v have %d", len(b.Numbers), sizes, numbers(sizes))
	default:
		return nil
	}
	return fault.Newf(fault.Usage, "begin with", "the model of --init", "%s", why)
}
