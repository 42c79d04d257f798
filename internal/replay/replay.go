package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
	"github.com/volley-engine/volley/storage/shuffle"
)

// ErrLogEnds ends a replayed program where the log does.
var ErrLogEnds = errors.New("the log has no further step")

// Replay is a cluster that folds serially exactly what was folded by the log,
// and compares every digest. A program that runs on it repeats its run.
type Replay struct {
	log     *audit.Log
	program runner.Program
	splits  *pack.Held
	outputs *shuffle.Outputs
	maker   *rdd.Maker
	packs   []*pack.Pack
	hashes  [][]plan.Digest // of the splits of each pack, as the log has them
	nodes   []int
	states  map[[3]int][]float64 // the row state, by pack, node and split
	next    int                  // line
	current *driver.LogStep
	// described are the packs after the first, as the log has them; passed is a pass whose
	// objective the program has not reported yet, and wrong the reports that differ.
	described []*driver.LogPack
	passed    *driver.LogEvaluation
	turn      *driver.LogEvaluation // the last since something was committed
	wrong     error
	auto      *abss.Auto
	took      *audit.Report // when the lines' steps were; nil where the clock began anew in between
	now       time.Duration // when the last step ended
	parts     []part
	part      int
	loopFrom  int            // the first line of the present loop
	marks     []rdd.LoopMark // of the part before, and of the present one
	repeats   bool           // the passes that the log has are made again, until the loop goes on
	Steps     int            // whose digest was equal
	Passes    int            // evaluation passes whose parameter was equal
}

// New prepares to replay a log with a program that was built from its
// arguments.
func New(l *audit.Log, program runner.Program, splits *pack.Held, outputs *shuffle.Outputs, maker *rdd.Maker) (*Replay,
	error) {
	report := audit.Verify(l)
	if len(report.Violations) > 0 {
		return nil, fault.Newf(fault.Corrupt, "replay", l.Path, "%v", report.Violations[0])
	}
	l.Lines = slices.DeleteFunc(l.Lines, audit.Line.Shown)
	var lines []audit.Line // a run that continued from one of its own steps is replayed as if it had not stopped
	r := &Replay{log: l, parts: partsOf(l), splits: splits, outputs: outputs,
		hashes: [][]plan.Digest{l.Header.Splits}, states: map[[3]int][]float64{}}
	for _, line := range l.Lines {
		if line.Pack != nil {
			r.hashes, r.described = append(r.hashes, line.Pack.Splits), append(r.described, line.Pack)
		} else if line.Resume == nil {
			lines = append(lines, line)
		} else if len(lines) == 0 {
			return nil, fault.Newf(fault.BadInput, "replay", l.Path,
				"it begins at step %d, from a checkpoint: replay the log of the first run", line.Resume.Step)
		}
	}
	if !slices.ContainsFunc(l.Lines, func(l audit.Line) bool { return l.Resume != nil }) {
		if r.took = report; len(lines) > 0 {
			r.now, _, _ = report.Took(lines[0].Number)
		}
	}
	l.Lines = lines
	return r, r.Begin(0, program, maker)
}

// OpenPack checks that the data is what the log was made from.
func (r *Replay) OpenPack(ctx context.Context, node int, make rdd.PackMaker) (int, *pack.Meta, error) {
	if number := slices.Index(r.nodes, node); number >= 0 {
		return number, r.packs[number].Meta, nil
	}
	if r.maker.Graph.MadeByTask(node) {
		if _, err := make(ctx, node); err != nil {
			return 0, nil, err
		}
	}
	p, err := r.maker.Make(ctx, node)
	if err != nil {
		return 0, nil, err
	}
	if err := r.sameData(p); err != nil {
		return 0, nil, err
	}
	r.packs, r.nodes = append(r.packs, p), append(r.nodes, node)
	for i := range p.Meta.Splits {
		if _, err := r.splits.Adopt(pack.SplitKey{Node: node, Split: i}, p.Dir, p.Meta); err != nil {
			return 0, nil, err
		}
	}
	return len(r.packs) - 1, p.Meta, nil
}

