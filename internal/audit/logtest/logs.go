package logtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/prioritizer"
)

// Run is a job of two executors in virtual time that writes its event log. Its executors fold
// what they are told to.
type Run struct {
	t       testing.TB
	cfg     driver.JobConfig
	options driver.LogOptions
	job     *driver.Job
	now     plan.Time
	packs   []driver.PackInfo
	mine    map[plan.ExecutorID]*wire.StartStep
	done    *driver.StepReport
	step    uint32 // of the wire
	lines   []any
	steps   int
}

func newRun(t testing.TB, cfg driver.JobConfig) *Run {
	cfg.ID, cfg.Executors, cfg.Record, cfg.Fingerprint = "job", 2, true, plan.Digest{7}
	r := &Run{t: t, cfg: cfg, options: driver.OptionsOf(cfg)}
	r.options.Slots, r.options.Clock = 1, "virtual"
	r.begin()
	return r
}

// begin begins a life of the job: both executors join.
func (r *Run) begin() {
	r.job, r.packs = driver.NewJob(r.cfg, r.now), nil
	for _, id := range []plan.ExecutorID{"a", "b"} {
		r.tell(driver.Event{Joined: &driver.Joined{Executor: id, Slots: 1}})
		made := &wire.Prepared{Fingerprint: r.cfg.Fingerprint[:]}
		r.hear(id, &wire.ToDriver{Body: &wire.ToDriver_Prepared{Prepared: made}})
	}
}

func (r *Run) hear(from plan.ExecutorID, m *wire.ToDriver) {
	r.tell(driver.Event{Message: &driver.Message{From: from, Body: m}})
}

func (r *Run) tell(ev driver.Event) {
	var held []func()
	for _, c := range r.job.Step(ev, r.now) {
		switch {
		case c.StepDone != nil:
			r.done = c.StepDone
		case c.Failed != nil:
			r.t.Fatal(c.Failed)
		case c.Send != nil && c.Send.Body.GetStartStep() != nil:
			r.mine[c.Send.To], r.step = c.Send.Body.GetStartStep(), c.Send.Body.GetStartStep().Step
		case c.Send != nil && c.Send.Body.GetHold() != nil:
			to, h := c.Send.To, c.Send.Body.GetHold()
			held = append(held, func() {
				r.hear(to, &wire.ToDriver{Body: &wire.ToDriver_Holding{Holding: &wire.Holding{Pack: h.Pack,
					Split: h.Split}}})
			})
		}
	}
	for _, do := range held {
		do()
	}
}

// open opens a pack. The first is the header's, others have lines.
func (r *Run) open(rows []int64, weights []float64, entries []int64) {
	p := driver.PackInfo{Rows: rows, Weights: weights, Entries: entries, Bytes: make([]int64, len(rows)),
		SHA256: make([]plan.Digest, len(rows))}
	for i := range rows {
		p.SHA256[i] = plan.DigestOf(fmt.Append(nil, len(r.packs), i))
	}
	if r.packs = append(r.packs, p); len(r.packs) > 1 {
		r.lines = append(r.lines, driver.LogPack{Event: "pack", Pack: len(r.packs) - 1, N: rows, Weights: weights,
			Entries: entries, Splits: p.SHA256})
	}
	r.tell(driver.Event{Pack: &p})
}

// fold runs a step in which each split has a given number of rows folded; −1 is nothing that arrives.
func (r *Run) fold(req plan.StepRequest, counts ...int64) {
	r.mine, r.done = map[plan.ExecutorID]*wire.StartStep{}, nil
	r.tell(driver.Event{Step: &req})
	r.now += 100 * time.Millisecond
	each := func(id plan.ExecutorID) (p *wire.Progress, res *wire.Result) {
		p, res = &wire.Progress{Step: r.step}, &wire.Result{Step: r.step, BusyNs: 1e8}
		for _, a := range r.mine[id].GetTasks() {
			n := counts[a.Split]
			if n < 0 {
				continue
			}
			units := n
			c := &wire.Coverage{Split: a.Split, Attempt: a.Attempt, Epoch: a.Epoch, Cursor: a.Cursor, Count: uint64(n),
				Folded: uint64(n)}
			pack := r.packs[req.Pack]
			if req.Entries {
				c.Entries = uint64(pack.Entries[a.Split] * n / pack.Rows[a.Split])
				units = int64(c.Entries)
			}
			if req.Weighted {
				c.Weight = pack.Weights[a.Split] * float64(n) / float64(pack.Rows[a.Split])
			}
			p.Counts = append(p.Counts, &wire.Count{Split: a.Split, Attempt: a.Attempt, Epoch: a.Epoch,
				Processed: uint64(units)})
			res.Coverage = append(res.Coverage, c)
		}
		return p, res
	}
	for _, id := range []plan.ExecutorID{"b", "a"} {
		p, _ := each(id)
		r.hear(id, &wire.ToDriver{Body: &wire.ToDriver_Progress{Progress: p}})
	}
	for _, id := range []plan.ExecutorID{"a", "b"} {
		if _, res := each(id); len(res.Coverage) > 0 && r.done == nil {
			r.hear(id, &wire.ToDriver{Body: &wire.ToDriver_Result{Result: res}})
		}
	}
	for n := 0; r.done == nil && n < 100; n++ { // what does not come is given up
		r.now += 100 * time.Millisecond
		r.tell(driver.Event{})
	}
	if r.done == nil {
		r.t.Fatal("the step does not end")
	}
	r.line(req)
}

