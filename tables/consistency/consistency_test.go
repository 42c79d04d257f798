package consistency

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestModels: what each is called, needs and is.
func TestModels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		m      Model
		name   string
		needs5 Clock // in clock 5
		exact  bool
	}{
		{BSP(), "bsp", 5, true},
		{SSP(0), "bsp", 5, true},
		{SSP(2), "ssp(2)", 3, false},
		{SSP(9), "ssp(9)", 0, false},
		{ASP(), "asp", 0, false},
		{CAP(1), "cap(1)", 4, false},
		{CAP(0), "cap(0)", 5, false},
		{VAP(0.5, false), "vap(0.5)", 0, false},
		{VAP(0.5, true), "vap(0.5, strong)", 0, false},
		{CVAP(3, 2, true), "cvap(3, 2, strong)", 2, false},
	} {
		if c.m.String() != c.name || c.m.Needs(5) != c.needs5 || c.m.Exact() != c.exact || c.m.Check() != nil {
			t.Errorf("%+v: %v, needs %d, exact %v, %v", c.m, c.m, c.m.Needs(5), c.m.Exact(), c.m.Check())
		}
	}
	for _, m := range []Model{SSP(-1), VAP(-1, false), VAP(math.NaN(), false), VAP(math.Inf(1), true), {Strong: true}} {
		if m.Check() == nil {
			t.Errorf("%+v is taken", m)
		}
	}
}

// numbers adds up numbers, whose sum depends on the order.
type numbers struct{}

func (numbers) Add(sum, delta float64) float64 { return sum + delta }
func (numbers) Clone(v float64) float64        { return v }
func (numbers) Bytes(float64) int              { return 8 }
func (numbers) Seal(v float64) float64         { return v }
func (numbers) Columns(v float64, f func(int, float64)) {
	f(0, v)
}

// TestBatchesAreAsLargeAsTheyMayBe: at the end of a clock and within, each row once and in order; one row may be more.
func TestBatchesAreAsLargeAsTheyMayBe(t *testing.T) {
	t.Parallel()
	for _, m := range []Model{BSP(), SSP(1), ASP(), CAP(1), VAP(1e9, true)} {
		for _, most := range []int{0, 4, 40} {
			c := NewClient[float64](0, Options{Model: m, Workers: 1, Shards: 1, Batch: most,
				Again: time.Minute}, numbers{})
			c.Step(Assignment{Restart: Restart{Worker: 0, Life: 1}}, 0)
			for row := range Row(23) {
				c.Inc(0, row, 1, 0)
			}
			var rows []Row
			batches := 0
			for _, o := range append(c.Flush(0, 0), c.Finish(0, 0)...) {
				b, is := o.ToShard.Message.(Batch[float64])
				if !is {
					continue
				}
				if batches++; most > 0 && len(b.Updates) > max(1, most/8) || b.Number != batches {
					t.Errorf("%v: batch %d of %d has %d rows", m, b.Number, most, len(b.Updates))
				}
				for _, u := range b.Updates {
					rows = append(rows, u.Row)
				}
			}
			if len(rows) != 23 || !slices.IsSorted(rows) || most == 4 && batches < 23 {
				t.Errorf("%v: %d batches have rows %v", m, batches, rows)
			}
		}
	}
}

// TestASnapshotHasTheBitsOfOneOrder: whatever the order in which batches come, and how far ahead some are, of a clock
// that is complete the sum is that of one order.
func TestASnapshotHasTheBitsOfOneOrder(t *testing.T) {
	t.Parallel()
	const workers, clocks = 5, 4
	o := Options{Model: SSP(2), Workers: workers, Shards: 1, Again: time.Second}
	value := func(w Worker, c Clock) float64 { return math.Pow(10, float64((int(w)*7+int(c)*3)%17)) / 3 }
	want := 0.0
	for c := range Clock(clocks) {
		for w := range Worker(workers) {
			want += value(w, c)
		}
	}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := NewShard(Beginning{Epoch: 1}, o, numbers{}, nil)
		at := make([]Clock, workers)
		for left := workers * clocks; left > 0; {
			w := Worker(rng.IntN(workers))
			if at[w] == clocks {
				continue
			}
			s.Step(Batch[float64]{Client: 1, Worker: w, Life: 1, Clock: at[w], Number: int(at[w]) + 1, Ends: true,
				Updates: []Update[float64]{{0, value(w, at[w])}}}, 0)
			at[w]++
			left--
			if rng.IntN(3) == 0 {
				s.Step(Complete{Age: min(at[0], at[1], at[2], at[3], at[4])}, 0)
			}
		}
		s.Step(Complete{Age: clocks}, 0)
		if got := s.Snapshot().Values[0]; s.Age() != clocks || math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("seed %d: age %d, %v, want %v", seed, s.Age(), got, want)
		}
	}
}

