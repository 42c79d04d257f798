package rdd

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/exec"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/shuffle"
)

// Small partitions of shuffles are joined, by their sizes: the rows of one partition may
// be few and still take long to compute. Which rows a partition has, and in which order,
// must not depend on time; who computes them may. Where the rows that a task takes are
// made row by row of keys in the order of their hashes, those of a joined partition are
// those of the partitions that it was joined of, one after the other. A task that has
// computed them for splitAfter, while slots are free, and is far from their end, keeps
// what it has and hands back the rest: the session has each part of that computed by a
// task of its own, and then the first task once more, which reads what they have kept.

// splitAfter is how long the rows of a partition are computed by one task before others
// are asked to help.
const splitAfter = 200 * time.Millisecond

// splitWorth is how many times as long what is left must take, for it to be worth asking.
const splitWorth = 2

// mostPieces is into how many pieces a partition is cut.
const mostPieces = 64

// errSplit ends a task whose rows are to be computed in pieces.
var errSplit = errors.New("the partition is to be computed in pieces")

// tasksNow is the clock of tasks.
var tasksNow = time.Now

// splitArgs say that a task may hand back rows of a node that it takes, where the shuffle
// that they are made of has enough partitions.
type splitArgs struct{ Node, Of int }

// pieceArgs say which rows a task is to compute for another: those of a node's partition,
// as far as they are made of what it is told of shuffles, without some keys.
type pieceArgs struct{ Node, Part, Skip int }

// remainder is what a task hands back: all from the Skip-th key on of a partition that was
// joined with others. Kept are the rows before that.
type remainder struct {
	From, Skip int
	Kept       mapOutput
}

// pieceNode returns the number under which the rows of a node are kept that were computed in
// pieces, and pieceMap that of a piece.
func pieceNode(id int) int { return id + 1<<20 }

func pieceMap(part, piece int) int { return part<<8 + piece }

// slowKeyWatch is how a task finds out that its rows take long.
type slowKeyWatch struct {
	began time.Duration
	other time.Duration // what was not computing rows: taking them in
	keys  []exec.Ranked // that are to come, by hash; nil is unknown
	given int
	rest  *remainder
}

// clock returns the time since the process began, more or less.
func clock() time.Duration { return tasksNow().Sub(processBegan) }

var processBegan = time.Now()

// expect says which keys a task has before it.
func (e *taskEnv) expect(keys []exec.Ranked) { e.split.keys = keys }

// byRow notes that each row of a dataset is made of one row of another, or left out.
func byRow[T any](ds Dataset[T]) Dataset[T] {
	n := ds.g.node(ds.id)
	n.byRow, n.piece = true, pieceTask(ds)
	return ds
}

// byKey notes that the rows of a dataset are those of a shuffle's keys, in the order of
// their hashes, and looks how long their reader needs.
func byKey[T any](ds Dataset[T]) Dataset[T] {
	produce := ds.produce
	ds.produce = func(ctx context.Context, part int, yield func([]T) error) error {
		env, err := envOf(ctx)
		switch {
		case err == nil && env.args.Split != nil:
			yield = timedBatches(env, yield)
		case err == nil && env.args.Piece != nil:
			yield = without(env.args.Piece.Skip, yield)
		}
		return produce(ctx, part, yield)
	}
	n := ds.g.node(ds.id)
	n.byKey, n.piece = true, pieceTask(ds)
	return ds
}

// without leaves the first rows out.
func without[T any](skip int, yield func([]T) error) func([]T) error {
	return func(rows []T) error {
		n := min(skip, len(rows))
		if skip -= n; n == len(rows) {
			return nil
		}
		return yield(rows[n:])
	}
}

// mostTimed is how many rows are handed on between two looks at the clock.
const mostTimed = 1 << 16

