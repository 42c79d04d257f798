package rdd_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/internal/crash"
	"github.com/volley-engine/volley/rdd"
)

// theAction runs one action in a cluster of its own.
func theAction[R any](t *testing.T, build func(*rdd.Graph) rdd.Action[R]) (out R, err error) {
	t.Helper()
	cfg := testConfig(t)
	cfg.Executors = 1
	_, err = volley.Run(context.Background(), cfg, "one action", textArgs{},
		func(g *rdd.Graph, _ textArgs) rdd.Action[R] { return build(g) },
		func(ctx context.Context, s *rdd.Session, _ textArgs, a rdd.Action[R]) (string, error) {
			out, err = a.Run(ctx, s)
			return "end", err
		})
	return out, err
}

// saveLines saves lines as n parts.
func saveLines(t *testing.T, dir, word string, parts int, options ...rdd.SaveOption) error {
	t.Helper()
	_, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
		lines := rdd.Map(rdd.Range(g, 0, 30, parts), func(i int64) string { return fmt.Sprint(word, " ", i) })
		return rdd.SaveText(lines, dir, options...)
	})
	return err
}

// readLines says whose lines a directory has: one word where it has all of them and
// no other, or what is wrong.
func readLines(t *testing.T, dir string) string {
	t.Helper()
	lines, err := theAction(t, func(g *rdd.Graph) rdd.Action[[]string] { return rdd.Collect(rdd.TextFile(g, dir)) })
	if err != nil {
		return "refused"
	}
	for _, word := range []string{"old", "new"} {
		var want []string
		for i := range 30 {
			want = append(want, fmt.Sprint(word, " ", i))
		}
		slices.Sort(want)
		if got := slices.Sorted(slices.Values(lines)); slices.Equal(got, want) {
			return word
		}
	}
	return fmt.Sprintf("%d lines, which are neither: %q", len(lines), lines[:min(3, len(lines))])
}

// mostFaults is how many states a test complains of.
const mostFaults = 5

// TestASaveIsThereAsAWholeOrNotAtAll, wherever the power fails with Durable, which is there
// from its end on, and wherever the program is killed without.
func TestASaveIsThereAsAWholeOrNotAtAll(t *testing.T) {
	for name, options := range map[string][]rdd.SaveOption{"durable": {rdd.Durable()}, "not durable": nil} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			r := crash.Record(t, root)
			if err := saveLines(t, filepath.Join(root, "a", "out"), "new", 3, options...); err != nil {
				t.Fatal(err)
			}
			r.Promise()
			r.End(t)
			faults, states := 0, 0
			for s := range r.States(t) {
				if options == nil && len(s.Lost) > 0 {
					continue // nobody has promised anything
				}
				got := readLines(t, filepath.Join(s.Put(t), "a", "out"))
				if wrong := got != "new" && (got != "refused" || s.Promised > 0 && options != nil); wrong &&
					faults < mostFaults {
					t.Errorf("%v: it is read as %s", s, got)
					faults++
				}
				states++
			}
			t.Logf("%d operations, %d states", len(r.Ops()), states)
		})
	}
}

// TestAnOverwriteIsThereAsAWholeOrNotAtAll: with Durable, what was there can be read until
// what replaces it can, wherever the power fails; without, wherever the program is
// killed, what is there is one of them, or refused.
func TestAnOverwriteIsThereAsAWholeOrNotAtAll(t *testing.T) {
	for name, options := range map[string][]rdd.SaveOption{"durable": {rdd.Overwrite(), rdd.Durable()},
		"not durable": {rdd.Overwrite()}} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "out")
			if err := saveLines(t, dir, "old", 5, rdd.Durable()); err != nil {
				t.Fatal(err)
			}
			r := crash.Record(t, root)
			if err := saveLines(t, dir, "new", 3, options...); err != nil {
				t.Fatal(err)
			}
			r.Promise()
			r.End(t)
			faults, states, durable := 0, 0, len(options) > 1
			for s := range r.States(t) {
				if !durable && len(s.Lost) > 0 {
					continue // nobody has promised anything
				}
				got := readLines(t, filepath.Join(s.Put(t), "out"))
				right := got == "new" || got == "old" && (s.Promised == 0 || !durable) || got == "refused" && !durable
				if !right && faults < mostFaults {
					t.Errorf("%v: it is read as %s", s, got)
					faults++
				}
				states++
			}
			t.Logf("%d operations, %d states", len(r.Ops()), states)
		})
	}
}

// counting is a program that sums its steps' results in a loop, with checkpoints.
type counting struct {
	turns int
	begun int             // its first turn
	each  func(turn int)  // called as a turn begins; may be nil
	sums  map[int]float64 // after each turn
	args  textArgs
}

func buildCounting(g *rdd.Graph, a textArgs) rdd.Step[float64, sum] {
	numbers := rdd.MapErr(rdd.FlatMap(rdd.TextFile(g, a.Path), strings.Fields),
		func(w string) (float64, error) { return strconv.ParseFloat(w, 64) })
	return rdd.Aggregate(rdd.Pack(numbers, rdd.Splits(2)), rdd.Aggregator[float64, float64, sum]{
		Zero:  func(float64) sum { return sum{} },
		Add:   func(s sum, shift, x float64) sum { return sum{s.N + 1, s.Total + x + shift} },
		Merge: func(a, b sum) sum { return sum{a.N + b.N, a.Total + b.Total} },
		Scale: func(s sum, _ float64) sum { return s },
	}, rdd.Aggressive(0))
}

