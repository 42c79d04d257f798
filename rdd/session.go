package rdd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/scheduler"
	"github.com/volley-engine/volley/storage/pack"
)

// Cluster runs the steps and actions of one job. Its time is the job's own:
// virtual where the clock is.
type Cluster interface {
	// OpenPack makes or finds the pack of a node, and returns its number once
	// every split is held.
	// One of shuffled rows is made by the function that is given, also when it is asked for again after ErrPackGone.
	OpenPack(ctx context.Context, node int, make PackMaker) (number int, meta *pack.Meta, err error)
	// RunStep folds a step's node over a pack. Its error is ErrPackGone where the pack has to be made again.
	RunStep(ctx context.Context, req plan.StepRequest) (*plan.StepOutcome, error)
	// Extend has every node add what a plan has come to have, and returns once all have.
	Extend(ctx context.Context, e plan.Extension) error
	// RunCall runs an action's tasks; of a pack its error may be ErrPackGone, too. A task whose input is gone has no
	// data, and its error among the lost.
	RunCall(ctx context.Context, c plan.CallRequest) (data [][]byte, lost []error, err error)
	// Shuffled notes what map tasks have made.
	Shuffled(s plan.Shuffled)
	// Commit ends a training step: its parameters are settled.
	Commit(ctx context.Context, c Commit) error
	// Evaluated notes the objective of an uncut pass.
	Evaluated(e Evaluation)
	// Signal notes what a step has shown of the gradient.
	Signal(spread, norm float64)
	// Now is the time since the job began.
	Now() time.Duration
	// Resume is where the checkpoint that the job goes on from left a loop, if there is one.
	Resume(loop int) LoopMark
}

// StepInfo says how much of the data a step's result stands for.
type StepInfo = plan.StepInfo

// Commit is the end of a training step.
type Commit struct {
	Loop      int // of the program, counted from 1
	Iteration int
	State     func() []byte // encoded, made only where it is kept
	Digest    plan.Digest
	Values    map[string]float64
	Took      time.Duration   // by the loop so far, in all processes that ran it, evaluations left out
	Last      bool            // nothing of the loop comes after it
	Stopped   bool            // by the program, so that no number of turns goes on from it
	Most      int             // turns that the loop may make
	Used      *plan.TablesUse // by workers on parameter tables; nil where there are none
}

// LoopMark is how far a loop of a program has come.
type LoopMark struct {
	Iteration int           `json:"iteration"`
	Ended     bool          `json:"ended"`
	State     []byte        `json:"state"`
	Took      time.Duration `json:"took,omitempty"` // on the job's clock, evaluations left out
}

// Evaluation is an uncut pass over all data.
type Evaluation struct {
	Iteration int
	Objective float64
	Took      time.Duration
}

// Config is what a session needs to know beside its cluster.
type Config struct {
	OutDir   string         // where Save puts results
	Owner    string         // tells the saves of one job from others', also when it is started again; may be empty
	Progress func(Progress) // may be nil
	Copies   bool           // executors can be lost one by one, so that copies are worth making
	Warn     func(string)   // what the user should know of; may be nil
	// Saved is told of a dataset that was saved, and how many rows were added to it; may be nil.
	Saved      func(dir string, rows int64)
	TaskMemory int        // bytes of rows that a task may hold
	Slots      func() int // how many tasks run at a time; nil: tasks never share their rows
	// Unscaled returns the ratio that steps without Scale have to have, 0 for any, or why they cannot be run; may be
	// nil.
	Unscaled func() (ratio float64, err error)
}

// Progress is what a session reports while it runs.
type Progress struct {
	LoadedRows int
	Iteration  int
	Most       int // iterations that the loop may make
	Values     map[string]float64
	Info       StepInfo
}

