package rdd

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/rows"
	"github.com/volley-engine/volley/storage/pack"
	"github.com/volley-engine/volley/storage/shuffle"
)

// Graph collects the plan that Build declares. It is frozen once Build has returned, but for the parts that Later
// declares: each is added at once, by one goroutine, while tasks read the others.
type Graph struct {
	nodes   growing[node]
	sources growing[sourceDecl]
	errs    []error
	decided sync.Map // what was decided, by node: []int
	reached struct {
		sync.Mutex
		by [][]uint64 // by node: a bit for each node that it is computed from
	}
	undos    []func() // of what nodes have changed beside the plan, should they be cut again
	hasLoops atomic.Bool
	built    struct {
		sync.Mutex
		parts []builtPart // that were declared by Later, in the order in which they were added
	}
}

// node is one operation of the plan.
type node struct {
	kind    string
	typ     string
	detail  string
	user    bool // it runs a function of the user's
	inputs  []int
	folder  runner.NewFolder // of a step
	task    taskFunc
	pack    *packDecl
	shuffle *shuffleDecl
	choice  *choice
	// shuffles whose small partitions are joined, under this node's number
	joins  []int
	family int // of a shuffle: the node whose joins has it, plus one
	// values that the driver's side sets, which it is computed under
	params []int
	settle func(ctx context.Context, s *Session) ([]int, error) // decides something before it is computed; may be nil
	// partitions of input k that a partition is computed from; nil is the same one
	reads  func(k, part int) []int
	points *sourceDecl              // whose rows are the node's, as they are
	pruned any                      // of files: a func(func(T) bool) Dataset[T] that reads some of them
	bytes  func() int64             // about how many bytes its rows are; nil is as many as its inputs'
	byRow  bool                     // each row is made of one row of the input
	byKey  bool                     // rows are those of shuffles' keys, by their hashes
	piece  taskFunc                 // computes a part of a partition's rows for another task; may be nil
	gang   gangFunc                 // what executors do at once; nil of other nodes
	later  func(value []byte) error // adds the part of the plan that it declares; nil of other nodes
	at     string                   // the user's file and line
	label  string                   // the user's name for it; empty is none
}

// choice is between ways of computing a node, of which one is taken when it is
// known what its inputs are.
type choice struct {
	inputs [][]int
	decide func(ctx context.Context, s *Session) (int, error)
}

// taskFunc computes one partition's part of an action.
type taskFunc func(ctx context.Context, partition int, args []byte, packs runner.TaskContext) ([]byte, error)

// sourceDecl is an input that is resolved once, on the driver's side.
type sourceDecl struct {
	URIs    []string
	Options input.Options
	node    int
	source  *input.Source
}

// bytes returns how large the input is, as it is; 0 where nothing reads it.
func (d *sourceDecl) bytes() (n int64) {
	if d.source == nil {
		return 0
	}
	for _, f := range d.source.Files {
		n += f.Size
	}
	return n
}

// packDecl are packs that are to be made, all at once, before the first step over one
// of them.
type packDecl struct {
	rows    func() []pack.Rows // of each
	nodes   []int
	options []pack.Options // of each
	input   int
}

// Input says where rows come from and how they are written. The zero value of
// an option detects.
type Input = input.Options

// InputFold leaves one of several parts of the rows out, or reads exactly these (cross-validation).
type InputFold = rows.Fold

// NewGraph makes an empty plan.
func NewGraph() *Graph { return &Graph{} }

// add appends a node and returns its number.
func (g *Graph) add(n node) int {
	return g.nodes.add(&n)
}

// fail notes a mistake in the plan with the user's file and line.
func (g *Graph) fail(format string, args ...any) {
	g.errs = append(g.errs, fault.Newf(fault.UserCode, "build", callSite(), format, args...))
}

// partitions returns a number of partitions; one below 1 is a mistake.
func (g *Graph) partitions(op string, n int) int {
	if n < 1 || n > mostPartitions {
		g.fail("%s: %d is not a number of partitions from 1 to %d", op, n, mostPartitions)
	}
	return min(max(1, n), mostPartitions)
}