func (r *Replay) sameData(p *pack.Pack) error {
	if len(r.packs) >= len(r.hashes) {
		return nil // no step of the log has it
	}
	want := r.hashes[len(r.packs)]
	if len(p.Meta.Splits) != len(want) {
		return r.differs("data", "it makes %d splits, the log has %d", len(p.Meta.Splits), len(want))
	}
	if err := r.sameSizes(len(r.packs), p.Meta); err != nil {
		return err
	}
	for i, s := range p.Meta.Splits {
		if s.SHA256 != want[i] {
			return r.differs("data", "split %d has hash %s, the log says %s", i, s.SHA256.Short(), want[i].Short())
		}
	}
	return nil
}

func (r *Replay) differs(what, format string, args ...any) error {
	return fault.Newf(fault.Corrupt, "replay the "+what+" of", filepath.Base(r.log.Path), format, args...)
}

// take returns the next line of the log, which must be of the given kind.
func (r *Replay) take(train bool) (*audit.Line, error) {
	if r.atEnd() {
		return nil, ErrLogEnds
	}
	l := &r.log.Lines[r.next]
	if (l.Step != nil) != train {
		return nil, r.differs("steps", "line %d is not the kind of step that the program runs", l.Number)
	}
	r.next++
	if r.took != nil {
		_, ended, _ := r.took.Took(l.Number)
		r.now = max(r.now, ended)
	}
	return l, nil
}

// RunStep folds serially what the log's step folded.
func (r *Replay) RunStep(_ context.Context, req plan.StepRequest) (*plan.StepOutcome, error) {
	if r.repeats && !req.Train {
		return r.repeat(req)
	}
	l, err := r.take(req.Train)
	if err != nil {
		return nil, err
	}
	if err := r.settled(); err != nil {
		return nil, err
	}
	if err := r.uncommitted(); err != nil {
		return nil, err
	}
	if l.Step != nil {
		if err := r.sameStep(l, req); err != nil {
			return nil, err
		}
		r.current, r.turn = l.Step, nil
		return r.fold(req, l.Step.C, l.Step.Cursor, l.Step)
	}
	if got := plan.DigestOf(req.Param); got != l.Evaluation.Params {
		return nil, r.differs("evaluation", "line %d: its parameter is %s, the log says %s", l.Number, got.Short(),
			l.Evaluation.Params.Short())
	}
	if err := r.samePass(l, req); err != nil {
		return nil, err
	}
	r.passed, r.turn = l.Evaluation, l.Evaluation
	r.Passes++
	return r.fold(req, l.Evaluation.C, make([]int64, len(l.Evaluation.C)), nil)
}

func (r *Replay) fold(req plan.StepRequest, counts, cursors []int64, s *driver.LogStep) (*plan.StepOutcome, error) {
	p, node := r.packs[req.Pack], r.nodes[req.Pack]
	newFolder, err := r.program.Folders(req.Node)
	if err != nil {
		return nil, err
	}
	f, err := newFolder(p.Meta, req.Param)
	if err != nil {
		return nil, err
	}
	zero, err := f.Encode(f.Zero())
	if err != nil {
		return nil, err
	}
	byRows := r.log.Header.Options.Weighting == "rows"
	out := &plan.StepOutcome{Splits: len(counts)}
	if s != nil && (s.Weight != nil && len(s.Weight) != len(counts) || s.Entries != nil &&
		len(s.Entries) != len(counts)) {
		return nil, r.differs(fmt.Sprintf("step %d", s.Step), "%d weights and %d counts of entries are of %d splits",
			len(s.Weight), len(s.Entries), len(counts))
	}
	held, accs := map[int]bool{}, map[int]*runner.Acc{}
	for i, c := range counts {
		held[i] = true
		out.Info.Rows += p.Meta.Splits[i].Rows
		if c == 0 {
			continue
		}
		split, err := r.splits.Open(pack.SplitKey{Node: node, Split: i})
		if err != nil {
			return nil, err
		}
		key := [3]int{req.Pack, req.Node, i}
		t := runner.NewSplitFold(f, split, cursors[i], 0,
			runner.Pieces(f, p.Meta, i, int64(len(zero)))).WithState(r.states[key])
		if s != nil && s.Entries != nil {
			t.CountEntries()
		}
		if _, err := t.Advance(c); err != nil {
			return nil, err
		}
		r.states[key] = t.State()
		accs[i] = t.Finish(req.Train && !byRows)
		if s != nil && s.Entries != nil && t.Progress() != s.Entries[i] {
			return nil, r.differs(fmt.Sprintf("step %d", s.Step),
				"the rows merged of split %d have %d entries, the log says %d", i, t.Progress(), s.Entries[i])
		}
		if s != nil && s.Weight != nil && t.Weight() != s.Weight[i] {
			return nil, r.differs(fmt.Sprintf("step %d", s.Step),
				"the rows merged of split %d weigh %v, the log says %v", i, t.Weight(), s.Weight[i])
		}
		out.Info.Merged += c
	}
	for _, part := range runner.Reduce(f, len(counts), held, accs) {
		data, err := f.Encode(part.Acc.Value)
		if err != nil {
			return nil, err
		}
		out.Parts = append(out.Parts, plan.EncodedPart{Level: part.Level, Index: part.Index, Data: data,
			Weight: part.Acc.Weight})
	}
	if s != nil {
		out.Info.Step, out.Info.Share, out.Info.NEff, out.Info.Cut = s.Step, s.Share, s.NEff, s.Cut
	}
	return out, nil
}

