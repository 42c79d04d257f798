package rdd

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// LaterPart is a part of the plan that is built while the program runs, from a value that only an earlier action can
// know: how many rows there are, which keys are frequent. The plan is as it was while an action runs; between two
// actions it grows, by the same part on every node.
type LaterPart[A, P any] struct {
	g     *Graph
	id    int
	build func(g *Graph, a A) P
}

// builtPart is a part that was added: the node that has declared it, and the encoded value that it was built from.
type builtPart struct {
	Node  int
	Value []byte
}

// Later declares a part of the plan that Build adds. Like the plan itself, what build makes may depend on its
// argument only: every node of the cluster calls it, and it must not use the session. It may use the datasets of the
// plan so far.
func Later[A, P any](g *Graph, build func(g *Graph, a A) P) LaterPart[A, P] {
	mustEncode[A](g, "later", "argument")
	add := func(raw []byte) error {
		var a A
		if err := row.Decode(raw, &a); err != nil {
			return fault.New(fault.Corrupt, "decode", "the argument of a later part", err)
		}
		build(g, a)
		return nil
	}
	id := g.add(node{kind: "later", typ: row.TypeName[A](), user: true, later: add, at: callSite()})
	return LaterPart[A, P]{g: g, id: id, build: build}
}

// Build adds the part for a value, and returns what its function has made: actions to run, datasets for the next part.
// Each call adds another part. A mistake in it is an error, and leaves the plan as it was.
func (l LaterPart[A, P]) Build(ctx context.Context, s *Session, a A) (p P, err error) {
	raw, err := row.Encode(a)
	if err != nil {
		return p, fault.New(fault.UserCode, "encode", "the argument of "+l.g.name(l.id), err)
	}
	ctx, leave, err := s.enter(ctx, false)
	if err != nil {
		return p, err
	}
	defer leave()
	mark := l.g.mark()
	err = l.g.buildPart(builtPart{l.id, raw}, func() error {
		var same A // as every other node has it
		if err := row.Decode(raw, &same); err != nil {
			return err
		}
		s.turns.free(func() { s.turns.building = true })
		defer s.turns.free(func() { s.turns.building = false })
		p = l.build(l.g, same)
		return nil
	})
	var bound []byte
	if err == nil {
		bound, err = l.g.Resolve(ctx)
	}
	if err != nil {
		l.g.cutTo(mark)
		var none P
		return none, err
	}
	return p, s.cluster.Extend(ctx, plan.Extension{Fingerprint: l.g.Fingerprint(), Sources: bound})
}

// graphMark is how large a plan was.
type graphMark struct{ nodes, sources, errs, parts, undos int }

func (g *Graph) mark() graphMark {
	return graphMark{g.size(), len(g.sources.items()), len(g.errs), len(g.builtParts()), len(g.undos)}
}

// cutTo drops what was added since a mark, which no task knows of.
func (g *Graph) cutTo(m graphMark) {
	g.nodes.cut(m.nodes)
	g.sources.cut(m.sources)
	g.errs = g.errs[:m.errs]
	for _, undo := range slices.Backward(g.undos[m.undos:]) {
		undo()
	}
	g.undos = g.undos[:m.undos]
	g.built.Lock()
	g.built.parts = g.built.parts[:m.parts]
	g.built.Unlock()
}

// builtParts returns the parts that were added, in their order.
func (g *Graph) builtParts() []builtPart {
	g.built.Lock()
	defer g.built.Unlock()
	return slices.Clone(g.built.parts)
}

// buildParts adds those of some parts that the plan does not have yet.
func (g *Graph) buildParts(parts []builtPart) error {
	had := len(g.builtParts())
	if len(parts) < had {
		return fault.Newf(fault.PlanMismatch, "build", "later parts", "%d are described, the plan has %d",
			len(parts), had)
	}
	for _, p := range parts[had:] {
		if p.Node < 0 || p.Node >= g.size() || g.node(p.Node).later == nil {
			return fault.Newf(fault.PlanMismatch, "build", fmt.Sprintf("node %d", p.Node),
				"it is no later part of the plan")
		}
		if err := g.buildPart(p, func() error { return g.node(p.Node).later(p.Value) }); err != nil {
			return err
		}
	}
	return nil
}

// buildPart adds a part by a function, and returns the mistakes in it.
func (g *Graph) buildPart(p builtPart, build func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.Newf(fault.UserCode, "build", g.name(p.Node), "panic: %v\n%s", r, debug.Stack())
		}
	}()
	g.add(node{kind: "later-part", detail: plan.DigestOf(p.Value).Short(), at: g.node(p.Node).at})
	if err := build(); err != nil {
		return err
	}
	g.built.Lock()
	g.built.parts = append(g.built.parts, p)
	g.built.Unlock()
	return g.Err()
}

// MayPack reports whether the plan has packs, or may come to have some.
func (g *Graph) MayPack() bool {
	return slices.ContainsFunc(g.nodes.items(), func(n *node) bool { return n.pack != nil || n.later != nil })
}
