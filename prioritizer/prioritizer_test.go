package prioritizer

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/volley-engine/volley/internal/plan"
)

// TestRowsOfASplitAreMergedEvenly is invariant 10.2: with the cursor on, the
// times any two rows of a split were merged differ by at most one.
func TestRowsOfASplitAreMergedEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 60).Draw(t, "rows")
		l := NewLedger([]int64{n}, true)
		times := make([]int64, n)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			c, from := rapid.Int64Range(0, n).Draw(t, "count"), l.Cursor(0)
			for k := range c {
				times[(from+k)%n]++
			}
			l.Merge(0, c)
		}
		lo, hi := times[0], times[0]
		for _, k := range times {
			lo, hi = min(lo, k), max(hi, k)
		}
		if hi-lo > 1 {
			t.Fatalf("times differ by %d: %v", hi-lo, times)
		}
		if l.ProcessTimes(0) != lo {
			t.Fatalf("process times %d, want the least, %d", l.ProcessTimes(0), lo)
		}
	})
}

func TestWithoutCursorsOnlyWholeStepsCount(t *testing.T) {
	l := NewLedger([]int64{10}, false)
	l.Merge(0, 10)
	l.Merge(0, 9)
	if l.Cursor(0) != 0 || l.ProcessTimes(0) != 1 || l.Merged(0) != 19 {
		t.Errorf("cursor %d, times %d, merged %d", l.Cursor(0), l.ProcessTimes(0), l.Merged(0))
	}
}

func TestALedgerSurvivesACheckpoint(t *testing.T) {
	l := NewLedger([]int64{10, 7}, true)
	l.Merge(0, 4)
	l.Merge(1, 7)
	l.Drop(1, 3)
	r := NewLedger([]int64{10, 7}, true)
	r.Restore(l.Entries())
	for s := plan.SplitID(0); s < 2; s++ {
		if r.Cursor(s) != l.Cursor(s) || r.Merged(s) != l.Merged(s) || r.Dropped(s) != l.Dropped(s) {
			t.Errorf("split %d differs", s)
		}
	}
}

// physical is the paper's physical cluster: executors 0 to 2 at speed 1, 3 to
// 11 at 2.2, four splits each.
func physical() View {
	v := View{Step: 10, Ratio: 0.5, Rows: make([]int64, 48), Bytes: make([]int64, 48), Times: make([]int64, 48),
		Moving: make([]bool, 48),
		Owner:  make([]int, 48), Speed: make([]float64, 12), Observed: make([]int, 12)}
	for i := range v.Owner {
		v.Owner[i], v.Rows[i], v.Bytes[i] = i%12, 1000, 1000
	}
	for e := range v.Speed {
		v.Speed[e], v.Observed[e] = 22_000, 10
		if e < 3 {
			v.Speed[e] = 10_000
		}
	}
	return v
}

func TestRateRelievesTheSlowOnes(t *testing.T) {
	x := NewExchange(ExchangeConfig{Mode: Rate}, 48)
	v := physical()
	left := map[int]int{}
	for _, s := range x.Plan(v) {
		if s.From == s.To {
			t.Errorf("split %d stays", s.Split)
		}
		left[s.From]++
		v.Owner[s.Split] = s.To
	}
	for e := range 3 {
		if left[e] != 2 {
			t.Errorf("slow executor %d gives %d splits away, want 2", e, left[e])
		}
	}
	v.Step++
	if again := x.Plan(v); len(again) > 0 {
		t.Errorf("the next plan moves %v again", again)
	}
}

func TestRateLeavesAnEvenClusterAlone(t *testing.T) {
	x := NewExchange(ExchangeConfig{Mode: Rate}, 48)
	v := physical()
	for e := range v.Speed {
		v.Speed[e] = 10_000 * (1 + 0.02*float64(e%3))
	}
	if plan := x.Plan(v); plan != nil {
		t.Errorf("moves %v", plan)
	}
}

func TestRateDoesNotMoveForWhatMovesCost(t *testing.T) {
	x := NewExchange(ExchangeConfig{Mode: Rate}, 48)
	v := physical()
	for i := range v.Bytes {
		v.Bytes[i] = 1 << 40
	}
	if plan := x.Plan(v); plan != nil {
		t.Errorf("moves terabytes: %v", plan)
	}
}

// swaps counts the swaps of a mode over 200 steps in which the splits of slow
// executors fall behind.
func swaps(mode Mode) int {
	x := NewExchange(ExchangeConfig{Mode: mode}, 48)
	v, n := physical(), 0
	progress := make([]float64, 48)
	for step := 1; step <= 200; step++ {
		for i, o := range v.Owner {
			progress[i] += v.Speed[o] / 22_000 // the fast ones do a whole split a step
			v.Times[i] = int64(progress[i])
		}
		v.Step = step
		for _, s := range x.Plan(v) {
			v.Owner[s.Split] = s.To
			n++
		}
	}
	return n
}

func TestTheLiteralAlgorithmSwapsInVain(t *testing.T) {
	literal, guarded := swaps(PaperLiteral), swaps(Paper)
	if literal <= guarded {
		t.Errorf("literal swaps %d times, guarded %d", literal, guarded)
	}
}
