package kmeans

import (
	"fmt"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/parameters"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
)

// Distance is how far a row is from a centre.
type Distance string

// The distances. Under Cosine rows and centres are brought to length 1, and the
// cost is the sum of 1 − cos, half the squared Euclidean one of these.
const (
	Euclidean Distance = "euclidean"
	Cosine    Distance = "cosine"
)

// ParseDistance returns the distance of a name.
func ParseDistance(name string) (Distance, error) {
	switch d := Distance(name); d {
	case Euclidean, Cosine:
		return d, nil
	}
	return "", fmt.Errorf("%q is not one of euclidean, cosine", name)
}

// Where k-means begins, beside a file of centres.
const (
	ParallelCentres = "parallel" // k-means‖
	RandomCentres   = "random"   // rows of a sample
)

// Config configures k-means clustering. Objective: the sum over rows of the
// squared distance to the nearest centre.
type Config struct {
	Data          []string
	Input         rdd.Input
	Splits        int
	Random        bool
	Seed          uint64
	Float32       bool
	K             int
	Distance      Distance
	Centres       string              // ParallelCentres, RandomCentres, or empty where Start has them
	Start         [][]float64         // one row a centre
	Restarts      int                 // runs from other centres, of which the best is kept; 0 is one
	Cut           bool                // steps may end before all rows are processed
	Batches       bool                `json:",omitempty"` // steps are to be of a share of each split
	Bounded       *parameters.Bounded `json:",omitempty"` // workers on tables cluster; nil: steps do
	MaxIterations int                 // of each run
	Tol           float64             // a run ends where its cost changes by at most this, relatively
	Target        *float64            `json:",omitempty"`
	MaxTime       time.Duration
}

// Check refuses configurations that no data could make right.
func (c *Config) Check() error {
	switch {
	case c.K < 1:
		return fault.Newf(fault.Usage, "kmeans", "--k", "%d is not a number of centres", c.K)
	case c.Start != nil && c.Restarts > 1:
		return fault.Newf(fault.Usage, "kmeans", "--restarts", "every run would begin at the centres given").
			WithHint("leave --restarts out, or use --centers parallel")
	case c.Start != nil && len(c.Start) != c.K:
		return fault.Newf(fault.Usage, "kmeans", "--centers", "it has %d centres, --k is %d", len(c.Start), c.K)
	}
	for i, row := range c.Start {
		if len(row) != len(c.Start[0]) {
			return fault.Newf(fault.Usage, "kmeans", "--centers", "centre %d has %d numbers, the first %d", i, len(row),
				len(c.Start[0]))
		}
	}
	return nil
}

// Plan is the plan of k-means.
type Plan struct {
	Rows    rdd.Packed[rdd.Point]
	Moments rdd.Step[fold.MomentsParam, fold.Gradient]
	Step    rdd.Step[centres, clusters]
	Whole   rdd.Step[centres, clusters] // the same, never cut
	Draw    rdd.Scan[drawParam, drawn]
	Sample  rdd.Action[[]rdd.Point]
	bounded *boundedPlan // nil where steps cluster
}

// Build declares the plan.
func Build(g *rdd.Graph, c Config) Plan {
	rows := train.Packing{Input: c.Input, Data: c.Data, Splits: c.Splits, Seed: c.Seed, Random: c.Random,
		Float32: c.Float32}.Rows(g)
	a := &assigner{cosine: c.Distance == Cosine}
	p := Plan{
		Rows:    rows,
		Moments: rdd.Aggregate(rows, fold.MomentsAggregator(false)),
		Step:    rdd.Aggregate(rows, a.clusters(), rdd.Aggressive(0)),
		Whole:   rdd.Aggregate(rows, a.clusters()),
		Draw:    rdd.ScanBatches(rows, a.draw),
		Sample:  rdd.Prefix(rows, max(train.SampleRows, 4*c.K)),
	}
	if c.Bounded != nil {
		p.bounded = declareBounded(g, rows, a, c.Bounded)
	}
	return p
}
