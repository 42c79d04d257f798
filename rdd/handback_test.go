package rdd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/seeds"
)

// slowly is a plan over few rows whose functions take long, on a clock of its own.
type slowly struct {
	now   time.Duration
	calls map[string]int // of a function, by key
	tasks []int          // calls of functions by task
}

// during makes the clock of tasks that of a test.
func (w *slowly) during(t *testing.T) {
	real := tasksNow
	tasksNow = func() time.Time { return processBegan.Add(w.now) }
	t.Cleanup(func() { tasksNow = real })
}

// work takes 50 ms.
func (w *slowly) work(key string) {
	w.now += 50 * time.Millisecond
	w.calls[key]++
	w.tasks[len(w.tasks)-1]++
}

// tasked counts what each task does.
type tasked struct {
	*frail
	w *slowly
}

func (c tasked) RunCall(ctx context.Context, req plan.CallRequest) ([][]byte, []error, error) {
	data, lost := make([][]byte, len(req.Args)), make([]error, len(req.Args))
	for i := range req.Args {
		one := req
		one.Args, one.Partitions = req.Args[i:i+1], req.Partitions[i:i+1]
		c.w.tasks = append(c.w.tasks, 0)
		d, l, err := c.frail.RunCall(ctx, one)
		if err != nil {
			return nil, nil, err
		}
		data[i], lost[i] = d[0], l[0]
	}
	return data, lost, nil
}

// slowKeys is how many keys the plans have.
const slowKeys = 64

// slowPlans are plans whose functions work once for each key, by what rows they have.
var slowPlans = map[string]func(rows Dataset[Pair[string, int64]], w *slowly) Dataset[string]{
	"grouped, mapped": func(rows Dataset[Pair[string, int64]], w *slowly) Dataset[string] {
		return Map(GroupByKey(rows), func(p Pair[string, []int64]) string {
			w.work(p.Key)
			return fmt.Sprint(p.Key,
				p.Value)
		})
	},
	"reduced, some left out, mapped with errors": func(rows Dataset[Pair[string, int64]], w *slowly) Dataset[string] {
		sums := ReduceByKey(rows, func(a, b int64) int64 { return a + b })
		return MapErr(Filter(sums, func(p Pair[string, int64]) bool { return p.Value%3 > 0 }),
			func(p Pair[string, int64]) (string, error) {
				w.work(p.Key)
				return fmt.Sprint(p), nil
			})
	},
	"cogrouped, mapped flat": func(rows Dataset[Pair[string, int64]], w *slowly) Dataset[string] {
		return FlatMap(CoGroup(rows, Filter(rows, func(p Pair[string, int64]) bool { return p.Value%2 == 0 })),
			func(p Pair[string, CoGrouped[int64, int64]]) []string {
				w.work(p.Key)
				return []string{p.Key, fmt.Sprint(p.Value)}
			})
	},
	"grouped, mapped, shuffled once more by their places": func(rows Dataset[Pair[string, int64]],
		w *slowly) Dataset[string] {
		return Repartition(Map(GroupByKey(rows), func(p Pair[string, []int64]) string { w.work(p.Key); return p.Key }),
			5)
	},
	"grouped, mapped with a sum of partitions": func(rows Dataset[Pair[string, int64]], w *slowly) Dataset[string] {
		mapped := Map(GroupByKey(rows), func(p Pair[string, []int64]) string { w.work(p.Key); return p.Key })
		return Map(Glom(mapped), func(all []string) string { return fmt.Sprint(all) })
	},
}

