package rows

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

// A way takes values from where they are made to where they are looked at: from an
// executor to the driver's side, or there and back. It is declared in a plan, of which
// every executor has one of its own, and returns what has arrived; seen is for what is
// looked at on the way.
type way[T any] struct {
	name    string
	declare func(g *rdd.Graph, values []T, seen *sightings[T]) fetch[T]
	mixed   bool // they arrive in any order
}

type fetch[T any] func(context.Context, *rdd.Session) ([]T, error)

// longWaysOf are the ways that a plan has for values of a type beside the short ones.
func longWaysOf[T any]() []way[T] {
	return []way[T]{{name: "reduce", declare: byReduce[T]}, {name: "parameter", declare: byParam[T]},
		{name: "pack", declare: byPack[T], mixed: true}, {name: "step", declare: byStep[T]},
		{name: "scan", declare: byScan[T]}}
}

// shortWaysOf are those that stand for the others.
func shortWaysOf[T any]() []way[T] {
	return []way[T]{{name: "collect", declare: byCollect[T]}, {name: "aggregated", declare: byAggregated[T]}}
}

// rowsOf is a dataset of values, some to a partition, made where its tasks run.
func rowsOf[T any](g *rdd.Graph, values []T, parts int) rdd.Dataset[T] {
	return rdd.Map(rdd.Range(g, 0, int64(len(values)), parts), func(i int64) T { return values[i] })
}

// byCollect has two rows or three in each partition.
func byCollect[T any](g *rdd.Graph, values []T, _ *sightings[T]) fetch[T] {
	return rdd.Collect(rowsOf(g, values, (len(values)+1)/2)).Run
}

// byReduce has the driver's side see the value of each partition.
func byReduce[T any](g *rdd.Graph, values []T, seen *sightings[T]) fetch[T] {
	first := rdd.Reduce(rowsOf(g, values, len(values)), func(a, b T) T { seen.add(b); return a })
	return func(ctx context.Context, s *rdd.Session) ([]T, error) {
		v, err := first.Run(ctx, s)
		return append([]T{v}, seen.all...), err
	}
}

// byAggregated makes each value an accumulator of its own.
func byAggregated[T any](g *rdd.Graph, values []T, seen *sightings[T]) fetch[T] {
	last := rdd.Aggregated(rdd.Range(g, 0, int64(len(values)), len(values)), func() (zero T) { return zero },
		func(_ T, i int64) T { return values[i] }, func(_, b T) T { seen.add(b); return b })
	return func(ctx context.Context, s *rdd.Session) ([]T, error) {
		_, err := last.Run(ctx, s)
		return seen.all, err
	}
}

// byParam sets each value in turn, for a task to see it.
func byParam[T any](g *rdd.Graph, values []T, seen *sightings[T]) fetch[T] {
	p := rdd.NewParam[T](g, "the value")
	look := rdd.Count(rdd.MapWith(rdd.Range(g, 0, 1, 1), p, func(_ int64, v T) bool { seen.add(v); return true }))
	return seen.after(values, func(ctx context.Context, s *rdd.Session, v T) error {
		if err := p.Set(s, v); err != nil {
			return err
		}
		_, err := look.Run(ctx, s)
		return err
	})
}

// byPack lays the values out in a pack.
func byPack[T any](g *rdd.Graph, values []T, _ *sightings[T]) fetch[T] {
	return rdd.Prefix(rdd.Pack(rowsOf(g, values, 1), rdd.Splits(1)), len(values)).Run
}

// byStep has a fold take each value as its parameter and return it as its result.
func byStep[T any](g *rdd.Graph, values []T, seen *sightings[T]) fetch[T] {
	row := rdd.Pack(rdd.Map(rdd.Range(g, 0, 1, 1), func(int64) float64 { return 1 }), rdd.Splits(1))
	step := rdd.Aggregate(row, rdd.Aggregator[T, float64, T]{
		Zero: func(T) (zero T) { return zero },
		Add:  func(_, v T, _ float64) T { return v },
		Merge: func(a, b T) T {
			if reflect.ValueOf(&a).Elem().IsZero() {
				return b
			}
			return a
		},
	})
	return seen.after(values, func(ctx context.Context, s *rdd.Session, v T) error {
		out, err := step.Run(ctx, s, v)
		seen.add(out)
		return err
	})
}

