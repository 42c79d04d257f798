package abss

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/plan"
)

// Policy is a rule for ending a step.
type Policy uint8

// The policies. BSP waits for every row; ABSP stops the step once the
// processed ratio has reached the synchronization ratio after the first task
// has finished; Deadline stops it at a time learned from recent steps; Steal
// waits for every row like BSP, but hands pieces of splits to the executor that folds
// them soonest; Automatic is what Auto chooses for each pass.
const (
	BSP Policy = iota
	ABSP
	Deadline
	Steal
	Automatic
)

var policyNames = []string{"bsp", "absp", "deadline", "steal", "auto"}

// Whole reports whether steps are never cut.
func (p Policy) Whole() bool { return p == BSP || p == Steal }

// String returns the policy's name on the command line.
func (p Policy) String() string { return policyNames[p] }

// ParsePolicy returns the policy of a name.
func ParsePolicy(name string) (Policy, error) {
	for i, n := range policyNames {
		if n == name {
			return Policy(i), nil
		}
	}
	return BSP, fmt.Errorf("%q is not one of %s", name, strings.Join(policyNames, ", "))
}

// Config configures how steps end. The zero value of a field takes its default.
type Config struct {
	Policy      Policy
	Ratio       float64       // R_s, the synchronization ratio, in (0, 1]; default 0.5; of Automatic that of samples
	MinRatio    float64       // of Automatic: the least; default 0.3
	MinShare    float64       // share of a split below which it is not cut; default 0.05, negative is none
	MinRows     int64         // rows below which a split is not cut; default 64
	MaxMissing  float64       // share of rows a step may go on without; default 0.2, negative is none
	Grace       time.Duration // least bound of the floor wait and of collecting; default 50 ms
	StepTimeout time.Duration // bound of the waits for recovery; default 10 min
}

// EnsureDefaults sets the fields left zero to their defaults.
func (c Config) EnsureDefaults() Config {
	setDefault(&c.Ratio, 0.5)
	setDefault(&c.MinRatio, 0.3)
	setDefault(&c.MinShare, 0.05)
	setDefault(&c.MinRows, 64)
	setDefault(&c.MaxMissing, 0.2)
	setDefault(&c.Grace, 50*time.Millisecond)
	setDefault(&c.StepTimeout, 10*time.Minute)
	return c
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// Floor returns the count below which a split of n rows may not be cut.
func (c Config) Floor(n int64) int64 {
	return min(n, max(c.MinRows, int64(c.MinShare*float64(n))))
}

// Cuttable reports whether steps over a share of each split, whose rows are given, can be cut at the ratio: the least
// that splits must have is not as much as that.
func (c Config) Cuttable(rows []int64, share float64) bool {
	c = c.EnsureDefaults()
	var least, all float64
	for _, n := range rows {
		sample := int64(math.Ceil(share * float64(n)))
		all += float64(sample)
		least += float64(c.Floor(sample))
	}
	return least < float64(c.Ratio*all)
}

// Task is one split's share of the step: its rows and the executor that folds it.
type Task struct {
	Split plan.SplitID
	Rows  int64
	Held  bool // false: no executor can fold it yet
}
