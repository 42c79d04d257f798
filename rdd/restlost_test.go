package rdd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
)

// losing loses every output once, while a call has a task that has handed rows back: another of its tasks does not
// find what it reads.
type losing struct {
	tasked
	t    *testing.T
	lost bool
}

func (c *losing) RunCall(ctx context.Context, req plan.CallRequest) ([][]byte, []error, error) {
	data, lost, err := c.tasked.RunCall(ctx, req)
	if err != nil || c.lost || len(data) < 2 {
		return data, lost, err
	}
	for k := range data {
		var a taskResult
		if cborReading.Unmarshal(data[k], &a) != nil || a.Rest == nil {
			continue
		}
		for i := range c.stores {
			c.revive(i)
		}
		other := (k + 1) % len(data)
		one := req
		one.Args, one.Partitions = req.Args[other:other+1], req.Partitions[other:other+1]
		_, gone, err := c.tasked.RunCall(ctx, one)
		if err != nil || fault.KindOf(gone[0]) != fault.LostInput {
			c.t.Fatalf("a task finds what is lost: %v, %v", err, gone)
		}
		data[other], lost[other], c.lost = nil, gone[0], true
		return data, lost, nil
	}
	return data, lost, err
}

// TestRowsAreHandedBackWhileInputsAreLost: a partition that was to be computed in pieces of what is gone is computed
// whole, once it is made again.
func TestRowsAreHandedBackWhileInputsAreLost(t *testing.T) {
	w := &slowly{}
	w.during(t)
	build := func(rows Dataset[Pair[string, int64]], w *slowly) Dataset[string] {
		long := Map(rows, func(p Pair[string, int64]) Pair[string, int64] {
			return Pair[string, int64]{Key: p.Key + strings.Repeat("x", 12<<10), Value: p.Value}
		})
		return Map(GroupByKey(long), func(p Pair[string, []int64]) string {
			key := strings.TrimRight(p.Key, "x")
			w.work(key)
			return fmt.Sprint(key, p.Value)
		})
	}
	want := runSlowly(t, w, 1, 0, 1, build)
	w.calls = map[string]int{}
	g := NewGraph()
	rows := Map(Range(g, 0, 5*slowKeys, 3), func(i int64) Pair[string, int64] {
		return Pair[string, int64]{Key: fmt.Sprint("key ", i%slowKeys), Value: i}
	})
	action := Collect(build(rows, w))
	f := newFrail(t, g, 4, 1)
	f.memory = 1 << 24
	c := &losing{tasked: tasked{f, w}, t: t}
	got, err := action.Run(context.Background(), NewSession(g, c, Config{Slots: func() int { return 8 }}))
	if err != nil {
		t.Fatal(err)
	}
	if !c.lost {
		t.Error("no task has handed rows back beside another")
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d rows, want %d, or others", len(got), len(want))
	}
}