// line writes a step's line.
func (r *Run) line(req plan.StepRequest) {
	reports := driver.LogReports{Reports: r.done.Reports}
	if !req.Train {
		e := driver.EvaluationLine(r.done, plan.Digest{9})
		e.LogReports = reports
		r.lines = append(r.lines, e)
		return
	}
	r.steps++
	s := driver.StepLine(r.done)
	s.LogReports, s.Iteration, s.Params = reports, r.steps, plan.Digest{byte(r.steps)}
	s.Phases.Update = int64(time.Millisecond)
	r.now += time.Millisecond
	r.lines = append(r.lines, s)
}

// resume begins the job's next life from where its packs are.
func (r *Run) resume() {
	var from []*driver.Restored
	for i := range r.packs {
		from = append(from, r.job.Ledger(i))
	}
	packs := r.packs
	r.now = 0
	r.cfg.Life, r.cfg.Again = r.cfg.Life+1, true
	r.begin()
	for i, p := range packs {
		r.reopen(p, from[i])
	}
}

// reopen opens a pack that the job has had in a life before.
func (r *Run) reopen(p driver.PackInfo, from *driver.Restored) {
	r.packs = append(r.packs, p)
	r.tell(driver.Event{Pack: &p})
	l := driver.LogResume{Event: "resume", Pack: from.Pack, Step: from.Steps, Options: r.options}
	for _, e := range from.Entries {
		l.Cursor, l.Merged = append(l.Cursor, e.Cursor), append(l.Merged, e.Merged)
	}
	r.lines = append(r.lines, l)
	r.tell(driver.Event{Restore: from})
}

// Written returns the lines of the log, header and footer included.
func (r *Run) Written() (out [][]byte) {
	p := r.packs[0]
	h := driver.LogHeader{Event: "header", Version: driver.LogVersion, Job: "job", Plan: r.cfg.Fingerprint,
		Args: json.RawMessage("{}"), Options: r.options, N: p.Rows, Weights: p.Weights, Entries: p.Entries,
		Splits: p.SHA256}
	f := driver.LogFooter{Event: "footer", StoppedBy: "iterations"}
	for _, l := range r.lines {
		switch l.(type) {
		case *driver.LogStep:
			f.Steps++
		case *driver.LogEvaluation:
			f.Evaluations++
		}
	}
	for _, l := range slices.Concat([]any{h}, r.lines, []any{f}) {
		raw, err := json.Marshal(l)
		if err != nil {
			r.t.Fatal(err)
		}
		out = append(out, append(raw, '\n'))
	}
	return Seal(out)
}

// Seal has the footer of a log count its lines, and hash them.
func Seal(lines [][]byte) [][]byte {
	last := len(lines) - 1
	var f map[string]any
	if json.Unmarshal(lines[last], &f) != nil || f["event"] != "footer" {
		return lines
	}
	sum := sha256.Sum256(bytes.Join(lines[:last], nil))
	f["lines"], f["sha256"] = last, hex.EncodeToString(sum[:])
	raw, _ := json.Marshal(f)
	lines[last] = append(raw, '\n')
	return lines
}

// Large returns a log of a job under absp with a number of splits and steps, each of which leaves rows out.
func Large(t testing.TB, splits, steps int) [][]byte {
	r := newRun(t, driver.JobConfig{Sync: abss.Config{Policy: abss.ABSP, Ratio: 0.5, MinRows: 10}})
	rows, counts := make([]int64, splits), make([]int64, splits)
	for i := range rows {
		rows[i], counts[i] = 100, 60+40*int64(i%2)
	}
	r.open(rows, nil, nil)
	for range steps {
		r.fold(plan.StepRequest{Train: true, Param: []byte("w"), Node: 2}, counts...)
	}
	return r.Written()
}