// Session is the driver's side of a running job. Actions may be run by several goroutines, side by side; steps and
// loops are one goroutine's.
type Session struct {
	turns   turns
	g       *Graph
	cluster Cluster
	cfg     Config
	packs   map[int]*openPack
	info    StepInfo
	load    time.Duration
	eval    time.Duration
	err     error
	failed  bool // a step of the loop has failed
	// interrupted says that the context has ended a loop.
	interrupted bool
	reopens     func() bool // asked whether a loop that had ended goes on
	batch       float64     // share of each split that training steps fold; 0 is the engine's
	sample      bool        // which is a sample
	loops       int         // begun
	loop        struct {    // the last one
		began  time.Duration // less the evaluations before it
		before time.Duration // that it took before this process continued it
	}
	attempt uint64 // of the last call
	stages  *scheduler.Stages
	// shuffled are the outputs of shuffles' map tasks, nil where there never was one; which are
	// there, and who holds them, the stages know.
	shuffled map[int][]*mapOutput
	digests  map[int]map[int]uint64 // of what map tasks have made, by node and task, lost or not
	sums     map[int]*outputSums    // of outputs that have been made since shuffled was begun, lost or not
	cuts     map[int][][][2]uint16  // of sorted outputs: by node, map task and partition, which of its parts that is
	bounds   map[int]any            // of sorts
	settled  map[int]bool
	tallies  tallies
	params   map[int][]byte     // by node
	dropped  map[int]uint64     // shuffles given up, through an attempt
	paramSet int                // how often parameters were set
	loopRuns map[int]*loopRun   // by node
	saves    map[int]int        // how often each was run
	pieces   map[[2]int][]int   // of splits, by node and size of the parameter
	pieced   map[[2]int]*pieced // by node and partition of a task that handed rows back
	whole    map[[2]int]bool    // of whom that is not to be asked again
}

type openPack struct {
	meta   *pack.Meta
	number int
}

// NewSession begins a job on a cluster. Programs get one from volley.Main.
func NewSession(g *Graph, cluster Cluster, cfg Config) *Session {
	return &Session{g: g, cluster: cluster, cfg: cfg, packs: map[int]*openPack{},
		stages: scheduler.NewStages(g.shufflesOf), shuffled: map[int][]*mapOutput{}, digests: map[int]map[int]uint64{},
		sums: map[int]*outputSums{}, cuts: map[int][][][2]uint16{},
		bounds: map[int]any{}, settled: map[int]bool{}, params: map[int][]byte{},
		dropped: map[int]uint64{}, loopRuns: map[int]*loopRun{}, saves: map[int]int{},
		pieced: map[[2]int]*pieced{}, whole: map[[2]int]bool{}}
}

// Now returns the job's own time.
func (s *Session) Now() time.Duration { return s.cluster.Now() }

// LoadTime returns how long making or finding packs has taken, on the wall clock.
func (s *Session) LoadTime() time.Duration { return s.load }

// EvaluationTime returns how long uncut passes have taken, on the job's clock.
func (s *Session) EvaluationTime() time.Duration { return s.eval }

// LoopTime returns how long the loop in hand has taken on the job's clock, evaluations left out; where the job
// continues from a checkpoint, what it took before then is part of it.
func (s *Session) LoopTime() time.Duration { return s.loop.before + s.Now() - s.eval - s.loop.began }

// LastInfo describes the last step.
func (s *Session) LastInfo() StepInfo { return s.info }

// Evaluated notes the objective that an uncut pass has found.
func (s *Session) Evaluated(e Evaluation) {
	_, leave, _ := s.enter(context.Background(), false)
	defer leave()
	s.cluster.Evaluated(e)
}

// Signal notes how far apart the mean gradients of the last step's splits lay, and
// how long the gradient of all was: --sync auto chooses the next step's ratio
// from it. Jobs without gradients need not call it; their steps are whole.
func (s *Session) Signal(spread, norm float64) { s.cluster.Signal(spread, norm) }

// Meta makes or finds a pack and describes it.
func (pk Packed[T]) Meta(ctx context.Context, s *Session) (*pack.Meta, error) {
	ctx, leave, err := s.enter(ctx, false)
	if err != nil {
		return nil, err
	}
	defer leave()
	p, err := s.open(ctx, pk.id)
	if err != nil {
		return nil, err
	}
	return p.meta, nil
}

// open makes or finds a pack, once.
func (s *Session) open(ctx context.Context, node int) (*openPack, error) {
	release, _, err := s.claim(ctx, packing, node)
	if err != nil {
		return nil, err
	}
	defer release()
	if p := s.packs[node]; p != nil {
		return p, nil
	}
	began := time.Now()
	number, meta, err := s.cluster.OpenPack(ctx, node, s.makePack)
	for again := 0; errors.Is(err, ErrPackGone) && again < scheduler.MaxRounds; again++ {
		number, meta, err = s.cluster.OpenPack(ctx, node, s.makePack)
	}
	if err != nil {
		return nil, err
	}
	s.load += time.Since(began)
	p := &openPack{meta: meta, number: number}
	s.packs[node] = p
	return p, nil
}