func (p *counting) run(t *testing.T, root, data string, resume bool) error {
	t.Helper()
	p.sums = map[int]float64{}
	cfg := testConfig(t)
	cfg.Executors, cfg.Checkpoints, cfg.CheckpointEach, cfg.Resume, cfg.DataDir = 1, filepath.Join(root, "checkpoints"),
		1, resume, data
	cfg.EventLog = filepath.Join(root, "events.jsonl")
	_, err := volley.Run(context.Background(), cfg, "counting", p.args, buildCounting,
		func(ctx context.Context, s *rdd.Session, _ textArgs, step rdd.Step[float64, sum]) (string, error) {
			var total float64
			for it := range rdd.Iterations(ctx, s, &total, p.turns) {
				if p.begun == 0 {
					p.begun = it.Number
				}
				if p.each != nil {
					p.each(it.Number)
				}
				got, err := step.Run(ctx, s, total)
				if err != nil {
					return "", err
				}
				total += got.Total / float64(it.Number)
				p.sums[it.Number] = total
			}
			return "end", s.Err()
		})
	return err
}

// resumed says what is wrong with a program that goes on from a state in which a number of
// turns were promised.
func (p *counting) resumed(t *testing.T, root, data string, promised int, want map[int]float64) error {
	if err := p.run(t, root, data, true); err != nil {
		return err
	}
	if p.begun != 0 && p.begun <= promised {
		return fmt.Errorf("turn %d, which was committed, is done again", p.begun)
	}
	if last := p.sums[p.turns]; p.begun != 0 && last != want[p.turns] {
		return fmt.Errorf("it comes to %v, want %v", last, want[p.turns])
	}
	steps, err := lab.ReadSteps(filepath.Join(root, "events.jsonl"))
	if err != nil {
		return err
	}
	var numbers []int
	for _, s := range steps {
		numbers = append(numbers, s.Iteration)
	}
	if fmt.Sprint(numbers) != "[1 2 3 4]" {
		return fmt.Errorf("its event log has the steps of turns %v", numbers)
	}
	return headed(filepath.Join(root, "events.jsonl"))
}

// headed reports whether a log has its header, once and first, and its footer last.
func headed(log string) error {
	raw, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	if n := strings.Count(string(raw), `{"event":"header"`); n != 1 ||
		!strings.HasPrefix(lines[0], `{"event":"header"`) {
		return fmt.Errorf("its event log has %d headers, or not in the first line", n)
	}
	if !strings.HasPrefix(lines[len(lines)-1], `{"event":"footer"`) {
		return fmt.Errorf("its event log has no footer")
	}
	return nil
}

// TestACommittedTurnSurvivesALossOfPower: wherever it comes, the job that is resumed goes on
// after the last turn that was committed, or after the one that was about to be, comes
// to the same taskResult, and its event log has every step once.
func TestACommittedTurnSurvivesALossOfPower(t *testing.T) {
	root, data, in := t.TempDir(), t.TempDir(), numbersFile(t, "1 2 3\n4 5\n")
	r := crash.Record(t, root)
	p := &counting{turns: 4, args: textArgs{in}}
	p.each = func(turn int) {
		if turn > 1 {
			r.Promise() // the turn before is committed
		}
	}
	if err := p.run(t, root, data, false); err != nil {
		t.Fatal(err)
	}
	r.Promise()
	r.End(t)
	faults, states := 0, 0
	for s := range r.States(t) {
		again := &counting{turns: 4, args: textArgs{in}}
		if err := again.resumed(t, s.Put(t), data, s.Promised, p.sums); err != nil && faults < mostFaults {
			t.Errorf("%v, after %d turns were committed: %v", s, s.Promised, err)
			faults++
		}
		states++
	}
	t.Logf("%d operations, %d states", len(r.Ops()), states)
}

// TestAValueThatIsSavedIsOldOrNew, wherever the power fails, and new from the end on.
func TestAValueThatIsSavedIsOldOrNew(t *testing.T) {
	root := t.TempDir()
	save := func(word string) {
		cfg := testConfig(t)
		cfg.Executors, cfg.OutDir = 1, root
		_, err := volley.Run(context.Background(), cfg, "value", textArgs{},
			func(g *rdd.Graph, _ textArgs) rdd.Action[int64] {
				return rdd.Count(rdd.Range(g, 0, 3, 1))
			}, func(ctx context.Context, s *rdd.Session, _ textArgs, _ rdd.Action[int64]) (string, error) {
				return "end", rdd.Save(ctx, s, "value", word)
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	save("old")
	r := crash.Record(t, root)
	save("new")
	r.Promise()
	r.End(t)
	for s := range r.States(t) {
		raw, _ := os.ReadFile(filepath.Join(s.Put(t), "value.json"))
		if got := strings.TrimSpace(string(raw)); got != `"new"` && (got != `"old"` || s.Promised > 0) {
			t.Errorf("%v: %q", s, got)
		}
	}
}