// isShare notes a share that is not between 0 and 1 as a mistake.
func (g *Graph) isShare(op string, share float64) {
	if !(share >= 0 && share <= 1) {
		g.fail("%s: %v is not a fraction from 0 to 1", op, share)
	}
}

// sameGraph returns the plan of two datasets. That they are of two plans is a mistake in both: what one is computed
// from the other does not have.
func sameGraph(op string, a, b *Graph) *Graph {
	if a != b {
		for _, g := range []*Graph{a, b} {
			g.fail("%s: the datasets are of two plans: make both of the *rdd.Graph that Build is given", op)
		}
	}
	return a
}

// notNegative notes a number of rows below zero as a mistake.
func (g *Graph) notNegative(op string, n int) {
	if n < 0 {
		g.fail("%s: %d is not a number of rows", op, n)
	}
}

// callSite returns the nearest caller outside this package.
func callSite() string {
	self, _, _, _ := runtime.Caller(0)
	here := pkgOf(self)
	for skip := 2; ; skip++ {
		pc, file, line, ok := runtime.Caller(skip)
		if !ok {
			return "the plan"
		}
		if pkgOf(pc) != here || strings.HasSuffix(file, "_test.go") {
			return fmt.Sprintf("%s:%d", filepath.Base(file), line)
		}
	}
}

func pkgOf(pc uintptr) string {
	name := runtime.FuncForPC(pc).Name()
	slash := strings.LastIndexByte(name, '/')
	dot := strings.IndexByte(name[slash+1:], '.')
	return name[:slash+1+dot]
}

// Err returns what is wrong with the plan, if anything.
func (g *Graph) Err() error { return errors.Join(g.errs...) }

// Fingerprint returns a digest of the plan: kind, element type, options and
// position of every node.
func (g *Graph) Fingerprint() plan.Digest { return g.fingerprintOf(g.size()) }

// fingerprintOf returns a digest of the first nodes of the plan.
func (g *Graph) fingerprintOf(nodes int) plan.Digest {
	h := sha256.New()
	for i, n := range g.nodes.items()[:nodes] {
		fmt.Fprintf(h, "%d %s %s %s %v\n", i, n.kind, n.typ, n.detail, n.inputs)
	}
	return plan.DigestFromBytes(h.Sum(nil))
}

// bound is what an executor's plan does not have of its arguments.
type bound struct {
	Parts   []builtPart
	Sources []*input.Source // of inputs that nothing reads: nil
}

// Resolve finds the input files on the driver's side, those that were not found before, and returns for the executors
// their description, and which parts the plan has come to have.
func (g *Graph) Resolve(ctx context.Context) (raw []byte, err error) {
	defer func() {
		if r := recover(); r != nil { // of a function that says which directories to read
			err = fault.Newf(fault.UserCode, "resolve", "the inputs", "panic: %v\n%s", r, debug.Stack())
		}
	}()
	out := bound{Parts: g.builtParts(), Sources: make([]*input.Source, len(g.sources.items()))}
	for i, d := range g.sources.items() {
		if d.source == nil && g.isRead(d.node) {
			if d.source, err = input.Open(ctx, d.Options, d.URIs...); err != nil {
				return nil, err
			}
		}
		out.Sources[i] = d.source
	}
	return json.Marshal(out)
}

// isRead reports whether a node is an input of another.
func (g *Graph) isRead(id int) bool {
	return slices.ContainsFunc(g.nodes.items(), func(n *node) bool {
		has := func(in []int) bool { return slices.Contains(in, id) }
		return has(n.inputs) || n.choice != nil && slices.ContainsFunc(n.choice.inputs, has)
	})
}

// Bind takes over from the driver what Resolve has returned there: it adds the parts that the plan does not have yet,
// and takes the resolved inputs.
func (g *Graph) Bind(raw []byte) error {
	var b bound
	if err := json.Unmarshal(raw, &b); err != nil {
		return fault.New(fault.PlanMismatch, "bind", "inputs", err)
	}
	if err := g.buildParts(b.Parts); err != nil {
		return err
	}
	if all := g.sources.items(); len(b.Sources) != len(all) {
		return fault.Newf(fault.PlanMismatch, "bind", "inputs", "%d are described, the plan has %d", len(b.Sources),
			len(all))
	}
	for i, d := range g.sources.items() {
		if d.source == nil { // else tasks may be reading it
			d.source = b.Sources[i]
		}
	}
	return nil
}

