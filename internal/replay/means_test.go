package replay

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/internal/audit/logtest"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd"
)

// means is a program whose step is scaled, and whose rows have state; it counts what a shuffle gives.
type means struct {
	step rdd.Step[float64, float64]
	keys rdd.Action[int64]
}

func buildMeans(g *rdd.Graph, a sumsArgs) means {
	add := func(a, b float64) float64 { return a + b }
	points := rdd.Map(rdd.Range(g, 0, a.Rows, 4), func(n int64) rdd.Point {
		return rdd.Point{Indices: []int32{0}, Values: []float64{float64(n)}}
	})
	agg := rdd.Aggregator[float64, rdd.Point, float64]{Zero: func(float64) float64 { return 0 }, Merge: add,
		Scale: func(a, f float64) float64 { return a * f }, State: 1,
		AddBatch: func(a, _ float64, b *rdd.Batch) float64 {
			for i := range b.Rows {
				a += 1 + b.State[i]
				b.State[i]++
			}
			return a
		}}
	keys := rdd.Distinct(rdd.Map(rdd.Range(g, 0, 40, 4), func(n int64) int64 { return n % 11 }))
	return means{rdd.Aggregate(rdd.Pack(points, rdd.Splits(3)), agg, rdd.Aggressive(0)), rdd.Count(keys)}
}

// runMeans reports everything that it is told of its steps.
func runMeans(ctx context.Context, s *rdd.Session, _ sumsArgs, p means) (string, error) {
	if n, err := p.keys.Run(ctx, s); err != nil || n != 11 {
		return "", fmt.Errorf("%d keys, %w", n, err)
	}
	state := 0.0
	for it := range rdd.Iterations(ctx, s, &state, 3) {
		sum, err := p.step.Run(ctx, s, state)
		if err != nil {
			return "", err
		}
		in := s.LastInfo()
		cut := map[bool]float64{true: 1}[in.Cut]
		for name, v := range map[string]float64{"sum": sum, "step": float64(in.Step), "rows": float64(in.Rows),
			"merged": float64(in.Merged), "weight": in.Weight, "share": in.Share, "neff": in.NEff, "cut": cut,
			"below": math.Inf(-1)} {
			it.Report(name, v)
		}
		state += sum
	}
	return "iterations", s.Err()
}

// TestAReplayFoldsAsTheRunDid: under any policy and weighting the program is given the same sums, and
// told the same of them, and its rows have the same state.
func TestAReplayFoldsAsTheRunDid(t *testing.T) {
	for name, job := range map[string]driver.JobConfig{
		"bsp":                  {},
		"absp":                 {Sync: abss.Config{Policy: abss.ABSP, Ratio: 0.5}},
		"a batch, scaled":      {BatchFraction: 0.25},
		"a batch, by rows":     {BatchFraction: 0.25, ByRows: true},
		"a batch of one row":   {BatchFraction: 0.01},
		"from the first row":   {BatchFraction: 0.25, FixedCursors: true},
		"by rows, all of them": {ByRows: true},
	} {
		run := runProgram(t, job, buildMeans, runMeans)
		c, err := run.replay(t, 60, unchanged, func(r *Replay) {
			if first, _, _ := r.took.Took(r.log.Lines[0].Number); r.Now() != first || first == 0 {
				t.Errorf("%s: it begins at %v, the first step did at %v", name, r.Now(), first)
			}
		})
		if err != nil || c.Steps != 3 || c.Left() != 0 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if from, to, _ := c.took.Took(c.log.Lines[2].Number); c.Now() != to || to <= from {
			t.Errorf("%s: it ends at %v, the last step was from %v to %v", name, c.Now(), from, to)
		}
		c, err = run.replay(t, 60, unchanged, func(r *Replay) { r.step(2).Ratio = 0.5 })
		if err == nil || !strings.Contains(err.Error(), "which only auto has") {
			t.Errorf("%s: %v, %v", name, err, c)
		}
	}
}

// nobody is a program of which nothing but its fingerprint, or its tasks, are asked.
type nobody struct{ runner.Program }

func (nobody) Fingerprint() plan.Digest { return plan.Digest{7} }

func (nobody) Task(_ context.Context, node, part int, args []byte, _ runner.TaskContext) ([]byte, error) {
	return fmt.Appendf(nil, "%d/%d/%s", node, part, args), nil
}

// TestOneFalseLineIsEnough for a log not to be replayed; one that goes on from a checkpoint of its own is
// replayed as if nothing had been between.
func TestOneFalseLineIsEnough(t *testing.T) {
	logOf := func(name string, edit func([][]byte) [][]byte) *audit.Log {
		l, err := readLog(t, logtest.Seal(edit(logtest.Runs[name](t).Written())))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if _, err := New(logOf("absp", func(l [][]byte) [][]byte {
		l[1] = logtest.Changed(t, l[1], "bytes", 3)
		return l
	}), nobody{}, nil, nil, nil); fault.KindOf(err) != fault.Corrupt ||
		!strings.Contains(err.Error(), "bytes: the log") {
		t.Errorf("a false figure: %v", err)
	}
	r, err := New(logOf("resumed-twice", unchanged), nobody{}, nil, nil, nil)
	if err != nil || len(r.log.Lines) != 5 || r.took != nil || r.Now() != 0 {
		t.Errorf("a log of three lives: %v", err)
	}
	if r, err = New(logOf("bsp", func(l [][]byte) [][]byte {
		l[3] = logtest.Changed(t, l[3], "steps", 0)
		return [][]byte{l[0], l[3]}
	}), nobody{}, nil, nil, nil); err != nil || r.Left() != 0 || r.Now() != 0 {
		t.Errorf("a log of no step: %v", err)
	}
	if r, err = New(logOf("absp", unchanged), nobody{}, nil, nil, nil); err != nil || r.took == nil ||
		r.took.Decided != 4 {
		t.Errorf("a log of one: %v", err)
	}
}

// TestATaskComputesItsPartition: the one that is said, or the one of its place.
func TestATaskComputesItsPartition(t *testing.T) {
	r := &Replay{program: nobody{}}
	for want, c := range map[string]plan.CallRequest{
		"[4/0/a 4/1/b]": {Node: 4, Args: [][]byte{[]byte("a"), []byte("b")}},
		"[4/7/a 4/5/b]": {Node: 4, Args: [][]byte{[]byte("a"), []byte("b")}, Partitions: []int{7, 5}},
	} {
		out, errs, err := r.RunCall(context.Background(), c)
		if got := fmt.Sprintf("%s", out); got != want || err != nil || len(errs) != 2 {
			t.Errorf("%s, want %s: %v, %v", got, want, errs, err)
		}
	}
}
