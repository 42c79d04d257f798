package sim

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/storage/pack"
)

// total is a result: how many rows it is of, and numbers that are summed.
type total struct {
	rows float64
	sums []float64
}

func (t *total) encode() []byte {
	out := make([]byte, 0, 8*(1+len(t.sums)))
	out = binary.LittleEndian.AppendUint64(out, math.Float64bits(t.rows))
	for _, v := range t.sums {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
	}
	return out
}

func decodeTotal(raw []byte) *total {
	t := &total{rows: math.Float64frombits(binary.LittleEndian.Uint64(raw)), sums: make([]float64, len(raw)/8-1)}
	for i := range t.sums {
		t.sums[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*(i+1):]))
	}
	return t
}

// adder merges totals, of a number of bytes.
type adder struct{ bytes int }

func (a adder) Zero() any { return a.of(0) }
func (a adder) of(rows int64) *total {
	return &total{float64(rows), make([]float64, max(1, a.bytes/8)-1)}
}
func (a adder) Weighted() bool               { return false }
func (a adder) State() int                   { return 0 }
func (a adder) Scale(v any, _ float64) any   { return v }
func (a adder) Close(v any, _ float64) any   { return v }
func (a adder) Encode(v any) ([]byte, error) { return v.(*total).encode(), nil }
func (a adder) acc(rows int64) *runner.Acc   { return &runner.Acc{Value: a.of(rows), Count: rows} }
func (a adder) parts(all []runner.Part) []*wire.Part {
	var out []*wire.Part
	for _, p := range all {
		out = append(out, &wire.Part{Level: int32(p.Level), Index: uint32(p.Index),
			Data: p.Acc.Value.(*total).encode()})
	}
	return out
}

func (a adder) Fold(acc any, _ *pack.Batch, from, to int, _ []float64) (any, int, error) {
	return acc, to - from, nil
}

// Merge adds b to a.
func (a adder) Merge(x, y any) any {
	t, u := x.(*total), y.(*total)
	t.rows += u.rows
	for i, v := range u.sums {
		t.sums[i] += v
	}
	return t
}

// crowdWorker counts the rows of an executor of a crowd.
type crowdWorker struct {
	s *crowd
	n *node
}

func (c *crowdWorker) plan(p *wire.Prepare) *executor.Planned {
	return &executor.Planned{Job: p.Job, Fingerprint: plan.DigestFromBytes(p.Fingerprint)}
}

func (c *crowdWorker) fetch(h *wire.Hold) *executor.Fetched {
	return &executor.Fetched{Hold: h, SHA256: plan.DigestFromBytes(h.Sha256)}
}

func (c *crowdWorker) begin(r *executor.Run) (func(int) (int64, int64), error) {
	return func(i int) (int64, int64) {
		rows := c.s.rows[r.Step.Tasks[i].Split]
		if limit := r.Step.Tasks[i].Limit; limit > 0 {
			return rows, int64(limit)
		}
		return rows, rows
	}, nil
}

func (c *crowdWorker) progress(_ *executor.Run, counts []int64) []int64 { return counts }

func (c *crowdWorker) finish(r *executor.Run, counts []int64, skip map[plan.SplitID]bool,
	busy time.Duration) *executor.Folded {
	out, f := &executor.Folded{Run: r.ID, Busy: busy}, adder{c.s.cfg.Accumulator}
	held, accs := map[int]bool{}, map[int]*runner.Acc{}
	for i, t := range r.Step.Tasks {
		if skip[plan.SplitID(t.Split)] {
			continue
		}
		held[int(t.Split)], accs[int(t.Split)] = true, f.acc(counts[i])
		out.Coverage = append(out.Coverage, executor.CoverageOf(t, counts[i], 0, accs[int(t.Split)]))
	}
	out.Parts = f.parts(runner.Reduce(f, len(c.s.rows), held, accs))
	return out
}

func (c *crowdWorker) beginLeased(*executor.Run) error { return nil }

func (c *crowdWorker) rowsOf(_ *executor.Run, l *wire.Lease) int64 {
	_, rows := plan.VisitedOf(c.s.rows[l.Task.Split], int64(l.Task.Cursor), int64(l.Task.Limit), int(l.Parts),
		int(l.Part))
	return rows
}

func (c *crowdWorker) failed(*executor.Run, *wire.Lease) *executor.Folded { return nil }

func (c *crowdWorker) addStates(*executor.Run, []*wire.Part) {}

func (c *crowdWorker) finishLeased(r *executor.Run, had []*wire.Lease, include []uint32,
	busy time.Duration) *executor.Folded {
	out, f := &executor.Folded{Run: r.ID, Busy: busy}, adder{c.s.cfg.Accumulator}
	wanted, pieces := map[uint32]bool{}, map[runner.PartOf]*runner.Acc{}
	for _, id := range include {
		wanted[id] = true
	}
	for _, l := range had {
		if !wanted[l.Id] {
			continue
		}
		rows := c.rowsOf(r, l)
		acc := f.acc(rows)
		pieces[runner.PartOf{Split: int(l.Task.Split), Part: int(l.Part), Parts: int(l.Parts)}] = acc
		out.Coverage = append(out.Coverage, executor.CoverageOf(l.Task, rows, 0, acc))
		out.Leases = append(out.Leases, l.Id)
	}
	out.Parts = f.parts(runner.ReduceParts(f, len(c.s.rows), pieces, func(int, *runner.Acc) {}))
	return out
}

func (c *crowdWorker) act(t *wire.RunTask) *wire.TaskResult {
	return &wire.TaskResult{Job: t.Job, Call: t.Call, Partition: t.Partition}
}
