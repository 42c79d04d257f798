package tables_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

const (
	rows, columns = 37, 5
	records       = 400
	splits        = 7
	clocks        = 9
)

// args are those of a program on two tables: counts, and a sum of numbers whose bits depend on the order.
type args struct {
	Model  tables.Model
	Sparse bool
	Clocks int
	Every  int
	Stop   int // tick after which the program stops; 0 is never
	Fail   string
	// Sharing is how many workers an executor has; 0 is not known.
	Sharing int
}

type plan struct {
	counts *tables.Table[int32]
	sums   *tables.Table[float64]
	work   tables.Work[int, int64, state]
}

// state is how often each row was seen.
type state struct{ Seen []int32 }

func build(g *rdd.Graph, a args) plan {
	data := rdd.Pack(rdd.Range(g, 0, records, 4), rdd.Splits(splits))
	shape := tables.Dense(rows, columns)
	if a.Sparse {
		shape = tables.Sparse(rows, columns)
	}
	p := plan{counts: tables.New[int32](g, "counts", shape, a.Model)}
	p.sums = tables.New[float64](g, "sums", tables.Dense(rows, columns), a.Model)
	do := func(c *tables.Clock[int, int64, state]) error { return p.clock(c, a) }
	p.work = tables.Worker(data, do, p.counts, p.sums)
	return p
}

// clock adds each record to a cell that depends on the clock, and what it reads to another.
func (p plan) clock(c *tables.Clock[int, int64, state], a args) error {
	if c.Param != 7 || c.Notes(func() any { return c.Worker() }) != c.Worker() {
		return fmt.Errorf("parameter %d, notes %v", c.Param, c.Notes(func() any { return nil }))
	}
	shared := c.SharedNotes(func() any { return new(sync.Map) }).(*sync.Map)
	if shared.Store(c.Worker(), true); c.SharedNotes(func() any { return nil }) != any(shared) {
		return errors.New("the notes of an executor are made again")
	}
	if n := lengthOf(shared); a.Sharing > 0 && c.Number() > 0 && n != a.Sharing {
		return fmt.Errorf("%d workers share notes, want %d", n, a.Sharing)
	}
	if c.State.Seen == nil {
		c.State.Seen = make([]int32, rows)
	}
	counts, sums := p.counts.In(c), p.sums.In(c)
	for r := range c.Rows() {
		if err := broken(a.Fail, c, p, r); err != nil {
			return err
		}
		row, column := int(r*7+int64(c.Number())*11)%rows, int(r)%columns
		before := counts.Row(row).At(column)
		if r%2 == 0 {
			counts.Inc(row, column, 1)
		} else {
			counts.IncCells(row, []int32{int32(column)}, []int32{1})
		}
		if after := counts.Row(row).At(column); after != before+1 && a.Model.Exact() || after < before {
			return fmt.Errorf("of row %d, column %d, it reads %d, after its own update %d", row, column, before, after)
		}
		c.State.Seen[row]++
		sums.Inc((row+1)%rows, column, 1/float64(3+r)+sums.Row(row).At(column)/1e3)
	}
	return nil
}

func lengthOf(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}

func broken(how string, c *tables.Clock[int, int64, state], p plan, r int64) error {
	if r != 333 || c.Number() != 3 {
		return nil
	}
	switch how {
	case "error":
		return errors.New("it is a bad day")
	case "panic":
		panic("it is a worse day")
	case "goexit":
		runtime.Goexit()
	case "row":
		p.counts.In(c).Row(rows)
	case "left row":
		p.counts.In(c).Row(-1)
	case "left column":
		p.counts.In(c).Inc(0, -1, 1)
	case "column":
		p.counts.In(c).Inc(0, columns, 1)
	}
	return nil
}

// result is what a program has at its last tick.
type result struct {
	clocks []int
	counts [][]int32
	sums   []uint64
	total  int64
	waited time.Duration
}

func run(t *testing.T, a args, flags ...string) (out result, err error) {
	t.Helper()
	return runWith(t, a, nil, nil, flags...)
}

// runWith runs a program whose ticks may fail, under a configuration that is changed.
func runWith(t *testing.T, a args, ticked func(*tables.Tick) error, change func(*volley.Config), flags ...string) (
	out result, err error) {
	t.Helper()
	cfg, err := volley.ParseConfig(append(flags, "--data-dir", t.TempDir())...)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&cfg)
	}
	_, err = volley.Run(context.Background(), cfg, "test", a, build,
		func(ctx context.Context, s *rdd.Session, a args, p plan) (string, error) {
			for tick, err := range p.work.Clocks(ctx, s, 7, a.Clocks, a.Every) {
				if err != nil {
					return "", err
				}
				out = p.result(tick, out.clocks)
				if ticked != nil {
					if err := ticked(tick); err != nil {
						return "", err
					}
				}
				if tick.Report("total", float64(out.total)); len(out.clocks) == a.Stop {
					tick.Stop()
				}
			}
			return "", nil
		})
	return out, err
}