// TestAWaitSaysWhatItIsFor: each kind names what is missing.
func TestAWaitSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	o := Options{Model: CVAP(1, 1, false), Workers: 2, Shards: 2, Again: time.Second, Patience: time.Minute}
	c := NewClient(1, o, numbers{})
	c.Step(Assignment{Client: 1, Restart: Restart{Worker: 0, Life: 1, Clock: 3}}, 0)
	if c.MayBegin(0, 0) {
		t.Error("it begins clock 3 although no other has finished one")
	}
	expect := func(want string) {
		t.Helper()
		if got, _ := c.Waits(0); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	expect("all workers to finish clock 1: all have finished 0 clocks")
	c.Step(Complete{Age: 2}, 0)
	if !c.MayBegin(0, 0) {
		t.Error("it waits")
	}
	expect("")
	if _, ok, out := c.Row(0, 7, 0); ok || len(out) != 1 {
		t.Error("a row is there that was never asked for")
	}
	expect("row 7 with all updates of 2 clocks, from shard 1")
	if !c.Inc(0, 7, 1, 0) || c.Inc(0, 7, 0.5, 0) {
		t.Error("the value bound is not kept to")
	}
	expect("its updates of row 7 to be seen by all, as they add up to the value bound 1")
	var failed *Failure
	for _, cmd := range c.Tick(2 * time.Minute) {
		if cmd.Fail != nil {
			failed = cmd.Fail
		}
	}
	if failed == nil || failed.Worker != 0 {
		t.Errorf("%+v after two minutes", failed)
	}
}

// TestPrefetching: at the end of a clock that has read two rows, of which one is of the clocks that the next needs,
// aggressive prefetching asks for both, conservative for the one that would be waited for, and none for neither.
func TestPrefetching(t *testing.T) {
	t.Parallel()
	for how, want := range map[Prefetch][]Row{Aggressive: {1, 2}, Conservative: {1}, NoPrefetch: nil} {
		m := SSP(1)
		m.Prefetch = how
		c := NewClient(0, Options{Model: m, Workers: 2, Shards: 1, Again: time.Hour}, numbers{})
		c.Step(Assignment{Client: 0, Restart: Restart{Worker: 0, Life: 1, Clock: 2}, Complete: Complete{Age: 3}}, 0)
		for row, age := range map[Row]Clock{1: 1, 2: 2} {
			if _, ok, _ := c.Row(0, row, 0); ok {
				t.Fatal("a row is there")
			}
			c.Step(Value[float64]{Row: row, Epoch: 1, Watch: c.rows[row].watch, Version: 1, Age: age, Value: 1,
				Applied: []Applied{{Life: 1}, {Life: 1}}}, 0)
			if _, ok, _ := c.Row(0, row, 0); !ok {
				t.Fatalf("%v: row %d of %d clocks is not read in clock 2", how, row, age)
			}
		}
		var asked []Row
		for _, cmd := range c.Finish(0, 0) {
			if cmd.ToShard != nil {
				if r, ok := cmd.ToShard.Message.(Read); ok {
					asked = append(asked, r.Row)
				}
			}
		}
		if !slices.Equal(asked, want) {
			t.Errorf("%v asks for %v, want %v", how, asked, want)
		}
		if p, err := ParsePrefetch(how.String()); err != nil || p != how {
			t.Errorf("%v is read as %v, %v", how, p, err)
		}
	}
	if _, err := ParsePrefetch("some"); err == nil {
		t.Error("some is a way to prefetch")
	}
}
