package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/internal/audit/logtest"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
	"github.com/volley-engine/volley/storage/shuffle"
)

// sums is a small program: a step over sparse rows with weights, and a pass over others.
type sums struct {
	step  rdd.Step[float64, float64]
	pass  rdd.Step[float64, float64]
	count rdd.Action[int64]
}

type sumsArgs struct{ Rows int64 }

func buildSums(g *rdd.Graph, a sumsArgs) sums {
	points := rdd.Map(rdd.Range(g, 0, a.Rows, 4), func(n int64) rdd.Point {
		return rdd.Point{Indices: []int32{int32(n % 5), 5}[:1+n%2], Values: []float64{1, 2}[:1+n%2],
			Weight: float64(1 + n%3)}
	})
	add := func(a, b float64) float64 { return a + b }
	agg := rdd.Aggregator[float64, rdd.Point, float64]{Zero: func(float64) float64 { return 0 }, Merge: add,
		Scale: func(a, f float64) float64 { return a * f },
		Add:   func(a, _ float64, p rdd.Point) float64 { return a + p.Weight*float64(len(p.Indices)) }, Weighted: true,
		Entries: true}
	whole := rdd.Pack(rdd.Map(rdd.Range(g, 0, 30, 2), func(n int64) float64 { return float64(n) }), rdd.Splits(2))
	return sums{rdd.Aggregate(rdd.Pack(points, rdd.Splits(3)), agg, rdd.Aggressive(0)),
		rdd.Aggregate(whole, rdd.Aggregator[float64, float64, float64]{Zero: func(float64) float64 { return 0 },
			Add: func(a, p, n float64) float64 { return a + p*n }, Merge: add}),
		rdd.Count(rdd.Range(g, 0, 7, 2))}
}

func runSums(ctx context.Context, s *rdd.Session, _ sumsArgs, p sums) (string, error) {
	state := 0.0
	if n, err := p.count.Run(ctx, s); err != nil || n != 7 {
		return "", fmt.Errorf("%d, %w", n, err)
	}
	for it := range rdd.Iterations(ctx, s, &state, 3) {
		sum, err := p.step.Run(ctx, s, state)
		if err != nil {
			return "", err
		}
		it.Report("sum", sum)
		it.Report("nothing", math.NaN())
		s.Signal(3, 1)
		state += sum
		total, err := p.pass.Run(ctx, s, state)
		if err != nil {
			return "", err
		}
		s.Evaluated(rdd.Evaluation{Iteration: it.Number, Objective: total})
	}
	return "iterations", s.Err()
}

// ran is a run of a program, and its log.
type ran struct {
	data, log string
	// build puts the program into g, and returns how it is run.
	build func(g *rdd.Graph, rows int64) func(ctx context.Context, s *rdd.Session) error
}

func runOnce(t *testing.T, job driver.JobConfig) ran { return runProgram(t, job, buildSums, runSums) }

func runProgram[P any](t *testing.T, job driver.JobConfig, build func(*rdd.Graph, sumsArgs) P,
	run func(context.Context, *rdd.Session, sumsArgs, P) (string, error)) ran {
	r := ran{data: t.TempDir(), log: filepath.Join(t.TempDir(), "log")}
	r.build = func(g *rdd.Graph, rows int64) func(context.Context, *rdd.Session) error {
		p := build(g, sumsArgs{rows})
		return func(ctx context.Context, s *rdd.Session) error {
			_, err := run(ctx, s, sumsArgs{rows}, p)
			return err
		}
	}
	cfg := volley.Config{Executors: 2, DataDir: r.data, OutDir: t.TempDir(), EventLog: r.log, Job: job}
	if _, err := volley.Run(context.Background(), cfg, "sums", sumsArgs{60}, build, run); err != nil {
		t.Fatal(err)
	}
	return r
}

// readLog reads a log of these lines.
func readLog(t *testing.T, lines [][]byte) (*audit.Log, error) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return audit.Read(path)
}

