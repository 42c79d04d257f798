package rdd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/storage"
)

// A plan falls into stages at its shuffles: the map tasks of a shuffle compute
// the partitions of its input and sort their rows into one output each; whatever
// is computed from it reads a partition of every output. Before an action the
// session has the shuffles run that it needs and that have not run; where a task
// finds an output gone, exactly the lost ones are made again.

// shuffleDecl is what a shuffle does on its map side.
type shuffleDecl struct {
	maps       func() int // partitions of its input
	partitions int
	write      func(ctx context.Context, part int, args []byte, out *storage.Sorter) error
	// plan decides something for all map tasks before they run, which they are
	// told as args; may be nil.
	plan func(ctx context.Context, s *Session) ([]byte, error)
}

// mapOutput is what a map task has made, and who holds it.
type mapOutput struct {
	Holder  string
	Attempt uint64
}

// bucketRef is one task's part of an output.
type bucketRef struct {
	Map     int
	Holder  string
	Attempt uint64
}

// taskArgs is what a task is told: where the shuffles lie that it reads, by
// node, and what the action itself wants of it.
type taskArgs struct {
	Shuffles map[int][]bucketRef
	Attempt  uint64
	Args     []byte
}

// taskEnv is what a running task reads shuffles by.
type taskEnv struct {
	packs runner.Packs
	args  *taskArgs
}

type taskKey struct{}

// envOf is the environment of the task that runs under a context.
func envOf(ctx context.Context) (*taskEnv, error) {
	if env, ok := ctx.Value(taskKey{}).(*taskEnv); ok {
		return env, nil
	}
	return nil, errNoShuffle()
}

func errNoShuffle() error {
	return fault.Newf(fault.UserCode, "read", "a shuffle", "it can be read by actions only").
		WithHint("save the rows and read them again to pack them")
}

// runTask decodes what a task is told and runs it.
func runTask(ctx context.Context, task taskFunc, partition int, raw []byte, packs runner.Packs) ([]byte, error) {
	args := &taskArgs{}
	if len(raw) > 0 {
		if err := cborReading.Unmarshal(raw, args); err != nil {
			return nil, fault.New(fault.Corrupt, "read", "a task's arguments", err)
		}
	}
	ctx = context.WithValue(ctx, taskKey{}, &taskEnv{packs: packs, args: args})
	return task(ctx, partition, args.Args, packs)
}

// shuffle adds a shuffle to the plan and returns its number.
func (g *Graph) shuffle(kind, typ, detail string, input int, d *shuffleDecl) int {
	id := len(g.nodes)
	task := func(ctx context.Context, part int, args []byte, packs runner.Packs) ([]byte, error) {
		env, err := envOf(ctx)
		if err != nil {
			return nil, err
		}
		out := packs.NewSorter(d.partitions)
		defer out.Close()
		if err := d.write(ctx, part, args, out); err != nil {
			return nil, err
		}
		holder, _, err := packs.KeepShuffle(storage.ShuffleKey{Node: id, Map: part, Attempt: env.args.Attempt}, out)
		if err != nil {
			return nil, err
		}
		return cborMode.Marshal(mapOutput{Holder: string(holder), Attempt: env.args.Attempt})
	}
	return g.add(node{kind: kind, typ: typ, detail: detail, inputs: []int{input}, user: true, task: task, shuffle: d})
}

// shuffleReader reads a partition of all outputs of a shuffle, in the order of
// keys; what has one key comes from the lowest map task on, in its order.
type shuffleReader struct {
	*storage.Merged
	opened []io.Closer
	refs   []bucketRef
}

// Err is what ended the reading, if it was not the end: where an output is
// damaged, that it is lost.
func (r *shuffleReader) Err() error { return damagedIn(r.refs, r.Merged, r.Merged.Err()) }

func damagedIn(refs []bucketRef, m *storage.Merged, err error) error {
	if fault.KindOf(err) == fault.Corrupt && m.Failed() < len(refs) {
		return fault.New(fault.LostInput, "read", refs[m.Failed()].Holder, err)
	}
	return err
}

// Close lets go of the outputs.
func (r *shuffleReader) Close() {
	for _, c := range r.opened {
		c.Close()
	}
}

func openShuffle(ctx context.Context, id, part int) (_ *shuffleReader, err error) {
	env, err := envOf(ctx)
	if err != nil {
		return nil, err
	}
	r := &shuffleReader{}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	refs, told := env.args.Shuffles[id]
	if !told {
		return nil, errNoShuffle()
	}
	r.refs = refs
	var streams []*storage.RecordReader
	for _, ref := range refs {
		key := storage.ShuffleKey{Node: id, Map: ref.Map, Attempt: ref.Attempt}
		b, err := env.packs.OpenBucket(ctx, plan.ExecutorID(ref.Holder), key, part)
		if err != nil {
			return nil, lostFrom(ref, err)
		}
		r.opened = append(r.opened, b)
		streams = append(streams, storage.NewRecordReader(b))
	}
	r.Merged, err = storage.Merge(streams)
	return r, damagedIn(refs, r.Merged, err)
}

// lostFrom makes sure that an error of reading an output names its holder.
func lostFrom(ref bucketRef, err error) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Kind == fault.LostInput && f.Op == "reach" {
		return err
	}
	if fault.KindOf(err) == fault.LostInput {
		return fault.New(fault.LostInput, "read", ref.Holder, err)
	}
	return err
}

// shufflesOf are the shuffles that a node reads without another in between.
func (g *Graph) shufflesOf(id int) []int {
	found := map[int]bool{}
	var walk func(id int)
	walk = func(id int) {
		for _, in := range g.nodes[id].inputs {
			if g.nodes[in].shuffle != nil {
				found[in] = true
			} else {
				walk(in)
			}
		}
	}
	walk(id)
	return slices.Sorted(maps.Keys(found))
}

