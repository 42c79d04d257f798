package rdd

import "sync/atomic"

// growing is a list that grows while tasks read it: what is in it stays where it is. One goroutine adds to it.
type growing[T any] struct{ all atomic.Pointer[[]*T] }

// items returns what is in the list by now.
func (l *growing[T]) items() []*T {
	if all := l.all.Load(); all != nil {
		return *all
	}
	return nil
}

// add appends an item and returns its number.
func (l *growing[T]) add(item *T) int {
	all := append(l.items(), item)
	l.all.Store(&all)
	return len(all) - 1
}

// cut drops the items from a number on, which no task knows of.
func (l *growing[T]) cut(n int) {
	all := l.items()[:n:n]
	l.all.Store(&all)
}

// node returns an operation of the plan.
func (g *Graph) node(id int) *node { return g.nodes.items()[id] }

// Operations returns how many the plan has.
func (g *Graph) Operations() int { return g.size() }

// size returns the number of operations of the plan.
func (g *Graph) size() int { return len(g.nodes.items()) }
