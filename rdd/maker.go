package rdd

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/pack"
)

// Maker makes a plan's packs, or finds them in a cache. It may be used by
// several goroutines.
type Maker struct {
	Graph    *Graph
	Cache    *pack.Cache
	Workers  int
	Program  string         // identity of user code, part of the identity of packs it made
	Progress func(rows int) // may be nil
	mu       struct {
		sync.Mutex
		made map[int]*pack.Pack
	}
}

// Make makes or finds the pack of a node, and those that are made with it, once.
func (m *Maker) Make(ctx context.Context, node int) (*pack.Pack, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.mu.made[node]; p != nil {
		return p, nil
	}
	if node < 0 || node >= m.Graph.size() || m.Graph.node(node).pack == nil {
		return nil, fault.Newf(fault.PlanMismatch, "make", fmt.Sprintf("node %d", node), "it is not a pack of the plan")
	}
	decl := m.Graph.node(node).pack
	packs := make([]*pack.Pack, len(decl.nodes))
	g, ctx := errgroup.WithContext(ctx)
	for i, rows := range decl.rows() {
		g.Go(pack.Guarded(func() (err error) {
			packs[i], err = m.get(ctx, decl, i, rows)
			return err
		}))
	}
	err := g.Wait()
	if slices.ContainsFunc(packs, func(p *pack.Pack) bool { return p != nil && !p.Found }) {
		debug.FreeOSMemory() // the pages of the packs are about to take its place
	}
	if m.mu.made == nil {
		m.mu.made = map[int]*pack.Pack{}
	}
	for i, p := range packs {
		switch {
		case err == nil:
			m.mu.made[decl.nodes[i]] = p
		case p != nil:
			p.Close()
		}
	}
	return m.mu.made[node], err
}

// get makes or finds one of the packs of a declaration.
func (m *Maker) get(ctx context.Context, decl *packDecl, which int, rows pack.Rows) (*pack.Pack, error) {
	o := decl.options[which]
	o.Workers = m.Workers
	identity := m.Graph.identityOf(decl.input, m.Program)
	if which > 0 {
		identity = []any{identity, which}
	}
	id, err := pack.ID(identity, o)
	if err != nil {
		return nil, fault.New(fault.Internal, "identify", "pack", err)
	}
	return m.Cache.Get(ctx, id, rows, o, func(rows int) {
		if m.Progress != nil {
			m.Progress(rows)
		}
	})
}

// MadeWith returns the packs that are made together with that of a node, itself among them.
func (g *Graph) MadeWith(node int) []int {
	if node < 0 || node >= g.size() || g.node(node).pack == nil {
		return nil
	}
	return g.node(node).pack.nodes
}

// Close lets go of the packs.
func (m *Maker) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.mu.made {
		p.Close()
	}
	m.mu.made = nil
}

// identityOf describes everything that decides the rows of a node: the input
// files and, where user code makes rows, the program and the plan.
func (g *Graph) identityOf(node int, program string) any {
	var sources []*input.Source
	for _, d := range g.sources.items() {
		if d.node <= node { // the rows may be those of a source itself
			sources = append(sources, d.source)
		}
	}
	n := g.node(node)
	if n.points != nil {
		return n.points.source
	}
	return struct {
		Sources []*input.Source
		Plan    plan.Digest
		Node    int
		Program string
	}{sources, g.fingerprintOf(node + 1), node, program}
}

// MadePack is what the task of a pack's node answers: who has made it, and
// what is in it.
type MadePack struct {
	Holder plan.ExecutorID
	Meta   *pack.Meta
}

// makePack runs the task that makes a pack where it runs.
func makePack(node int) taskFunc {
	return func(ctx context.Context, _ int, _ []byte, packs runner.TaskContext) ([]byte, error) {
		holder, meta, err := packs.MakePack(ctx, node)
		if err != nil {
			return nil, err
		}
		return json.Marshal(MadePack{Holder: holder, Meta: meta})
	}
}