func (p plan) result(tick *tables.Tick, before []int) result {
	r := result{clocks: append(before, tick.Clock), waited: tick.Waited}
	for row := range rows {
		one := make([]int32, columns)
		for c := range columns {
			one[c] = p.counts.At(tick, row).At(c)
			r.total += int64(one[c])
			r.sums = append(r.sums, math.Float64bits(p.sums.At(tick, row).At(c)))
		}
		r.counts = append(r.counts, one)
	}
	return r
}

// models are one of each kind.
func models() []tables.Model {
	return []tables.Model{tables.BSP(), tables.SSP(0), tables.SSP(2), tables.ASP(), tables.CAP(1), tables.VAP(3, false),
		tables.VAP(3, true), tables.CVAP(2, 3, false), tables.CVAP(2, 3, true)}
}

// counted returns what the counts are after a number of clocks.
func counted(n int) (all [][]int32) {
	for range rows {
		all = append(all, make([]int32, columns))
	}
	for c := range n {
		for r := range records {
			all[(r*7+c*11)%rows][r%columns]++
		}
	}
	return all
}

// TestEveryUpdateCountsOnce, under all models, of dense and of sparse tables, and at each tick exactly those of the
// clocks before it.
func TestEveryUpdateCountsOnce(t *testing.T) {
	t.Parallel()
	for _, m := range models() {
		for _, sparse := range []bool{false, true} {
			t.Run(fmt.Sprint(m, sparse), func(t *testing.T) {
				t.Parallel()
				for stop := range 4 {
					a := args{Model: m, Sparse: sparse, Clocks: clocks, Every: 2, Stop: stop}
					r, err := run(t, a, "--executors", "3", "--slots", "2")
					if err != nil {
						t.Fatal(err)
					}
					last := []int{clocks, 2, 4, 6}[stop]
					if got, want := fmt.Sprint(r.counts), fmt.Sprint(counted(last)); got != want ||
						r.clocks[len(r.clocks)-1] != last {
						t.Errorf("ticks %v; the counts are\n%s, want\n%s", r.clocks, got, want)
					}
				}
			})
		}
	}
}

// TestExactTablesHaveTheSameBits, however many executors and slots there are, and under ssp(0) as under bsp.
func TestExactTablesHaveTheSameBits(t *testing.T) {
	t.Parallel()
	want, err := run(t, args{Model: tables.BSP(), Clocks: clocks, Every: 4, Sharing: splits}, "--executors", "1")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []tables.Model{tables.BSP(), tables.SSP(0)} {
		for _, shape := range [][2]string{{"1", "4"}, {"3", "1"}, {"8", "1"}, {"2", "3"}} {
			r, err := run(t, args{Model: m, Clocks: clocks, Every: 3}, "--executors", shape[0], "--slots", shape[1])
			if err != nil || fmt.Sprint(r.sums) != fmt.Sprint(want.sums) {
				t.Errorf("%v, %v executors and slots: other bits than one executor's, or %v", m, shape, err)
			}
		}
	}
}

// TestAJobGoesOnFromItsLastTick, on another number of executors, with the same bits as one that was never stopped.
func TestAJobGoesOnFromItsLastTick(t *testing.T) {
	t.Parallel()
	for _, sparse := range []bool{false, true} {
		a := args{Model: tables.BSP(), Sparse: sparse, Clocks: clocks, Every: 2}
		whole, err := run(t, a)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		kept := func(cfg *volley.Config) { cfg.Checkpoints, cfg.CheckpointEach, cfg.Resume = dir, 1, true }
		died := func(tick *tables.Tick) error {
			if tick.Clock == 6 {
				return errors.New("the power is gone")
			}
			return nil
		}
		first, err := runWith(t, a, died, kept)
		if err == nil || len(first.clocks) != 3 {
			t.Fatalf("ticks %v, and %v", first.clocks, err)
		}
		rest, err := runWith(t, a, nil, kept, "--executors", "5")
		if err != nil || fmt.Sprint(rest.clocks) != "[6 8 9]" {
			t.Fatalf("it goes on with ticks %v: %v", rest.clocks, err)
		}
		if fmt.Sprint(rest.counts, rest.sums) != fmt.Sprint(whole.counts, whole.sums) {
			t.Error("the bits are others than those of a job that was not stopped")
		}
		again, err := runWith(t, a, nil, kept, "--executors", "3")
		if err != nil || fmt.Sprint(again.clocks, again.counts, again.sums) !=
			fmt.Sprint([]int{clocks}, whole.counts, whole.sums) {
			t.Errorf("resumed once it has ended, it has ticks %v, or other rows: %v", again.clocks, err)
		}
	}
}