// Folders returns what prepares the fold of a step's node; it is part of runner.Program.
func (g *Graph) Folders(node int) (runner.NewFolder, error) {
	if node < 0 || node >= g.size() || g.node(node).folder == nil {
		return nil, fault.Newf(fault.PlanMismatch, "fold", fmt.Sprintf("node %d", node), "it is not a step of the plan")
	}
	return g.node(node).folder, nil
}

// Task runs one task of an action; it is part of runner.Program.
func (g *Graph) Task(ctx context.Context, node, partition int, args []byte, packs runner.TaskContext) (data []byte,
	err error) {
	if node < 0 || node >= g.size() || g.node(node).task == nil {
		return nil, fault.Newf(fault.PlanMismatch, "run", fmt.Sprintf("node %d", node),
			"it is not an action of the plan")
	}
	defer recovered(partition, &err)
	return g.runTask(ctx, g.node(node).task, partition, args, packs)
}

// recovered makes an error of a panic of the user's functions.
func recovered(partition int, err *error) {
	if r := recover(); r != nil {
		*err = fault.Newf(fault.UserCode, "run", fmt.Sprintf("partition %d", partition), "panic: %v\n%s", r,
			debug.Stack())
	}
}

// name returns how a node is called in messages.
func (g *Graph) name(id int) string {
	n := g.node(id)
	kind := n.kind
	if n.label != "" {
		kind = fmt.Sprintf("%q, %s", n.label, kind)
	}
	if n.at == "" {
		return fmt.Sprintf("%s (node %d)", kind, id)
	}
	return fmt.Sprintf("%s at %s", kind, n.at)
}

// allDecided returns everything that has been decided.
func (g *Graph) allDecided() decisions {
	out := decisions{}
	g.decided.Range(func(k, v any) bool {
		out[k.(int)] = v.([]int)
		return true
	})
	return out
}

// spanOf returns the partitions of a shuffle that one of its result is.
func (g *Graph) spanOf(id, part int) shuffle.Span {
	if f := g.node(id).family; f > 0 {
		if d := g.decisionOf(f - 1); part+1 < len(d) {
			return shuffle.Span{From: d[part], Through: d[part+1]}
		}
	}
	return shuffle.Span{From: part, Through: part + 1}
}

// above reports whether a node is computed from another one, or under it where that
// is a parameter; by any of its alternatives.
func (g *Graph) above(id, from int) bool {
	g.reached.Lock()
	defer g.reached.Unlock()
	for next := len(g.reached.by); next <= id; next++ { // what a node is computed from was declared before it
		bits := make([]uint64, next/64+1)
		for _, list := range [][]int{g.node(next).inputs, g.node(next).params} {
			for _, in := range list {
				bits[in/64] |= 1 << (in % 64)
				for i, b := range g.reached.by[in] {
					bits[i] |= b
				}
			}
		}
		g.reached.by = append(g.reached.by, bits)
	}
	return from < id && g.reached.by[id][from/64]>>(from%64)&1 == 1
}

// mustEncode notes as a mistake of the plan that values of T cannot be encoded; what says
// which values those are.
func mustEncode[T any](g *Graph, op, what string) {
	if err := row.Encodable(reflect.TypeFor[T]()); err != nil {
		g.fail("%s: the %s cannot be encoded: %v", op, what, err)
	}
}

// bytesOf estimates how many bytes of rows a node has, judged by what it is
// computed from; -1 where that is not known.
func (g *Graph) bytesOf(id int) int64 { return g.bytesBelow(id, map[int]int64{}) }

func (g *Graph) bytesBelow(id int, known map[int]int64) int64 {
	if b, ok := known[id]; ok {
		return b
	}
	n := g.node(id)
	if n.bytes != nil {
		return n.bytes()
	}
	inputs := n.inputs
	if n.choice != nil {
		inputs = n.choice.inputs[0] // each of the others has the same rows
	}
	total := int64(-1)
	for _, in := range inputs {
		b := g.bytesBelow(in, known)
		if b < 0 {
			total = -1
			break
		}
		total = max(0, total) + b
	}
	known[id] = total
	return total
}