// Commit compares the parameters' digest with the log's.
func (r *Replay) Commit(_ context.Context, c rdd.Commit) error {
	r.keep(c)
	s, turn := r.current, r.turn
	r.turn = nil
	if turn != nil {
		if err := r.sameTurn(turn, c); err != nil {
			return err
		}
	}
	if s == nil {
		return nil
	}
	if err := r.sameCommit(s, c); err != nil {
		return err
	}
	r.current = nil
	r.Steps++
	return nil
}

// Extend does nothing: tasks are run by the session's plan, which has grown.
func (r *Replay) Extend(context.Context, plan.Extension) error { return nil }

// RunCall runs an action's tasks one after the other.
func (r *Replay) RunCall(ctx context.Context, c plan.CallRequest) ([][]byte, []error, error) {
	out := make([][]byte, len(c.Args))
	for i := range c.Args {
		part := i
		if c.Partitions != nil {
			part = c.Partitions[i]
		}
		var err error
		packs := madePacks{r.splits, r.outputs, r.maker}
		if out[i], err = r.program.Task(ctx, c.Node, part, c.Args[i], packs); err != nil {
			return nil, nil, err
		}
	}
	return out, make([]error, len(out)), nil
}

// Now returns when the step before ended: no later than the program looked at its clock.
// At the step where a limit of time was reached by the log it is beyond every limit.
func (r *Replay) Now() time.Duration {
	f, p := r.log.Footer, r.parts[r.part]
	over := p.over
	if r.part == len(r.parts)-1 {
		over = f != nil && f.StoppedBy == "max-time"
	}
	if over && r.next > max(p.lastTurn, r.loopFrom) {
		return 1 << 60
	}
	return r.now
}

// Left returns how many lines of the log the program has not asked for.
func (r *Replay) Left() int { return len(r.log.Lines) - r.next }

// madePacks are the packs that a replay has built.
type madePacks struct {
	splits  *pack.Held
	outputs *shuffle.Outputs
	maker   *rdd.Maker
}

func (p madePacks) OpenSplit(node, split int) (*pack.Split, error) {
	return p.splits.Open(pack.SplitKey{Node: node, Split: split})
}

func (p madePacks) MakePack(ctx context.Context, node int) (plan.ExecutorID, *pack.Meta, error) {
	made, err := p.maker.Make(ctx, node)
	if err != nil {
		return "", nil, err
	}
	return "", made.Meta, nil
}

// replayMemory is how many bytes a task of a replay may hold.
const replayMemory = 256 << 20

// Advance does nothing: progress is not reported.
func (madePacks) Advance(int) {}

// Moved does nothing, for the same reason.
func (madePacks) Moved(int) {}

func (madePacks) Spilled(int64) {}

func (madePacks) Memory() int { return replayMemory }

func (madePacks) Held() int { return 0 }

func (p madePacks) NewMapOutput(partitions int) *shuffle.Writer {
	return p.outputs.NewWriter(partitions, replayMemory/8)
}

func (p madePacks) KeepShuffle(key shuffle.Key, b *shuffle.Output) plan.ExecutorID {
	p.outputs.Keep(key, b)
	return ""
}

func (p madePacks) DropShuffle(node int, through uint64) { p.outputs.Drop(node, through) }

func (p madePacks) OpenMapOutput(_ context.Context, _ plan.ExecutorID, key shuffle.Key,
	span shuffle.Span) (io.ReadCloser, error) {
	return p.outputs.Open(key, span)
}

func (madePacks) Shared(_, _ string, _ int64, make func() (any, error)) (any, error) { return make() }
