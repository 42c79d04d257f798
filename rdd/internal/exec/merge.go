package exec

import (
	"context"
	"errors"
	"io"

	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/shuffle"
)

// mergeMost is how many runs are merged at a time: each takes a file and a few blocks of memory.
const mergeMost = 128

// Merge merges sorted runs; of equal rows those of the first run come first. Where runs are many, groups of
// them are merged to files first.
func Merge[T any](ctx context.Context, packs runner.TaskContext, row row.Codec[T], o Order[T], streams []*Run[T],
	yield func([]T) error) error {
	var made []*shuffle.Output
	defer func() {
		for _, b := range made {
			b.Remove()
		}
	}()
	for len(streams) > mergeMost {
		var fewer []*Run[T]
		for from := 0; from < len(streams); from += mergeMost {
			b, err := mergeToFile(ctx, packs, row, o, streams[from:min(from+mergeMost, len(streams))])
			if err != nil {
				return err
			}
			made = append(made, b)
			fewer = append(fewer, &Run[T]{Order: o, Row: row, Open: func() (io.ReadCloser, error) {
				return b.Open(shuffle.Span{From: 0, Through: 1})
			}})
		}
		streams = fewer
	}
	return mergeRuns(ctx, packs, o, streams, yield)
}

func mergeToFile[T any](ctx context.Context, packs runner.TaskContext, row row.Codec[T], o Order[T],
	streams []*Run[T]) (*shuffle.Output, error) {
	out := NewWriter(packs, row, 1)
	out.ToFile()
	defer out.Close()
	err := mergeRuns(ctx, packs, o, streams, func(rows []T) error { return out.AddAll(0, rows) })
	if err != nil {
		return nil, err
	}
	return out.Finish()
}

// merger is a loser tree: each inner node holds the run that lost there, so that a row takes one comparison a
// level.
type merger[T any] struct {
	order   Order[T]
	streams []*Run[T]
	losers  []int // by place; place 0 holds the winner
	over    []bool
}

// less reports whether the present row of run a comes before that of b.
func (m *merger[T]) less(a, b int) bool {
	switch {
	case m.over[a] || m.over[b]:
		return !m.over[a] && m.over[b] || m.over[a] == m.over[b] && a < b
	case m.streams[a].rank != m.streams[b].rank:
		return m.streams[a].rank < m.streams[b].rank
	case m.order.compare == nil:
		return a < b
	}
	c := m.order.compare(&m.streams[a].rows[0], &m.streams[b].rows[0])
	return c < 0 || c == 0 && a < b
}

// build plays all matches below a node and returns the winner.
func (m *merger[T]) build(place int) int {
	if k := len(m.streams); place >= k {
		return place - k
	}
	a, b := m.build(2*place), m.build(2*place+1)
	if m.less(a, b) {
		m.losers[place] = b
		return a
	}
	m.losers[place] = a
	return b
}

// replay plays the matches of a run whose present row has changed.
func (m *merger[T]) replay(s int) {
	winner := s
	for place := (s + len(m.streams)) / 2; place > 0; place /= 2 {
		if m.less(m.losers[place], winner) {
			m.losers[place], winner = winner, m.losers[place]
		}
	}
	m.losers[0] = winner
}

// advance moves a run to its next row.
func (m *merger[T]) advance(s int) error {
	err := m.streams[s].next()
	if errors.Is(err, io.EOF) {
		m.over[s] = true
		return nil
	}
	return err
}

func mergeRuns[T any](ctx context.Context, packs runner.TaskContext, o Order[T], streams []*Run[T],
	yield func([]T) error) error {
	defer func() {
		for _, s := range streams {
			s.close()
		}
	}()
	if len(streams) == 0 {
		return nil
	}
	m := &merger[T]{order: o, streams: streams, losers: make([]int, len(streams)), over: make([]bool, len(streams))}
	for i := range streams {
		if err := m.advance(i); err != nil {
			return err
		}
	}
	m.losers[0] = 0
	if len(streams) > 1 {
		m.losers[0] = m.build(1)
	}
	batch := make([]T, 0, row.BatchSize[T]())
	for w := m.losers[0]; !m.over[w]; w = m.losers[0] {
		if batch = append(batch, streams[w].rows[0]); len(batch) == cap(batch) {
			if packs.Moved(len(batch)); ctx.Err() != nil {
				return ctx.Err()
			}
			if err := yield(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
		if err := m.advance(w); err != nil {
			return err
		}
		m.replay(w)
	}
	if len(batch) == 0 {
		return nil
	}
	return yield(batch)
}
