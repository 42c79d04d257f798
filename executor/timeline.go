package executor

import (
	"sync"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// Timeline is what the slots of a run did, in times of the executor's clock. Each slot's part is written by that slot
// alone.
type Timeline struct {
	pack  int // the node that makes it
	began plan.Time
	slots [][]*wire.Span
}

// NewTimeline returns that of a run over a node's pack that begins.
func NewTimeline(pack, slots int, began plan.Time) *Timeline {
	return &Timeline{pack: pack, began: began, slots: make([][]*wire.Span, slots)}
}

// Did notes what a slot has done. split is -1 where it is of several.
func (t *Timeline) Did(slot int, kind plan.SpanKind, split int, from, to plan.Time) {
	t.slots[slot] = joined(append(t.slots[slot], t.span(slot, kind, split, from, to)))
}

func (t *Timeline) span(slot int, kind plan.SpanKind, split int, from, to plan.Time) *wire.Span {
	from, to = max(0, from-t.began), max(0, to-t.began)
	return &wire.Span{Slot: uint32(slot), Kind: uint32(kind), Split: int32(split), FromNs: uint64(from),
		ToNs: uint64(to), WorkedNs: uint64(to - from)}
}

// Tell adds to the result of a run that ends now what was done for it, and what was loaded beside it.
func (t *Timeline) Tell(out *Folded, l *Loads, now plan.Time) *Folded {
	for _, slot := range t.slots {
		out.Spans = append(out.Spans, slot...)
	}
	out.Spans = append(out.Spans, l.take(t)...)
	out.Took = now - t.began
	return out
}

// joined joins the last two spans of a slot where the second goes on with what the first was, and where they are too
// many those of one kind that are the least apart.
func joined(all []*wire.Span) []*wire.Span {
	if n := len(all) - 1; n > 0 && all[n].Split == all[n-1].Split && along(all[n-1], all[n]) {
		return join(all, n-1)
	}
	if len(all) <= plan.MostSpans {
		return all
	}
	least := -1
	for i := range len(all) - 1 {
		if all[i].Kind == all[i+1].Kind && (least < 0 || apart(all, i) < apart(all, least)) {
			least = i
		}
	}
	if least >= 0 {
		return join(all, least)
	}
	least = 0 // kinds alternate: the shortest is left out
	for i := range all {
		if all[i].ToNs-all[i].FromNs < all[least].ToNs-all[least].FromNs {
			least = i
		}
	}
	return append(all[:least], all[least+1:]...)
}

// within is which part of two spans may lie between them, for one to go on with what the other was.
const within = 16

// along reports whether a span goes on with what the one before it was.
func along(a, b *wire.Span) bool {
	return a.Kind == b.Kind && within*(b.FromNs-a.ToNs) <= a.ToNs-a.FromNs+b.ToNs-b.FromNs
}

func apart(all []*wire.Span, i int) uint64 { return all[i+1].FromNs - all[i].ToNs }

// join joins a span with the next.
func join(all []*wire.Span, i int) []*wire.Span {
	a, b := all[i], all[i+1]
	if a.ToNs, a.WorkedNs = b.ToNs, a.WorkedNs+b.WorkedNs; a.Split != b.Split {
		a.Split = -1
	}
	return append(all[:i+1], all[i+2:]...)
}

// Loads are the last splits that were brought to an executor, in times of its clock.
type Loads struct {
	mu  sync.Mutex
	all []load
}

type load struct {
	pack, split int
	from, to    plan.Time
}

// Did notes that a split of a node's pack was brought here.
func (l *Loads) Did(pack, split int, from, to plan.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == plan.MostSpans {
		l.all = l.all[1:]
	}
	l.all = append(l.all, load{pack, split, from, to})
}

// take returns those of a run's pack that have ended since it began, as spans of the slot after its last. Each is told
// of once; those of other packs are not.
func (l *Loads) take(t *Timeline) (all []*wire.Span) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.all {
		if one.pack == t.pack && one.to > t.began {
			all = append(all, t.span(len(t.slots), plan.Loading, one.split, one.from, one.to))
		}
	}
	l.all = nil
	return all
}

// KindOf returns what folding a lease is.
func KindOf(l *wire.Lease) plan.SpanKind {
	if l.Helps {
		return plan.Helping
	}
	return plan.Folding
}
