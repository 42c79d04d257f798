package rdd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Counter counts something about the rows that pass by. It is exact: a partition
// counts once, however often it is tried or computed again, and only when it has
// been read to its end. Within a loop that is its last round.
type Counter struct{ nodes *[]int }

// NewCounter makes a counter.
func NewCounter() Counter { return Counter{new([]int)} }

// Tally adds what f makes of every row to a counter. Rows pass unchanged.
func Tally[T any](ds Dataset[T], c Counter, f func(T) int64) Dataset[T] {
	var id int
	out := derive(ds, "tally", func(ctx context.Context, part int, yield func([]T) error) error {
		env, err := envOf(ctx)
		if err != nil {
			return fmt.Errorf("tally: %w", err)
		}
		var n int64
		err = ds.each(ctx, part, func(rows []T) error {
			for i := range rows {
				n += f(rows[i])
			}
			return yield(rows)
		})
		if err == nil {
			env.tally(tally{Node: id, Part: part, N: n})
		}
		return err
	})
	id = out.id
	ds.g.notes(c.nodes, id)
	return out
}

// Value returns what has been counted so far.
func (c Counter) Value(s *Session) (total int64) {
	for _, id := range *c.nodes {
		for _, n := range s.tallies.of(id) {
			total += n.N
		}
	}
	return total
}

// notes adds a node to a list.
func (g *Graph) notes(list *[]int, id int) {
	*list = append(*list, id)
	g.undos = append(g.undos, func() { *list = (*list)[:len(*list)-1] })
}

// tallies are what counters and accumulators have come to, of each node by partition. They may be read while an action
// runs.
type tallies struct {
	sync.Mutex
	by map[int]map[int]tally
}

// note takes in what a task has said.
func (t *tallies) note(said []tally) {
	t.Lock()
	defer t.Unlock()
	for _, one := range said {
		if t.by == nil {
			t.by = map[int]map[int]tally{}
		}
		if t.by[one.Node] == nil {
			t.by[one.Node] = map[int]tally{}
		}
		t.by[one.Node][one.Part] = one
	}
}

// of returns those of a node, in the order of their partitions.
func (t *tallies) of(node int) (out []tally) {
	t.Lock()
	defer t.Unlock()
	for _, part := range slices.Sorted(maps.Keys(t.by[node])) {
		out = append(out, t.by[node][part])
	}
	return out
}