// byScan has a scan of a point return its parameter.
func byScan[T any](g *rdd.Graph, values []T, seen *sightings[T]) fetch[T] {
	points := rdd.Pack(rdd.Map(rdd.Range(g, 0, 1, 1), func(int64) rdd.Point { return rdd.Point{Values: []float64{1}} }),
		rdd.Splits(1))
	scan := rdd.ScanBatches(points, func(_, p T, _ *rdd.Batch) T { return p })
	return seen.after(values, func(ctx context.Context, s *rdd.Session, v T) error {
		out, err := scan.Run(ctx, s, v)
		seen.add(out...)
		return err
	})
}

// sightings are values that were seen.
type sightings[T any] struct {
	mu  sync.Mutex
	all []T
}

func (s *sightings[T]) add(v ...T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, v...)
}

// after are the sightings when something has been done with each value.
func (s *sightings[T]) after(values []T, do func(context.Context, *rdd.Session, T) error) fetch[T] {
	return func(ctx context.Context, session *rdd.Session) ([]T, error) {
		for _, v := range values {
			if err := do(ctx, session, v); err != nil {
				return nil, err
			}
		}
		return s.all, nil
	}
}

// lineOfATest is how a refusal says where the way was declared.
var lineOfATest = regexp.MustCompile(`\w+_test\.go:\d+`)

// refused reports whether the plan does not take a way, as it may: by an error that names
// the type and the line.
func refused[T any](t *testing.T, declare func(*rdd.Graph)) bool {
	t.Helper()
	g := rdd.NewGraph()
	declare(g)
	err := g.Err()
	if err == nil {
		return false
	}
	namesType[T](t, err)
	if !lineOfATest.MatchString(err.Error()) {
		t.Errorf("the refusal does not say where in the program: %v", firstLine(err))
	}
	return true
}

// namesType says of an error that it has a type's name.
func namesType[T any](t *testing.T, err error) {
	t.Helper()
	name := reflect.TypeFor[T]().String()
	if full := strings.ReplaceAll(err.Error(), "github.com/volley-engine/", ""); !strings.Contains(full,
		strings.ReplaceAll(name, "github.com/volley-engine/", "")) {
		t.Errorf("the refusal does not name %s: %v", name, err)
	}
}

// arrive runs a way alone and compares what arrives.
func arrive[T any](t *testing.T, w way[T], values []T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("the plan was taken, and then: panic: %v", r)
		}
	}()
	seen := &sightings[T]{}
	_, err := volley.Run(ctx, testConfig(t), "carry", struct{}{}, func(g *rdd.Graph, _ struct{}) fetch[T] {
		return w.declare(g, values, seen)
	}, func(ctx context.Context, s *rdd.Session, _ struct{}, arrived fetch[T]) (string, error) {
		got, err := arrived(ctx, s)
		if err == nil {
			compare(t, got, values, w.mixed)
		}
		return "end", err
	})
	if err != nil {
		t.Errorf("the plan was taken, and then: %v", firstLine(err))
	}
}

func compare[T any](t *testing.T, got, want []T, mixed bool) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d of %d values arrive", len(got), len(want))
		return
	}
	left := append([]T{}, got...)
	for i, v := range want {
		at := 0
		for mixed && at < len(left)-1 && !sameValue(left[at], v) {
			at++
		}
		if !sameValue(left[at], v) {
			t.Errorf("value %d, %s, comes back as %s", i, shown(v), shown(left[at]))
			return
		}
		left = append(left[:at], left[at+1:]...)
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// holder has a value in all the places where there may be one.
type holder[T any] struct {
	One  T
	All  []T
	Two  [2]T
	Some *T
	By   map[string]T
}

func held[T any](values []T) (out []holder[T]) {
	for i, v := range values {
		h := holder[T]{One: v, All: values[:i], Two: [2]T{values[0], v}, By: map[string]T{}}
		for k, v := range values[i:] {
			h.By[fmt.Sprint(k)] = v
		}
		if i%2 == 0 {
			h.Some, h.By = &v, nil
		}
		out = append(out, h)
	}
	return out
}
