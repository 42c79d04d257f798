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
	"strings"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/storage"
)

// Graph collects the plan that Build declares. It is not safe for concurrent
// use and is frozen once Build has returned.
type Graph struct {
	nodes   []node
	sources []*sourceDecl
	errs    []error
}

// node is one operation of the plan.
type node struct {
	kind    string
	typ     string
	detail  string
	user    bool // it runs a function of the user's
	inputs  []int
	packs   func(*storage.PackMeta, []byte) (runner.Folder, error)
	task    taskFunc
	pack    *packDecl
	shuffle *shuffleDecl
}

// taskFunc computes one partition's part of an action.
type taskFunc func(ctx context.Context, partition int, args []byte, packs runner.Packs) ([]byte, error)

// sourceDecl is an input that is resolved once, on the driver's side.
type sourceDecl struct {
	URIs    []string
	Options storage.ReadOptions
	source  *storage.Source
}

// packDecl is a pack that is to be made before the first step over it.
type packDecl struct {
	rows    func() storage.Rows
	options storage.PackOptions
	input   int
}

// Input says where rows come from and how they are written. The zero value of
// an option detects.
type Input = storage.ReadOptions

// NewGraph makes an empty plan.
func NewGraph() *Graph { return &Graph{} }

// add appends a node and returns its number.
func (g *Graph) add(n node) int {
	g.nodes = append(g.nodes, n)
	return len(g.nodes) - 1
}

// fail notes a mistake in the plan with the user's file and line.
func (g *Graph) fail(format string, args ...any) {
	g.errs = append(g.errs, fault.Newf(fault.UserCode, "build", callSite(), format, args...))
}

// callSite is the nearest caller outside this package.
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

// Err is what is wrong with the plan, if anything.
func (g *Graph) Err() error { return errors.Join(g.errs...) }

// Fingerprint is a digest of the plan: kind, element type, options and
// position of every node.
func (g *Graph) Fingerprint() plan.Digest {
	h := sha256.New()
	for i, n := range g.nodes {
		fmt.Fprintf(h, "%d %s %s %s %v\n", i, n.kind, n.typ, n.detail, n.inputs)
	}
	return plan.DigestFromBytes(h.Sum(nil))
}

// typeName names a type in full.
func typeName[T any]() string {
	t := reflect.TypeFor[T]()
	return t.PkgPath() + "." + t.String()
}

// Resolve finds the input files on the driver's side and returns their
// description for the executors.
func (g *Graph) Resolve() ([]byte, error) {
	resolved := make([]*storage.Source, len(g.sources))
	for i, d := range g.sources {
		s, err := storage.OpenSource(d.Options, d.URIs...)
		if err != nil {
			return nil, err
		}
		d.source, resolved[i] = s, s
	}
	return json.Marshal(resolved)
}

// Bind takes over the resolved inputs from the driver.
func (g *Graph) Bind(raw []byte) error {
	var resolved []*storage.Source
	if err := json.Unmarshal(raw, &resolved); err != nil || len(resolved) != len(g.sources) {
		return fault.Newf(fault.PlanMismatch, "bind", "inputs", "%d are described, the plan has %d", len(resolved), len(g.sources))
	}
	for i, s := range resolved {
		g.sources[i].source = s
	}
	return nil
}

// Folder prepares the fold of a step's node; it is part of runner.Program.
func (g *Graph) Folder(node int, meta *storage.PackMeta, param []byte) (runner.Folder, error) {
	if node < 0 || node >= len(g.nodes) || g.nodes[node].packs == nil {
		return nil, fault.Newf(fault.PlanMismatch, "fold", fmt.Sprintf("node %d", node), "it is not a step of the plan")
	}
	return g.nodes[node].packs(meta, param)
}

// Task runs one task of an action; it is part of runner.Program.
func (g *Graph) Task(ctx context.Context, node, partition int, args []byte, packs runner.Packs) (data []byte, err error) {
	if node < 0 || node >= len(g.nodes) || g.nodes[node].task == nil {
		return nil, fault.Newf(fault.PlanMismatch, "run", fmt.Sprintf("node %d", node), "it is not an action of the plan")
	}
	defer func() {
		if r := recover(); r != nil {
			err = fault.Newf(fault.UserCode, "run", fmt.Sprintf("partition %d", partition), "panic: %v\n%s", r, debug.Stack())
		}
	}()
	return runTask(ctx, g.nodes[node].task, partition, args, packs)
}