// TestARunEndsWhereItsWorkersDoNotLook: also one that reads and adds without an end is stopped.
func TestARunEndsWhereItsWorkersDoNotLook(t *testing.T) {
	t.Parallel()
	for _, m := range models() {
		cfg, err := volley.ParseConfig("--data-dir", t.TempDir(), "--executors", "2")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var began sync.Once
		build := func(g *rdd.Graph, _ struct{}) tables.Work[int, int64, struct{}] {
			table := tables.New[float64](g, "t", tables.Dense(3, 2), m)
			data := rdd.Pack(rdd.Range(g, 0, 4, 2), rdd.Splits(2))
			return tables.Worker(data, func(c *tables.Clock[int, int64, struct{}]) error {
				for in := table.In(c); ; began.Do(cancel) {
					in.Row(0)
					in.Inc(1, 1, 1e-9)
				}
			}, table)
		}
		_, err = volley.Run(ctx, cfg, "endless", struct{}{}, build, func(ctx context.Context, s *rdd.Session,
			_ struct{}, w tables.Work[int, int64, struct{}]) (string, error) {
			for _, err := range w.Clocks(ctx, s, 0, 5, 1) {
				if err != nil {
					return "", err
				}
			}
			return "", nil
		})
		if err == nil || !strings.Contains(err.Error(), "canceled") {
			t.Errorf("%v: %v", m, err)
		}
	}
}

// TestRowsThatManyBeginWith: rows that no worker has added to are read while others add to them.
func TestRowsThatManyBeginWith(t *testing.T) {
	t.Parallel()
	cfg, err := volley.ParseConfig("--data-dir", t.TempDir(), "--executors", "8")
	if err != nil {
		t.Fatal(err)
	}
	build := func(g *rdd.Graph, _ struct{}) tables.Work[int, int64, struct{}] {
		table := tables.New[float64](g, "t", tables.Dense(400, 2), tables.CAP(2))
		data := rdd.Pack(rdd.Range(g, 0, 8, 8), rdd.Splits(8))
		return tables.Worker(data, func(c *tables.Clock[int, int64, struct{}]) error {
			in := table.In(c)
			for row := c.Number() * 10; row < c.Number()*10+10; row++ {
				if in.Row(row); c.Worker()%2 == 0 {
					in.Inc(row, 1, 1)
				}
				if sum := in.Row(row).Values[0]; sum != 0 {
					return fmt.Errorf("%v was added to no cell", sum)
				}
			}
			return nil
		}, table)
	}
	_, err = volley.Run(context.Background(), cfg, "fresh", struct{}{}, build, func(ctx context.Context,
		s *rdd.Session, _ struct{}, w tables.Work[int, int64, struct{}]) (string, error) {
		for _, err := range w.Clocks(ctx, s, 0, 40, 10) {
			if err != nil {
				return "", err
			}
		}
		return "", nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestMistakesAreNamed: of the program, before or while it runs.
func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	good := args{Model: tables.SSP(1), Clocks: clocks, Every: 3}
	for want, change := range map[string]func(*args){
		"it is a bad day":                  func(a *args) { a.Fail = "error" },
		"it is a worse day":                func(a *args) { a.Fail = "panic" },
		`table "counts" has no row 37`:     func(a *args) { a.Fail = "row" },
		`table "counts" has no column 5`:   func(a *args) { a.Fail = "column" },
		`table "counts" has no column -1`:  func(a *args) { a.Fail, a.Model = "left column", tables.VAP(1, false) },
		`table "counts" has no row -1`:     func(a *args) { a.Fail, a.Sparse = "left row", true },
		"-1 is negative":                   func(a *args) { a.Model.Slack = -1 },
		"-2 is no bound":                   func(a *args) { a.Model = tables.VAP(-2, false) },
		"0 clocks, reported after each 3":  func(a *args) { a.Clocks = 0 },
		"9 clocks, reported after each -1": func(a *args) { a.Every = -1 },
	} {
		a := good
		change(&a)
		if _, err := run(t, a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