// Runs are the runs of the stories, by name.
var Runs = map[string]func(testing.TB) *Run{
	"absp": func(t testing.TB) *Run {
		r := newRun(t, driver.JobConfig{Sync: abss.Config{Policy: abss.ABSP, Ratio: 0.5, MinRows: 10}})
		r.open([]int64{100, 200, 100, 100, 100, 100}, nil, nil)
		train := plan.StepRequest{Train: true, Param: []byte("w"), Node: 2}
		r.fold(train, 100, 120, 60, 60, 60, 60)
		r.fold(train, 100, 120, 60, 60, 60, -1)
		r.fold(plan.StepRequest{Param: []byte("w"), Node: 3}, 100, 200, 100, 100, 100, 100)
		r.fold(train, 100, 200, 100, 100, 100, 100)
		return r
	},
	"bsp": func(t testing.TB) *Run {
		r := newRun(t, driver.JobConfig{FixedCursors: true})
		r.open([]int64{100, 50}, nil, nil)
		r.fold(plan.StepRequest{Train: true}, 100, 50)
		r.fold(plan.StepRequest{Train: true}, 100, 50)
		return r
	},
	"whole": func(t testing.TB) *Run { // absp of ratio 1 leaves nothing out, but what is missing
		r := newRun(t, driver.JobConfig{Sync: abss.Config{Policy: abss.ABSP, Ratio: 1}})
		r.open([]int64{100, 100}, nil, nil)
		r.fold(plan.StepRequest{Train: true}, 100, 100)
		return r
	},
	"batch": func(t testing.TB) *Run {
		r := newRun(t, driver.JobConfig{BatchFraction: 0.25})
		r.open([]int64{100, 3}, nil, nil)
		r.fold(plan.StepRequest{Train: true}, 25, 1)
		r.fold(plan.StepRequest{Train: true, Batch: 0.5}, 50, 2)
		return r
	},
	"auto": func(t testing.TB) *Run { // the first step shows that b has half of a's speed
		r := newRun(t, driver.JobConfig{Sync: abss.Config{Policy: abss.Automatic, Ratio: 0.6, MinRatio: 0.4}})
		r.open([]int64{1000, 500}, nil, nil)
		r.fold(plan.StepRequest{Train: true}, 1000, 500)
		r.tell(driver.Event{Signal: &driver.Signal{Spread: 3, Norm: 1}})
		r.fold(plan.StepRequest{Train: true}, 1000, 200)
		return r
	},
	"weights": func(t testing.TB) *Run {
		r := newRun(t, driver.JobConfig{Sync: abss.Config{Policy: abss.ABSP, MinRows: 1}})
		r.open([]int64{100, 100}, []float64{50, 200}, nil)
		r.fold(plan.StepRequest{Train: true, Weighted: true}, 100, 60)
		return r
	},
	"entries": func(t testing.TB) *Run {
		r := newRun(t, driver.JobConfig{Sync: abss.Config{Policy: abss.ABSP, MinRows: 1}})
		r.open([]int64{100, 100}, nil, []int64{1000, 4000})
		r.fold(plan.StepRequest{Train: true, Entries: true}, 100, 60)
		return r
	},
	"packs": func(t testing.TB) *Run {
		r := newRun(t, driver.JobConfig{})
		r.open([]int64{100, 100}, nil, nil)
		r.open([]int64{30}, []float64{5}, nil)
		r.fold(plan.StepRequest{Train: true, Pack: 1}, 30)
		r.fold(plan.StepRequest{Pack: 0}, 100, 100)
		return r
	},
	"resumed": func(t testing.TB) *Run {
		r := newRun(t, driver.JobConfig{Sync: abss.Config{Policy: abss.ABSP, MinRows: 1}})
		r.open([]int64{100, 100}, nil, nil)
		r.fold(plan.StepRequest{Train: true}, 100, 60)
		r.resume()
		r.fold(plan.StepRequest{Train: true}, 100, 70)
		return r
	},
	"resumed-twice": func(t testing.TB) *Run { // a life of two steps, and one that begins with a pass
		r := newRun(t, driver.JobConfig{Sync: abss.Config{Policy: abss.ABSP, MinRows: 1}})
		r.open([]int64{100, 100}, nil, nil)
		r.fold(plan.StepRequest{Train: true}, 100, 60)
		r.resume()
		r.fold(plan.StepRequest{Train: true}, 100, 70)
		r.fold(plan.StepRequest{Train: true}, 100, 70)
		r.resume()
		r.fold(plan.StepRequest{}, 100, 100)
		r.fold(plan.StepRequest{Train: true}, 100, 80)
		return r
	},
	"resumed-packs": func(t testing.TB) *Run { // the second one after a step of the first
		r := newRun(t, driver.JobConfig{Sync: abss.Config{Policy: abss.ABSP, MinRows: 1}})
		r.open([]int64{100, 100}, nil, nil)
		r.open([]int64{30, 30}, nil, nil)
		r.fold(plan.StepRequest{Train: true}, 100, 60)
		second, from := r.packs[1], r.job.Ledger(1)
		r.packs = r.packs[:1]
		r.resume()
		r.fold(plan.StepRequest{Train: true}, 100, 70)
		from.Steps++ // of the job
		r.reopen(second, from)
		r.fold(plan.StepRequest{Train: true, Pack: 1}, 30, 20)
		return r
	},
	"one-row": func(t testing.TB) *Run {
		r := newRun(t, driver.JobConfig{})
		r.open([]int64{1, 100}, nil, nil)
		r.fold(plan.StepRequest{Train: true}, 1, 100)
		r.fold(plan.StepRequest{Train: true}, 1, 100)
		return r
	},
	"stranger": func(t testing.TB) *Run { // a third executor comes, of another plan, and says that it holds splits
		r := newRun(t, driver.JobConfig{})
		r.open([]int64{100, 100, 100}, nil, nil)
		r.fold(plan.StepRequest{Train: true}, 100, 100, 100)
		r.tell(driver.Event{Joined: &driver.Joined{Executor: "c", Slots: 1}})
		r.hear("c", &wire.ToDriver{Body: &wire.ToDriver_Prepared{Prepared: &wire.Prepared{
			Fingerprint: make([]byte, len(plan.Digest{}))}}})
		for i := range uint32(3) {
			r.hear("c", &wire.ToDriver{Body: &wire.ToDriver_Holding{Holding: &wire.Holding{Split: i}}})
		}
		r.fold(plan.StepRequest{Train: true}, 100, 100, 100)
		return r
	},
	"continued": func(t testing.TB) *Run { // from another run's checkpoint, under options of its own
		r := newRun(t, driver.JobConfig{Sync: abss.Config{Policy: abss.ABSP, MinRows: 1}})
		r.open([]int64{100, 100}, nil, nil)
		r.fold(plan.StepRequest{Train: true}, 100, 60)
		r.lines = nil
		r.cfg.Sync.Ratio = 0.7
		r.options.Ratio = 0.7
		r.resume()
		r.fold(plan.StepRequest{Train: true}, 100, 70)
		return r
	},
	"moved": func(t testing.TB) *Run {
		r := newRun(t, driver.JobConfig{Sync: abss.Config{Policy: abss.ABSP, MinRows: 1},
			Exchange: prioritizer.ExchangeConfig{Mode: prioritizer.PaperLiteral, Threshold: 1}})
		r.open([]int64{100, 100}, nil, nil)
		for range 4 {
			r.fold(plan.StepRequest{Train: true}, 100, 10)
		}
		return r
	},
	"deadline": func(t testing.TB) *Run {
		r := newRun(t, driver.JobConfig{Sync: abss.Config{Policy: abss.Deadline, MinRows: 1, Grace: time.Millisecond}})
		r.options.Clock = "real" // no clock wakes it when it wants to be
		r.open([]int64{100, 100}, nil, nil)
		r.fold(plan.StepRequest{Train: true}, 60, 60)
		r.fold(plan.StepRequest{Train: true}, 40, 40)
		return r
	},
}

func number(t testing.TB, word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return n
}

// Changed returns a line with another value at a path; nil takes it out.
func Changed(t testing.TB, line []byte, path string, v any) []byte {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	var all map[string]any
	if err := dec.Decode(&all); err != nil {
		t.Fatalf("%v", err)
	}
	keys := strings.Split(path, ".")
	var at any = all
	for _, k := range keys[:len(keys)-1] {
		if m, ok := at.(map[string]any); ok {
			at = m[k]
		} else {
			at = at.([]any)[number(t, k)]
		}
	}
	last := keys[len(keys)-1]
	switch m := at.(type) {
	case map[string]any:
		if m[last] = v; v == nil {
			maps.DeleteFunc(m, func(k string, _ any) bool { return k == last })
		}
	case []any:
		m[number(t, last)] = v
	default:
		t.Fatalf("there is no %s", path)
	}
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return append(raw, '\n')
}