// Run runs the step once under a parameter.
func (st Step[P, A]) Run(ctx context.Context, s *Session, param P) (A, error) {
	var zero A
	raw, err := row.Encode(param)
	if err != nil {
		return zero, fault.New(fault.UserCode, "encode", "the parameter", err)
	}
	ctx, leave, err := s.enter(ctx, false)
	if err != nil {
		return zero, err
	}
	defer leave()
	p, err := s.open(ctx, st.packID)
	if err != nil {
		return zero, err
	}
	ratio := st.decl.ratio
	if st.decl.train && !st.decl.scalable && s.cfg.Unscaled != nil {
		must, err := s.cfg.Unscaled()
		if err != nil {
			return zero, err
		}
		ratio = max(ratio, must)
	}
	f := st.folder(p.meta, param)
	pieces, err := s.piecesOf(st.id, p.meta, f, len(raw))
	if err != nil {
		return zero, err
	}
	began := s.cluster.Now()
	out, err := whilePacked(ctx, s, st.packID, func() (*plan.StepOutcome, error) {
		return s.cluster.RunStep(ctx, plan.StepRequest{Node: st.id, Pack: p.number, Param: raw, Train: st.decl.train,
			Ratio: ratio, Pieces: pieces, State: f.State() > 0, Weighted: p.meta.Weighted && f.Weighted(),
			Entries: p.meta.Layout == pack.SparseLayout && st.decl.entries, Work: st.decl.work,
			Batch: s.batch, Sample: s.sample})
	})
	if err != nil {
		s.failed = true
		return zero, err
	}
	if !st.decl.train && !st.decl.work {
		s.eval += s.cluster.Now() - began
	}
	root, err := complete[A](f, p.meta, out)
	if err != nil {
		return zero, err
	}
	if root.Weight <= 0 {
		return zero, fault.New(fault.BadInput, "run", fmt.Sprintf("step %d", out.Info.Step), ErrNoWeight).
			WithHint("--batch-fraction, --sync bsp or --assign random has steps visit more, or other, rows")
	}
	s.info = out.Info
	s.info.Weight = root.Weight
	return *root.Value.(*A), nil
}

// ErrNoWeight says that no row that a step has visited counts: another one may visit others, or more.
var ErrNoWeight = errors.New("the weights of the rows that were visited sum to zero")

// piecesOf returns how many pieces each split of a pack has under a step.
func (s *Session) piecesOf(node int, meta *pack.Meta, f runner.Folder, param int) ([]int, error) {
	key := [2]int{node, param}
	if s.pieces[key] != nil {
		return s.pieces[key], nil
	}
	zero, err := f.Encode(f.Zero())
	if err != nil {
		return nil, fault.New(fault.UserCode, "encode", "the accumulator", err)
	}
	pieces := make([]int, len(meta.Splits))
	for i := range pieces {
		pieces[i] = runner.Pieces(f, meta, i, int64(len(zero)))
	}
	if s.pieces == nil {
		s.pieces = map[[2]int][]int{}
	}
	s.pieces[key] = pieces
	return pieces, nil
}

// complete decodes the parts and merges them to the root of the tree.
func complete[A any](f runner.Folder, meta *pack.Meta, out *plan.StepOutcome) (*runner.Acc, error) {
	parts := make([]runner.Part, len(out.Parts))
	for i, p := range out.Parts {
		v := new(A)
		if err := row.Decode(p.Data, v); err != nil {
			return nil, fault.New(fault.Corrupt, "decode", "a partial result", err)
		}
		parts[i] = runner.Part{Level: p.Level, Index: p.Index, Acc: &runner.Acc{Value: v, Weight: p.Weight}}
	}
	whole := func(split int, acc *runner.Acc) { // its parts have come from several executors
		runner.Close(f, acc, meta, split, out.Visited[split] == meta.Splits[split].Rows, out.Scale)
	}
	acc, err := runner.Complete(f, out.Splits, parts, whole)
	if err != nil {
		return nil, err
	}
	if acc == nil {
		return nil, fault.Newf(fault.BadInput, "run", fmt.Sprintf("step %d", out.Info.Step), "no row was folded")
	}
	return acc, nil
}

// Batch sets the share of each split that training steps fold from now on, from the split's cursor; 0 is the
// job's batch fraction.
func (s *Session) Batch(share float64) { s.batch, s.sample = share, false }

// Sample sets that share, too, of steps that read what they fold as a sample: one of fewer rows, as where auto cuts
// it, does as well. A batch is never cut by auto: a method that takes as many steps whatever they are of would take
// more of them.
func (s *Session) Sample(share float64) { s.batch, s.sample = share, share > 0 }