// timedBatches hands rows on, few at first, for as long as they do not take too long.
func timedBatches[T any](env *taskEnv, yield func([]T) error) func([]T) error {
	s := &env.split
	s.began, s.other, s.given = clock(), 0, 0
	most := 1
	return func(rows []T) error {
		for len(rows) > 0 {
			if env.args.Split != nil && s.tooLong() {
				s.handBack(env.args.Split.Of)
				return errSplit
			}
			n, before := min(most, len(rows)), clock()
			if err := yield(rows[:n]); err != nil {
				return err
			}
			if rows, s.given = rows[n:], s.given+n; clock()-before < splitAfter/20 {
				most = min(2*most, mostTimed)
			}
		}
		return nil
	}
}

// tooLong reports whether others should help.
func (s *slowKeyWatch) tooLong() bool {
	if s.given == 0 || s.given >= len(s.keys) {
		return false
	}
	spent := clock() - s.began - s.other
	left := spent / time.Duration(s.given) * time.Duration(len(s.keys)-s.given)
	return spent > splitAfter && left > splitWorth*spent
}

// handBack notes from where on rows are for others.
func (s *slowKeyWatch) handBack(of int) {
	s.rest = &remainder{From: row.Partition(s.keys[s.given].Rank, of)}
	for at := s.given - 1; at >= 0 && row.Partition(s.keys[at].Rank, of) == s.rest.From; at-- {
		s.rest.Skip++
	}
}

// pieceTask computes the rows of a part of a partition, and keeps them.
func pieceTask[T any](ds Dataset[T]) taskFunc {
	return func(ctx context.Context, piece int, _ []byte, packs runner.TaskContext) ([]byte, error) {
		env, err := envOf(ctx)
		if err != nil {
			return nil, err
		}
		codec, err := row.CodecOf[T]()
		if err != nil {
			return nil, fault.New(fault.UserCode, "encode", row.TypeName[T](), err)
		}
		w, err := writeWholePart(ctx, ds, env.args.Piece.Part, codec, packs)
		if err != nil {
			return nil, err
		}
		o := env.keepPiece(ds.id, piece, w)
		env.output = &o
		return nil, nil
	}
}

// keepPiece keeps rows for another task.
func (e *taskEnv) keepPiece(node, piece int, w *written) mapOutput {
	o := mapOutput{Attempt: e.args.Attempt, Raw: w.output.Raw, Rows: sumOf(w.output.Rows)}
	o.Holders = []string{string(e.packs.KeepShuffle(shuffle.Key{Node: pieceNode(node), Map: piece, Attempt: o.Attempt},
		w.output))}
	return o
}

// inPieces reads the rows of a partition from where they were computed in pieces, or looks
// whether they are to be; false where neither is so.
func (ds Dataset[T]) inPieces(ctx context.Context, env *taskEnv, part int, yield func([]T) error) (done bool,
	err error) {
	if _, given := env.args.Shuffles[pieceNode(ds.id)][part]; given {
		row, err := row.CodecOf[T]()
		if err != nil {
			return true, err
		}
		return true, readShuffle(ctx, pieceNode(ds.id), part, row, yield)
	}
	if env.args.Split == nil || env.args.Split.Node != ds.id {
		return false, nil
	}
	row, err := row.CodecOf[T]()
	if err != nil {
		env.args.Split = nil // they cannot be kept
		return false, nil
	}
	kept := exec.NewWriter(env.packs, row, 1)
	defer kept.Close()
	err = ds.produce(ctx, part, func(rows []T) error {
		before := clock()
		err := cmp.Or(keepRows(env, kept, rows), yield(rows))
		env.split.other += clock() - before
		return err
	})
	if errors.Is(err, errSplit) {
		err = cmp.Or(keepRest(env, ds.id, part, kept), err)
	}
	return true, err
}

// keptMost is how many rows a task keeps until it knows whether they take long. Who has
// made more of small partitions in that time does not need help with a few keys.
const keptMost = 1 << 14

// keepRows keeps rows that a task has computed, as long as it may hand back the rest.
func keepRows[T any](env *taskEnv, kept *exec.Writer[T], rows []T) error {
	if env.args.Split == nil {
		return nil
	}
	for i := range rows {
		if err := kept.Add(0, &rows[i]); err != nil {
			return err
		}
	}
	if kept.Rows[0] > keptMost {
		env.args.Split = nil
	}
	return nil
}

