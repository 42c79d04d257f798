package rdd

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/fxamacker/cbor/v2"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/exec"
	"github.com/volley-engine/volley/storage/shuffle"
)

// A plan falls into stages at its shuffles: the map tasks of a shuffle compute
// the partitions of its input and write their rows into one output each, by
// partition; whatever is computed from it reads a partition of every output.
// Which have to run before an action, and what is made again where a task finds an
// output gone, scheduler.Stages decides; the session carries it out.

// shuffleDecl is what a shuffle does on its map side.
type shuffleDecl struct {
	maps func() int // partitions of its input
	// write makes the output of a map task.
	write func(ctx context.Context, part int, packs runner.TaskContext) (*written, error)
	// narrow says that partition p is what map task p has written.
	narrow bool
	copies int    // executors that are to hold each output; 0 is 1
	copier int    // the node whose tasks copy them
	dir    string // where outputs are written to, instead of to the executors
	// bounds cuts what the map tasks have sorted into partitions, once they have
	// run; nil where the map tasks do that themselves.
	bounds func(outputs []*mapOutput) (any, error)
	// cuts says which parts of each output may hold rows of each partition, by what
	// bounds has said, and limits between which keys a partition's are.
	cuts   func(bounds any, outputs []*mapOutput) ([][][2]uint16, error)
	limits func(bounds any, part int) ([]byte, error)
}

// written is what a map task has made.
type written struct {
	output *shuffle.Output
	first  [][]byte // of sorted rows: the first key of each of its parts
	hot    exec.HotKey
}

// made returns what a map task has made whose writer has ended.
func made(output *shuffle.Output, err error) (*written, error) {
	if err != nil {
		return nil, err
	}
	return &written{output: output}, nil
}

// mapOutput is what a map task has made, and who holds it.
type mapOutput struct {
	Holders []string // where there are several, each has all of it
	Of      int      `cbor:",omitempty"` // the node that has written it, plus one, if it is not the one that has it
	Path    string   `cbor:",omitempty"` // of a file that all executors reach
	Attempt uint64
	Raw     byteCounts // by partition
	Rows    int64
	First   [][]byte `cbor:",omitempty"`
	Hot     exec.HotKey
	Digest  uint64 // of the rows
}

// outputRef is one task's part of an output.
type outputRef struct {
	Node    int // that has written it
	Map     int
	Holder  string
	Path    string `cbor:",omitempty"`
	Attempt uint64
	Span    shuffle.Span
}

// shuffleArgs say where a task finds its partition of a shuffle.
type shuffleArgs struct {
	Outputs cbor.RawMessage // outputRefs
	Span    shuffle.Span    // of each, unless Spans says otherwise
	Spans   []byte          `cbor:",omitempty"` // by output, where rows are sorted: from where on, and how many
	Bounds  []byte          // of the keys that are the partition's, where rows are sorted
	Bytes   int64           // of all rows of the partition, as they were
	Rows    int64           // about how many those are
}

// taskArgs is what a task is told: where the shuffles lie that it reads, by
// node, what has been decided, and what the action itself wants of it.
type taskArgs struct {
	Shuffles map[int]map[int]shuffleArgs // by node and partition
	Decided  []byte                      `cbor:",omitempty"` // decisions
	Params   cbor.RawMessage             `cbor:",omitempty"` // by node: []byte
	Dropped  map[int]uint64              `cbor:",omitempty"`
	Attempt  uint64
	Args     []byte
	Split    *splitArgs `cbor:",omitempty"`
	Piece    *pieceArgs `cbor:",omitempty"`
}

// taskEnv is what a running task reads shuffles by, and what it says beside its
// result.
type taskEnv struct {
	packs  runner.TaskContext
	args   *taskArgs
	params map[int][]byte
	says   taskReport
	output *mapOutput // that a map task has made
	split  slowKeyWatch
	mu     sync.Mutex // guards says: a pack is made of several partitions at a time
}

// tally notes what a counter or accumulator has come to in a partition.
func (e *taskEnv) tally(t tally) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.says.Tallies = append(e.says.Tallies, t)
}

// read decodes what all tasks are told alike.
func (e *taskEnv) read(g *Graph) error {
	var d decisions
	if err := d.UnmarshalBinary(e.args.Decided); err != nil {
		return err
	}
	for node, list := range d {
		g.decided.Store(node, list)
	}
	if len(e.args.Params) == 0 {
		return nil
	}
	return cborReading.Unmarshal(e.args.Params, &e.params)
}

// taskReport is what a task says beside its result.
type taskReport struct {
	Tallies []tally `cbor:",omitempty"`
}

// tally is what a counter has counted in a partition that was read to its end, or an accumulator come to.
type tally struct {
	Node, Part int
	N          int64
	Value      []byte `cbor:",omitempty"`
}

type taskKey struct{}

// envOf returns the environment of the task that runs under a context.
func envOf(ctx context.Context) (*taskEnv, error) {
	if env, ok := ctx.Value(taskKey{}).(*taskEnv); ok {
		return env, nil
	}
	return nil, errNoShuffle()
}

func errNoShuffle() error {
	return fault.Newf(fault.LostInput, "read", "a shuffle", "only tasks are told where its rows lie")
}

// taskResult is what a session's task returns.
type taskResult struct {
	Data   []byte
	Output *mapOutput `cbor:",omitempty"` // of a map task
	Says   taskReport
	Rest   *remainder `cbor:",omitempty"` // instead of an taskResult
}

