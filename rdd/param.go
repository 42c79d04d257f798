package rdd

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// Param is a value that datasets are computed under and that Run sets: a
// broadcast variable that may change from one action to the next. It travels
// with the tasks that need it.
type Param[P any] struct {
	g  *Graph
	id int
}

// NewParam declares a parameter.
func NewParam[P any](g *Graph, name string) Param[P] {
	mustEncode[P](g, "parameter", "value")
	return Param[P]{g: g, id: g.add(node{kind: "param", typ: row.TypeName[P](), detail: name, at: callSite()})}
}

func (p Param[P]) name() string { return fmt.Sprintf("the parameter %q", p.g.node(p.id).detail) }

// Set gives the parameter a value. What was shuffled or cached under another one
// is computed anew when it is needed; the rows that a loop has come to stay.
func (p Param[P]) Set(s *Session, value P) error {
	raw, err := Encode(value)
	if err != nil {
		return fault.New(fault.UserCode, "encode", p.name(), err)
	}
	_, leave, _ := s.enter(context.Background(), false)
	defer leave()
	s.params[p.id] = raw
	s.paramSet++
	s.dropAbove(p.id, -1)
	return nil
}

// paramsOf returns the values that a node's tasks are computed under.
func (s *Session) paramsOf(node int) map[int][]byte {
	var out map[int][]byte
	seen := map[int]bool{}
	var walk func(id int)
	walk = func(id int) {
		for _, p := range s.g.node(id).params {
			if raw, set := s.params[p]; set {
				if out == nil {
					out = map[int][]byte{}
				}
				out[p] = raw
			}
		}
		for _, in := range s.g.inputsOf(id) {
			if !seen[in] && s.g.node(in).shuffle == nil {
				seen[in] = true
				walk(in)
			}
		}
	}
	walk(node)
	return out
}

// value returns what a parameter is under a task, decoded once for all tasks of a
// process.
func (p Param[P]) value(ctx context.Context) (v P, err error) {
	env, err := envOf(ctx)
	if err != nil {
		return v, err
	}
	raw, set := env.params[p.id]
	if !set {
		return v, fault.Newf(fault.UserCode, "use", p.name(),
			"it has not been set").WithHint("call Set before the action")
	}
	shared, err := env.packs.Shared(fmt.Sprint("param ", p.id), plan.DigestOf(raw).String(), int64(len(raw)),
		func() (any, error) {
			var v P
			return v, Decode(raw, &v)
		})
	if err != nil {
		return v, err
	}
	return shared.(P), nil
}

// MapWith applies f to every row under a parameter, which f must not change.
// Nothing moves but the parameter; order is kept.
func MapWith[T, P, U any](ds Dataset[T], p Param[P], f func(T, P) U) Dataset[U] {
	out := derive(ds, "map-with", func(ctx context.Context, part int, yield func([]U) error) error {
		value, err := p.value(ctx)
		if err != nil {
			return err
		}
		var out []U
		beat := livenessOf(ctx)
		return ds.each(ctx, part, func(rows []T) error {
			out = slices.Grow(out[:0], len(rows))[:len(rows)]
			for from := 0; from < len(rows); from += livenessRows {
				to := min(len(rows), from+livenessRows)
				for i := from; i < to; i++ {
					out[i] = f(rows[i], value)
				}
				beat.moved(to - from)
			}
			return yield(out)
		})
	})
	ds.g.node(out.id).params = []int{p.id}
	return out
}

// drop forgets the outputs of a shuffle, and has the executors give them up.
func (s *Session) drop(id int) {
	if !s.stages.Opened(id) {
		return
	}
	s.stages.Drop(id)
	delete(s.shuffled, id)
	delete(s.bounds, id)
	s.dropped = maps.Clone(s.dropped)
	s.dropped[id] = s.attempt
}