// keepRest keeps what a task has computed before it hands back the rest.
func keepRest[T any](e *taskEnv, node, part int, kept *exec.Writer[T]) error {
	w, err := made(kept.Finish())
	if err == nil {
		e.split.rest.Kept = e.keepPiece(node, pieceMap(part, 0), w)
	}
	return err
}

// splitOf returns the node whose rows a node's task takes, the shuffles that they are made of,
// and the partitions of these that are joined to one; false where they cannot be computed
// in pieces.
func (s *Session) splitOf(node, part int) (of int, shuffles []int, span shuffle.Span, ok bool) {
	in := s.g.inputsOf(node)
	if n := s.g.node(node); len(in) != 1 || n.reads != nil {
		return 0, nil, span, false
	}
	at := in[0]
	for s.g.node(at).byRow {
		at = s.g.node(at).inputs[0]
	}
	d := s.g.decisionOf(at)
	if !s.g.node(at).byKey || part+1 >= len(d) {
		return 0, nil, span, false
	}
	return in[0], s.g.node(at).joins, shuffle.Span{From: d[part], Through: d[part+1]}, true
}

// spansOf cuts a span of partitions of some shuffles where there are rows.
func (s *Session) spansOf(shuffles []int, span shuffle.Span) (out []shuffle.Span) {
	var full []int
	for p := span.From; p < span.Through; p++ {
		if slices.ContainsFunc(shuffles, func(id int) bool {
			return p < len(s.sums[id].bytes) &&
				s.sums[id].bytes[p] > 0
		}) {
			full = append(full, p)
		}
	}
	n := min(mostPieces, len(full))
	for i := range n {
		piece := shuffle.Span{From: full[i*len(full)/n], Through: span.Through}
		if i+1 < n {
			piece.Through = full[(i+1)*len(full)/n]
		}
		out = append(out, piece)
	}
	return out
}

// maySplit returns which node's rows a task need not compute alone; nil is none.
func (s *Session) maySplit(node, part, tasks int) *splitArgs {
	if s.cfg.Slots == nil || s.whole[[2]int{node, part}] {
		return nil
	}
	of, shuffles, span, ok := s.splitOf(node, part)
	if !ok || len(s.spansOf(shuffles, span)) < 2 || tasks >= s.cfg.Slots() {
		return nil
	}
	return &splitArgs{Node: of, Of: len(s.sums[shuffles[0]].bytes)}
}

// pieced are the rows that a task takes, as they were computed in pieces.
type pieced struct {
	rest    *remainder
	outputs []*mapOutput
}

// finishPieces has the rest computed of the rows that tasks of a node take. Where that
// fails for want of its input they are computed whole.
func (s *Session) finishPieces(ctx context.Context, node int, parts []int) error {
	there := slices.DeleteFunc(slices.Clone(parts), func(part int) bool { return s.inputLost(node, part) })
	if len(there) > 0 {
		if err := s.computePieces(ctx, node, there); err != nil {
			return err
		}
	}
	for _, part := range parts {
		if !slices.Contains(there, part) {
			s.whole[[2]int{node, part}] = true
		}
		if s.whole[[2]int{node, part}] {
			s.forgetPieces(node, part)
		}
	}
	return nil
}

// inputLost reports whether an output is missing that a task's rows are made of: another task of its call may not have
// found it.
func (s *Session) inputLost(node, part int) bool {
	_, shuffles, _, _ := s.splitOf(node, part)
	return slices.ContainsFunc(shuffles, func(id int) bool { return len(s.stages.Missing(id)) > 0 })
}

// computePieces runs the tasks that compute the rest of some partitions.
func (s *Session) computePieces(ctx context.Context, node int, parts []int) error {
	req, of, err := s.pieceRequest(node, parts)
	if err != nil {
		return err
	}
	data, lost, err := s.runTasks(ctx, req)
	if err != nil {
		return err
	}
	for k, part := range of {
		at := [2]int{node, part}
		if lost[k] != nil {
			s.stages.Lost(node, lossOf(lost[k]))
			s.whole[at] = true
			continue
		}
		a, err := s.take(data[k])
		if err != nil {
			return err
		}
		if a.Output == nil {
			return errNoOutput()
		}
		s.pieced[at].outputs = append(s.pieced[at].outputs, a.Output)
	}
	return nil
}