// maxRounds is how often what was lost is made again before an action fails.
const maxRounds = 8

// call runs an action's tasks on partitions of a node, and before them the
// shuffles that they read.
func (s *Session) call(ctx context.Context, node, pack int, args [][]byte) ([][]byte, error) {
	parts := make([]int, len(args))
	for i := range parts {
		parts[i] = i
	}
	return s.callOn(ctx, node, pack, parts, args)
}

func (s *Session) callOn(ctx context.Context, node, pack int, parts []int, args [][]byte) ([][]byte, error) {
	out := make([][]byte, len(parts))
	left := make([]int, len(parts))
	for i := range left {
		left[i] = i
	}
	var last error
	for round := 0; len(left) > 0; round++ {
		if round == maxRounds {
			return nil, fault.New(fault.LostInput, "run", fmt.Sprintf("node %d", node), fmt.Errorf("what it reads was lost %d times: %w", round, last))
		}
		if err := s.prepare(ctx, node); err != nil {
			return nil, err
		}
		req, err := s.request(node, pack, parts, args, left)
		if err != nil {
			return nil, err
		}
		data, lost, err := s.cluster.RunCall(ctx, req)
		if err != nil {
			return nil, err
		}
		var again []int
		for k, i := range left {
			if lost[k] != nil {
				again, last = append(again, i), lost[k]
				s.lose(node, lost[k])
				continue
			}
			out[i] = data[k]
		}
		if len(again) < len(left) {
			round = 0 // it gets on
		}
		left = again
	}
	return out, nil
}

// request tells each task where its inputs lie.
func (s *Session) request(node, pack int, parts []int, args [][]byte, left []int) (CallRequest, error) {
	req := CallRequest{Node: node, Pack: pack}
	s.attempt++
	shuffles := s.g.shufflesOf(node)
	for _, i := range left {
		t := taskArgs{Attempt: s.attempt, Args: args[i]}
		held := map[string]bool{}
		for _, id := range shuffles {
			refs := []bucketRef{}
			for m, o := range s.shuffled[id] {
				if o == nil {
					return req, fault.Newf(fault.Internal, "run", fmt.Sprintf("node %d", node), "map task %d of node %d has not run", m, id)
				}
				refs = append(refs, bucketRef{Map: m, Holder: o.Holder, Attempt: o.Attempt})
				held[o.Holder] = true
			}
			if t.Shuffles == nil {
				t.Shuffles = map[int][]bucketRef{}
			}
			t.Shuffles[id] = refs
		}
		raw, err := cborMode.Marshal(t)
		if err != nil {
			return req, fault.New(fault.Internal, "encode", "a task's arguments", err)
		}
		req.Args, req.Partitions = append(req.Args, raw), append(req.Partitions, parts[i])
		req.Holders = append(req.Holders, slices.Sorted(maps.Keys(held)))
	}
	return req, nil
}

// prepare runs the map tasks whose outputs a node needs and that are not there.
// While those of one shuffle are made, those of another may be lost.
func (s *Session) prepare(ctx context.Context, node int) error {
	for range maxRounds {
		missing := false
		for _, id := range s.g.shufflesOf(node) {
			made, err := s.runMaps(ctx, id)
			if err != nil {
				return err
			}
			missing = missing || made > 0
		}
		if !missing {
			return nil
		}
	}
	return fault.Newf(fault.LostInput, "run", fmt.Sprintf("node %d", node), "what it reads was lost %d times", maxRounds)
}

// runMaps runs the map tasks of a shuffle whose outputs are not there, and says
// how many those were.
func (s *Session) runMaps(ctx context.Context, id int) (int, error) {
	if s.shuffled[id] == nil {
		s.shuffled[id] = make([]*mapOutput, s.g.nodes[id].shuffle.maps())
	}
	var parts []int
	for m, o := range s.shuffled[id] {
		if o == nil {
			parts = append(parts, m)
		}
	}
	if len(parts) == 0 {
		return 0, nil
	}
	args, err := s.planOf(ctx, id, len(parts))
	if err != nil {
		return 0, err
	}
	raws, err := s.callOn(ctx, id, NoPack, parts, args)
	if err != nil {
		return 0, err
	}
	for k, raw := range raws {
		o := &mapOutput{}
		if err := cborReading.Unmarshal(raw, o); err != nil {
			return 0, fault.New(fault.Corrupt, "read", "what a map task says", err)
		}
		s.shuffled[id][parts[k]] = o
	}
	return len(parts), nil
}

// planOf is what the map tasks of a shuffle are told. It is decided once.
func (s *Session) planOf(ctx context.Context, id, tasks int) ([][]byte, error) {
	d := s.g.nodes[id].shuffle
	if _, ok := s.planned[id]; !ok && d.plan != nil {
		raw, err := d.plan(ctx, s)
		if err != nil {
			return nil, err
		}
		s.planned[id] = raw
	}
	args := make([][]byte, tasks)
	for i := range args {
		args[i] = s.planned[id]
	}
	return args, nil
}

// lose forgets the outputs that an error says are gone: all of a holder that
// cannot be reached, or those of it that the node reads.
func (s *Session) lose(node int, err error) {
	var f *fault.Error
	if !errors.As(err, &f) {
		return
	}
	for id, outputs := range s.shuffled {
		if f.Op != "reach" && !slices.Contains(s.g.shufflesOf(node), id) {
			continue
		}
		for m, o := range outputs {
			if o != nil && o.Holder == f.Subject {
				outputs[m] = nil
			}
		}
	}
}