// replay replays the log once it has been changed, and the replay that was prepared.
func (r ran) replay(t *testing.T, rows int64, change func([][]byte) [][]byte, prepared func(*Replay)) (*Replay, error) {
	raw, err := os.ReadFile(r.log)
	if err != nil {
		t.Fatal(err)
	}
	l, err := readLog(t, logtest.Seal(change(bytes.SplitAfter(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n")))))
	if err != nil {
		t.Fatal(err)
	}
	g := rdd.NewGraph()
	run := r.build(g, rows)
	if _, err := g.Resolve(context.Background()); err != nil {
		t.Fatal(err)
	}
	cache, err := pack.OpenCache(r.data, 0)
	if err != nil {
		t.Fatal(err)
	}
	splits, err := pack.NewHeld(filepath.Join(t.TempDir(), "splits"))
	if err != nil {
		t.Fatal(err)
	}
	defer splits.Close()
	outputs, err := shuffle.NewOutputs(filepath.Join(t.TempDir(), "outputs"))
	if err != nil {
		t.Fatal(err)
	}
	defer outputs.Close()
	maker := &rdd.Maker{Graph: g, Cache: cache, Workers: 1}
	defer maker.Close()
	c, err := New(l, g, splits, outputs, maker)
	if err != nil {
		return nil, err
	}
	prepared(c)
	if err = run(context.Background(), rdd.NewSession(g, c, rdd.Config{})); err == nil {
		err = c.End()
	}
	return c, err
}

func unchanged(l [][]byte) [][]byte { return l }

// nth is the line of the n-th step or pass.
func (r *Replay) nth(step bool, n int) *audit.Line {
	for i := range r.log.Lines {
		if l := &r.log.Lines[i]; (l.Step != nil) == step {
			if n--; n == 0 {
				return l
			}
		}
	}
	return nil
}

func (r *Replay) step(n int) *driver.LogStep       { return r.nth(true, n).Step }
func (r *Replay) pass(n int) *driver.LogEvaluation { return r.nth(false, n).Evaluation }

// TestAReplayComparesWhatFollowsFromTheData: everything that a log says of the data and the
// program, be it false, is named.
func TestAReplayComparesWhatFollowsFromTheData(t *testing.T) {
	run := runOnce(t, driver.JobConfig{Sync: abss.Config{Policy: abss.Automatic, Ratio: 0.5}})
	c, err := run.replay(t, 60, unchanged, func(*Replay) {})
	if err != nil || c.Steps != 3 || c.Passes != 3 || c.Left() != 0 {
		t.Fatalf("as it was: %v, %+v", err, c)
	}
	if c.Now() <= 0 {
		t.Errorf("its clock stands at %v", c.Now())
	}
	header := func(r *Replay) *driver.LogHeader { return r.log.Header }
	for _, tc := range []struct {
		want string
		edit func(*Replay)
	}{
		{"it makes 3 splits, the log has 2", func(r *Replay) { r.hashes[0] = r.hashes[0][:2] }},
		{"the log has 2 splits, with weights true, with entries true; the data 3, true, true",
			func(r *Replay) { header(r).N = header(r).N[:2] }},
		{"with weights false", func(r *Replay) { header(r).Weights = nil }},
		{"with entries false", func(r *Replay) { header(r).Entries = nil }},
		{"split 1 has", func(r *Replay) { header(r).N[1]++ }},
		{"split 2 has", func(r *Replay) { header(r).Weights[2]++ }},
		{"split 0 has", func(r *Replay) { header(r).Entries[0]++ }},
		{"split 2 has", func(r *Replay) { header(r).Entries = header(r).Entries[:2] }},
		{"split 2 has", func(r *Replay) { header(r).Weights = header(r).Weights[:2] }},
		{"split 1 has hash", func(r *Replay) { r.hashes[0][1] = plan.Digest{1} }},
		{"replay the data of log: split 0 has 15 rows", func(r *Replay) { r.described[0].N[0]++ }},
		{"with entries true; the data 2, false, false", func(r *Replay) { r.described[0].Entries = []int64{1, 2} }},
		{"is of pack 1, the program runs it on 0", func(r *Replay) { r.step(2).Pack = 1 }},
		{"folds the share 0.5 of each split, the program asks for 0", func(r *Replay) { r.step(2).Batch = 0.5 }},
		{"has the ratio 0.5, the program and the gradients before it give 0.625",
			func(r *Replay) { r.step(2).Ratio = 0.5 }},
		{"has the ratio 1, which only auto has", func(r *Replay) { header(r).Options.Sync = "absp" }},
		{"the parameters' digest is", func(r *Replay) { r.step(3).Params = plan.Digest{1} }},
		{"it is iteration 2, the log says 9", func(r *Replay) { r.step(2).Iteration = 9 }},
		{"the values are map[sum:", func(r *Replay) { r.step(1).Values["sum"]++ }},
		{"the values are map[sum:", func(r *Replay) { r.step(1).Values = nil }},
		{"the rows merged of split 1 weigh", func(r *Replay) { r.step(2).Weight[1]++ }},
		{"its parameter is", func(r *Replay) { r.pass(1).Params = plan.Digest{1} }},
		{"is of node 99 and pack 1, the program runs", func(r *Replay) { r.pass(1).Node = 99 }},
		{"and pack 0, the program runs", func(r *Replay) { r.pass(1).Pack = 0 }},
		{"after iteration 2 the objective is", func(r *Replay) { *r.pass(2).Objective++ }},
		{"the log has none after iteration 2", func(r *Replay) { r.pass(2).Objective = nil }},
		{"after iteration 5", func(r *Replay) { r.pass(3).Iteration = 5 }},
		{"is not the kind of step that the program runs",
			func(r *Replay) { r.log.Lines[0], r.log.Lines[1] = r.log.Lines[1], r.log.Lines[0] }},
	} {
		if _, err := run.replay(t, 60, unchanged, tc.edit); err == nil || !strings.Contains(err.Error(), tc.want) ||
			fault.KindOf(err) != fault.Corrupt {
			t.Errorf("want %q: %v", tc.want, err)
		}
	}
}

// TestAReplayComparesEntries of steps that are not leased, which auto's may be.
func TestAReplayComparesEntries(t *testing.T) {
	run := runOnce(t, driver.JobConfig{Sync: abss.Config{Policy: abss.ABSP, Ratio: 0.5}})
	for want, edit := range map[string]func(*Replay){
		"the rows merged of split 1 have": func(r *Replay) { r.step(2).Entries[1]++ },
		"2 weights and 3 counts of entries are of 3 splits": func(r *Replay) {
			r.step(2).Weight = r.step(2).Weight[:2]
		},
		"3 weights and 2 counts of entries are of 3 splits": func(r *Replay) {
			r.step(2).Entries = r.step(2).Entries[:2]
		},
	} {
		if _, err := run.replay(t, 60, unchanged, edit); err == nil || !strings.Contains(err.Error(), want) ||
			fault.KindOf(err) != fault.Corrupt {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// TestAReplayIsOfTheSameProgramFromItsBeginning, to the log's end.
func TestAReplayIsOfTheSameProgramFromItsBeginning(t *testing.T) {
	run := runOnce(t, driver.JobConfig{Sync: abss.Config{Policy: abss.Automatic, Ratio: 0.5}})
	cut := func(r *Replay) { r.log.Lines, r.parts[0].until = r.log.Lines[:5], 5 }
	if _, err := run.replay(t, 60, unchanged, cut); !errors.Is(err, ErrLogEnds) {
		t.Errorf("a log that ends: %v", err)
	}
	more := func(r *Replay) { r.hashes = r.hashes[:1] }
	if _, err := run.replay(t, 60, unchanged, more); err != nil {
		t.Errorf("a program that opens a pack more: %v", err)
	}
	twice := func(r *Replay) { r.log.Lines = append(r.log.Lines, r.log.Lines...) }
	if c, err := run.replay(t, 60, unchanged, twice); err != nil || c.Left() != 6 {
		t.Errorf("a log that goes on: %v", err)
	}
	for name, c := range map[string]struct {
		rows   int64
		change func([][]byte) [][]byte
		want   string
	}{
		"another program": {61, unchanged, "the log's plan is"},
		"a false line": {60, func(l [][]byte) [][]byte {
			at := slices.IndexFunc(l, func(l []byte) bool { return bytes.HasPrefix(l, []byte(`{"event":"step"`)) })
			l[at] = logtest.Changed(t, l[at], "share", 0.25)
			return l
		}, "the log has 0.25"},
		"a resumed run": {60, func(l [][]byte) [][]byte {
			other := logtest.Runs["continued"](t).Written()
			other[0] = logtest.Changed(t, other[0], "plan", planOf(l[0]))
			other[2] = logtest.Changed(t, logtest.Changed(t, other[2], "reports", nil), "reports_left_out", true)
			return other
		}, "it begins at step 1, from a checkpoint"},
	} {
		if _, err := run.replay(t, c.rows, c.change, func(*Replay) {}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func planOf(header []byte) string {
	at := bytes.Index(header, []byte(`"plan":"`)) + len(`"plan":"`)
	return string(header[at : at+64])
}

// TestWhatAProgramTellsOfNoPassIsNone, and what it does not tell of one is not in the log.
func TestWhatAProgramTellsOfNoPassIsNone(t *testing.T) {
	one := 1.0
	for want, pass := range map[string]*driver.LogEvaluation{
		"": {}, "the log has the objective 1 after iteration 0": {Objective: &one},
		"the log has the objective none after iteration 3": {Iteration: 3}} {
		r := &Replay{log: &audit.Log{Path: "log"}, passed: pass}
		if err := r.End(); fmt.Sprint(err) == "<nil>" != (want == "") || err != nil &&
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
		settled := r.wrong
		if r.Evaluated(rdd.Evaluation{Iteration: 4}); r.passed != nil || r.wrong != settled {
			t.Errorf("the pass has been settled: %v", r.wrong)
		}
	}
}

// TestALimitOfTimeIsReachedWhereTheLogSaysSo: at its last step, and not before.
func TestALimitOfTimeIsReachedWhereTheLogSaysSo(t *testing.T) {
	step := func() audit.Line { return audit.Line{Step: &driver.LogStep{}} }
	r := &Replay{log: &audit.Log{Lines: []audit.Line{step(), step(), {Evaluation: &driver.LogEvaluation{}}},
		Footer: &driver.LogFooter{StoppedBy: "max-time"}}, now: 5, parts: []part{{until: 3, lastTurn: 1}}}
	inStep := &driver.LogStep{}
	for at, want := range []bool{false, false, true, true} {
		r.next, r.current = at, inStep
		if (r.Now() > 1e9) != want {
			t.Errorf("before line %d it is %v", at, r.Now())
		}
	}
	if err := r.Commit(context.Background(), rdd.Commit{}); err != nil || r.Steps != 1 {
		t.Errorf("%v, %d steps", err, r.Steps)
	}
	if err := r.Commit(context.Background(), rdd.Commit{Iteration: 3}); err != nil || r.Steps != 1 {
		t.Errorf("what is committed without a step is none of the log's: %v", err)
	}
	r.current, r.log.Footer.StoppedBy = inStep, "iterations"
	if r.Now() != 5 {
		t.Error("it is not reached where something else stopped the run")
	}
	r.parts = []part{{until: 2, over: true, lastTurn: 1}, {until: 3, lastTurn: 2}}
	for at, want := range []bool{false, false, true} {
		r.next, r.current = at, nil
		if (r.Now() > 1e9) != want {
			t.Errorf("before line %d, of a part that was over after two, it is %v", at, r.Now())
		}
	}
}

// TestAnIterationWithoutAStep is compared with what the line of its last pass has of it.
func TestAnIterationWithoutAStep(t *testing.T) {
	digest := plan.DigestOf([]byte("parameters"))
	said := rdd.Commit{Iteration: 2, Digest: digest, Values: map[string]float64{"objective": 0.5}}
	for name, c := range map[string]struct {
		commit *driver.LogCommit
		want   string
	}{
		"true":             {&driver.LogCommit{Iteration: 2, Params: digest, Values: said.Values}, ""},
		"none":             {nil, "the log has none"},
		"another":          {&driver.LogCommit{Iteration: 3, Params: digest, Values: said.Values}, "it is iteration 2"},
		"other values":     {&driver.LogCommit{Iteration: 2, Params: digest}, "the values are"},
		"another's digest": {&driver.LogCommit{Iteration: 2, Values: said.Values}, "the parameters' digest is"},
	} {
		r := &Replay{log: &audit.Log{}, parts: []part{{}}, turn: &driver.LogEvaluation{Commit: c.commit}}
		err := r.Commit(context.Background(), said)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnEndThatIsNone: the log has the end of an iteration with a pass that the program does not end one by.
func TestAnEndThatIsNone(t *testing.T) {
	r := &Replay{log: &audit.Log{}, parts: []part{{}},
		turn: &driver.LogEvaluation{Commit: &driver.LogCommit{Iteration: 2}}}
	if err := r.End(); err == nil || !strings.Contains(err.Error(), "the end of iteration 2") {
		t.Error(err)
	}
}