// runTask decodes what a task is told and runs it.
func (g *Graph) runTask(ctx context.Context, task taskFunc, partition int, raw []byte,
	packs runner.TaskContext) ([]byte, error) {
	if len(raw) == 0 {
		return task(ctx, partition, nil, packs)
	}
	env := &taskEnv{packs: packs, args: &taskArgs{}}
	if err := cborReading.Unmarshal(raw, env.args); err != nil {
		return nil, fault.New(fault.Corrupt, "read", "a task's arguments", err)
	}
	if err := env.read(g); err != nil {
		return nil, fault.New(fault.Corrupt, "read", "a task's arguments", err)
	}
	for node, through := range env.args.Dropped {
		packs.DropShuffle(node, through)
	}
	if p := env.args.Piece; p != nil {
		task = g.node(p.Node).piece
	}
	data, err := task(context.WithValue(ctx, taskKey{}, env), partition, env.args.Args, packs)
	if errors.Is(err, errSplit) {
		return cborMode.Marshal(taskResult{Rest: env.split.rest})
	}
	if err != nil {
		return nil, err
	}
	return cborMode.Marshal(taskResult{Data: data, Output: env.output, Says: env.says})
}

// decisionOf returns what has been decided about a node, if anything: once, when its
// inputs were there to be looked at.
func (g *Graph) decisionOf(node int) []int {
	d, _ := g.decided.Load(node)
	out, _ := d.([]int)
	return out
}

// shuffle adds a shuffle to the plan and returns its number.
func (g *Graph) shuffle(kind, typ, detail string, input int, d *shuffleDecl) int {
	id := g.size()
	task := func(ctx context.Context, part int, _ []byte, packs runner.TaskContext) ([]byte, error) {
		env, err := envOf(ctx)
		if err != nil {
			return nil, err
		}
		w, err := d.write(ctx, part, packs)
		if err != nil {
			return nil, err
		}
		o := mapOutput{Attempt: env.args.Attempt, Raw: w.output.Raw, First: w.first, Hot: w.hot,
			Digest: w.output.Digest}
		for _, n := range w.output.Rows {
			o.Rows += n
		}
		if d.bounds != nil {
			o.Raw = o.Raw[:len(o.First)]
		}
		if d.dir != "" {
			o.Path = w.output.Path()
		} else {
			holder := packs.KeepShuffle(shuffle.Key{Node: id, Map: part, Attempt: env.args.Attempt}, w.output)
			o.Holders = []string{string(holder)}
		}
		env.output = &o
		return nil, nil
	}
	return g.add(node{kind: kind, typ: typ, detail: detail, inputs: []int{input}, user: true, task: task, shuffle: d,
		at: callSite()})
}

// inputsOf returns the nodes that a node is computed from: of a node that has
// alternatives, those of the one that was chosen.
func (g *Graph) inputsOf(id int) []int {
	n := g.node(id)
	if n.choice != nil {
		if d := g.decisionOf(id); len(d) == 1 {
			return n.choice.inputs[d[0]]
		}
	}
	return n.inputs
}

// shufflesOf returns the shuffles that a node reads without another in between.
func (g *Graph) shufflesOf(id int) []int {
	found, seen := map[int]bool{}, map[int]bool{}
	var walk func(id int)
	walk = func(id int) {
		for _, in := range g.inputsOf(id) {
			if seen[in] {
				continue
			}
			seen[in] = true
			if g.node(in).shuffle != nil {
				found[in] = true
			} else {
				walk(in)
			}
		}
	}
	walk(id)
	return slices.Sorted(maps.Keys(found))
}

// needs calls need with the partitions of shuffles that a partition of a node is
// computed from, without another shuffle in between.
func (g *Graph) needs(id, part int, need func(shuffle, part int)) {
	seen := map[[2]int]bool{}
	var walk func(id, part int)
	walk = func(id, part int) {
		n := g.node(id)
		for k, in := range g.inputsOf(id) {
			parts := []int{part}
			if n.reads != nil {
				parts = n.reads(k, part)
			}
			for _, p := range parts {
				at := [2]int{in, p}
				if seen[at] {
					continue
				}
				seen[at] = true
				if g.node(in).shuffle != nil {
					need(in, p)
				} else {
					walk(in, p)
				}
			}
		}
	}
	walk(id, part)
}

// shuffleReader reads a task's partition of a shuffle: its part of one output
// after the other.
type shuffleReader struct {
	env  *taskEnv
	args shuffleArgs
	refs []outputRef
}

func openShuffle(ctx context.Context, id, part int) (*shuffleReader, error) {
	env, err := envOf(ctx)
	if err != nil {
		return nil, err
	}
	args, told := env.args.Shuffles[id][part]
	if !told {
		return nil, errNoShuffle()
	}
	refs, err := args.refs()
	if err != nil {
		return nil, fault.New(fault.Corrupt, "read", "a task's arguments", err)
	}
	return &shuffleReader{env: env, args: args, refs: refs}, nil
}

// open reads the blocks of an output.
func (r *shuffleReader) open(ctx context.Context, ref outputRef) (io.ReadCloser, error) {
	if ref.Path != "" {
		return shuffle.OpenRows(ref.Path)
	}
	key := shuffle.Key{Node: ref.Node, Map: ref.Map, Attempt: ref.Attempt}
	b, err := r.env.packs.OpenMapOutput(ctx, plan.ExecutorID(ref.Holder), key, ref.Span)
	return b, lostFrom(ref, err)
}

// lostFrom makes sure that an error of reading an output names its holder;
// where an output is damaged, that it is lost.
func lostFrom(ref outputRef, err error) error {
	if k := fault.KindOf(err); ref.Path == "" && (k == fault.LostInput || k == fault.Corrupt) {
		return fault.New(fault.LostInput, "read", ref.Holder, err)
	}
	return err
}