// runSlowly collects a plan's rows, where tasks have a number of slots.
func runSlowly(t *testing.T, w *slowly, slots int, deaths int, seed uint64,
	build func(Dataset[Pair[string, int64]], *slowly) Dataset[string]) []string {
	t.Helper()
	w.calls, w.tasks = map[string]int{}, nil
	g := NewGraph()
	rows := Map(Range(g, 0, 5*slowKeys, 3), func(i int64) Pair[string, int64] {
		return Pair[string, int64]{Key: fmt.Sprint("key ", i%slowKeys), Value: i}
	})
	action := Collect(build(rows, w))
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	f := newFrail(t, g, 4, seed)
	f.memory, f.deaths = 1<<24, deaths
	got, err := action.Run(context.Background(),
		NewSession(g, tasked{f, w}, Config{Slots: func() int { return slots }}))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestFewSlowKeysAreSharedOut: what is joined because it is small is not one task's
// because of that; each key is worked on once, and every row is where it was.
func TestFewSlowKeysAreSharedOut(t *testing.T) {
	w := &slowly{}
	w.during(t)
	for name, build := range slowPlans {
		want := runSlowly(t, w, 1, 0, 1, build)
		if most := slices.Max(w.tasks); most < slowKeys/2 {
			t.Fatalf("%s: on one slot a task has %d keys", name, most)
		}
		got := runSlowly(t, w, 4, 0, 1, build)
		if !slices.Equal(got, want) {
			t.Errorf("%s: in pieces its rows are\n%q, not\n%q", name, got, want)
		}
		once := true
		for _, n := range w.calls {
			once = once && n == 1
		}
		most := slices.Max(w.tasks)
		if name == "grouped, mapped with a sum of partitions" {
			if most < slowKeys {
				t.Errorf("%s: rows of whole partitions are computed in pieces", name)
			}
		} else if most > slowKeys/4 {
			t.Errorf("%s: a task has %d of %d keys", name, most, slowKeys)
		}
		if !once {
			t.Errorf("%s: keys are worked on more than once: %v", name, w.calls)
		}
	}
}

// TestPiecesThatAreLostAreMadeAgain, and what comes of them is what comes without.
func TestPiecesThatAreLostAreMadeAgain(t *testing.T) {
	w := &slowly{}
	w.during(t)
	again := 0
	for name, build := range slowPlans {
		want := runSlowly(t, w, 1, 0, 1, build)
		for seed := range uint64(seeds.Of(20)) {
			if got := runSlowly(t, w, 4, 3, seed, build); !slices.Equal(got, want) {
				t.Errorf("%s, seed %d: another result", name, seed)
			}
			for _, n := range w.calls {
				again += n - 1
			}
		}
	}
	if again == 0 {
		t.Error("nothing was made again")
	}
}

// TestQuickKeysStayTogether: what takes little time is one task's.
func TestQuickKeysStayTogether(t *testing.T) {
	w := &slowly{}
	w.during(t)
	runSlowly(t, w, 4, 0, 1, func(rows Dataset[Pair[string, int64]], w *slowly) Dataset[string] {
		return Map(GroupByKey(rows), func(p Pair[string,
			[]int64]) string {
			w.work(p.Key)
			w.now -= 49 * time.Millisecond
			return p.Key
		})
	})
	if n := len(w.tasks); n != 4 || w.tasks[3] != slowKeys {
		t.Errorf("three map tasks and another are %d: %v", n, w.tasks)
	}
}

// TestManyRowsStayTogether: what few keys become may be much, and is not kept twice.
func TestManyRowsStayTogether(t *testing.T) {
	w := &slowly{}
	w.during(t)
	runSlowly(t, w, 4, 0, 1, func(rows Dataset[Pair[string, int64]], w *slowly) Dataset[string] {
		return FlatMap(GroupByKey(rows), func(p Pair[string, []int64]) []string {
			w.work(p.Key)
			return make([]string, keptMost)
		})
	})
	if n := len(w.tasks); n != 4 || w.tasks[3] != slowKeys {
		t.Errorf("three map tasks and another are %d: %v", n, w.tasks)
	}
}

// TestAnErrorWithinAPieceIsTheUsers: and it names no number that a row has not.
func TestAnErrorWithinAPieceIsTheUsers(t *testing.T) {
	w := &slowly{calls: map[string]int{}, tasks: []int{0}}
	w.during(t)
	own := errors.New("of the user")
	g := NewGraph()
	rows := Map(Range(g, 0, slowKeys, 3), func(i int64) Pair[string, int64] {
		return Pair[string, int64]{Key: fmt.Sprint("key ", i), Value: i}
	})
	n := 0
	action := Count(MapErr(GroupByKey(rows), func(p Pair[string, []int64]) (int, error) {
		if w.work(p.Key); len(w.calls) == slowKeys-3 {
			return 0, own
		}
		n++
		return n, nil
	}))
	_, err := action.Run(context.Background(),
		NewSession(g, tasked{newFrail(t, g, 4, 1), w}, Config{Slots: func() int { return 4 }}))
	if !errors.Is(err, own) || !strings.Contains(err.Error(), "a row of partition 0") {
		t.Errorf("%v", err)
	}
}

// TestRowsThatTakeNoTimeAreHandedOnWhole: however many batches are quick, each row comes once, in its order.
func TestRowsThatTakeNoTimeAreHandedOnWhole(t *testing.T) {
	next := 0
	on := timedBatches(&taskEnv{args: &taskArgs{}}, func(rows []int) error {
		for _, n := range rows {
			if n != next {
				t.Fatalf("row %d comes after %d", n, next-1)
			}
			next++
		}
		return nil
	})
	const batches, each = 200, 3000
	for k := range batches {
		rows := make([]int, each)
		for i := range rows {
			rows[i] = k*each + i
		}
		if err := on(rows); err != nil {
			t.Fatal(err)
		}
	}
	if next != batches*each {
		t.Errorf("%d rows of %d", next, batches*each)
	}
}