// pieceRequest asks for the rest of some partitions, and says which each task is of.
func (s *Session) pieceRequest(node int, parts []int) (req plan.CallRequest, of []int, err error) {
	req = plan.CallRequest{Node: node, Pack: plan.NoPack}
	s.attempt++
	common, err := s.commonArgs(node)
	if err != nil {
		return req, nil, err
	}
	shared := &taskInputs{outputs: map[int][]byte{}, holders: map[int][]string{}}
	for _, part := range parts {
		rest := s.pieced[[2]int{node, part}].rest
		rows, shuffles, span, _ := s.splitOf(node, part)
		span.From = rest.From
		for k, piece := range s.spansOf(shuffles, span) {
			t := common
			t.Piece = &pieceArgs{Node: rows, Part: part}
			if k == 0 {
				t.Piece.Skip = rest.Skip
			}
			if err := s.addPiece(&req, t, shuffles, piece, shared); err != nil {
				return req, nil, err
			}
			req.Partitions, of = append(req.Partitions, pieceMap(part, k+1)), append(of, part)
		}
	}
	return req, of, nil
}

// addPiece adds a task for a part of a partition of some shuffles.
func (s *Session) addPiece(req *plan.CallRequest, t taskArgs, shuffles []int, piece shuffle.Span,
	shared *taskInputs) error {
	t.Shuffles = map[int]map[int]shuffleArgs{}
	var held []string
	for _, id := range shuffles {
		a, holders, err := s.shuffleArgs(id, t.Piece.Part, shared)
		if err != nil {
			return err
		}
		a.Span = piece
		a.Bytes, a.Rows = s.sums[id].of(piece)
		t.Shuffles[id], held = map[int]shuffleArgs{t.Piece.Part: a}, append(held, holders...)
	}
	raw, err := cborMode.Marshal(t)
	if err != nil {
		return fault.New(fault.Internal, "encode", "a task's arguments", err)
	}
	slices.Sort(held)
	req.Args, req.Holders = append(req.Args, raw), append(req.Holders, slices.Compact(held))
	return nil
}

// takePieces passes a task the locations of the rows that it takes, if they were computed in
// pieces, and who holds them.
func (s *Session) takePieces(node, part int, t *taskArgs) (holders []string, err error) {
	p := s.pieced[[2]int{node, part}]
	if p == nil {
		return nil, nil
	}
	id := pieceNode(s.g.inputsOf(node)[0])
	refs, err := s.refsOf(id, pieceMap(part, 0), p.outputs,
		func(i int) ([]string, bool) { return p.outputs[i].Holders, true })
	if err != nil {
		return nil, err
	}
	a := shuffleArgs{Span: shuffle.Span{From: 0, Through: 1}}
	for _, o := range p.outputs {
		a.Bytes, a.Rows = a.Bytes+sumOf(o.Raw), a.Rows+o.Rows
	}
	if a.Outputs, err = cborMode.Marshal(refs); err != nil {
		return nil, fault.New(fault.Internal, "encode", "a task's arguments", err)
	}
	t.Shuffles[id] = map[int]shuffleArgs{part: a}
	return refs.Holders, nil
}

// forgetPieces gives up what was computed in pieces for a task, and reports whether there
// was any.
func (s *Session) forgetPieces(node, part int) bool {
	at := [2]int{node, part}
	p := s.pieced[at]
	if p == nil {
		return false
	}
	id := pieceNode(s.g.inputsOf(node)[0])
	s.dropped = maps.Clone(s.dropped)
	s.dropped[id] = max(s.dropped[id], p.outputs[len(p.outputs)-1].Attempt)
	delete(s.pieced, at)
	return true
}
