package rdd_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

// wideArgs say what data the operations are tried on.
type wideArgs struct {
	Seed       uint64
	Rows       int
	Partitions int
	Dir        string
}

type item struct {
	Name  string
	Price float64
	Tags  []string
}

type (
	pair   = rdd.Pair[string, int64]
	priced = rdd.Pair[string, item]
)

// leftRows and rightRows are what the plan and the reference both work on.
func leftRows(a wideArgs) []pair {
	r := rand.New(rand.NewPCG(a.Seed, 1))
	out := make([]pair, a.Rows)
	for i := range out {
		out[i] = pair{Key: fmt.Sprint("k", r.IntN(1+a.Rows/3)), Value: r.Int64N(1000) - 500}
	}
	return out
}

func rightRows(a wideArgs) []priced {
	r := rand.New(rand.NewPCG(a.Seed, 2))
	out := make([]priced, a.Rows/2)
	for i := range out {
		out[i] = priced{Key: fmt.Sprint("k", r.IntN(1+a.Rows/2)),
			Value: item{Name: fmt.Sprint("n", i), Price: float64(i) / 4}}
		if i%3 == 0 {
			out[i].Value.Tags = []string{"a", fmt.Sprint(i)}
		}
	}
	return out
}

type widePlan struct {
	Reduced   rdd.Action[[]pair]
	Two       rdd.Action[[]pair]
	Grouped   rdd.Action[[]rdd.Pair[string, []int64]]
	Joined    rdd.Action[[]rdd.Pair[string, rdd.Joined[int64, item]]]
	Full      rdd.Action[[]rdd.Pair[string, rdd.Joined[*int64, *item]]]
	Left      rdd.Action[[]rdd.Pair[string, rdd.Joined[int64, *item]]]
	Right     rdd.Action[[]rdd.Pair[string, rdd.Joined[*int64, item]]]
	Without   rdd.Action[[]pair]
	Distinct  rdd.Action[[]string]
	Both      rdd.Action[[]string]
	Minus     rdd.Action[[]string]
	Sorted    rdd.Action[[]pair]
	Falling   rdd.Action[[]pair]
	ByValue   rdd.Action[[]pair]
	Dealt     rdd.Action[[]pair]
	Counts    rdd.Action[map[string]int64]
	Most      rdd.Action[[]int64]
	Chained   rdd.Action[[]rdd.Pair[int, int64]]
	Glommed   rdd.Action[[][]int64]
	Saved     rdd.Action[int64]
	Sum       rdd.Action[int64]
	Cartesian rdd.Action[int64]
}

func buildWide(g *rdd.Graph, a wideArgs) widePlan {
	left, right := rdd.Parallelize(g, a.Partitions, leftRows(a)...), rdd.Parallelize(g, a.Partitions, rightRows(a)...)
	add := func(x, y int64) int64 { return x + y }
	reduced := rdd.ReduceByKey(left, add, rdd.Partitions(5))
	lengths := rdd.Map(reduced, func(p pair) rdd.Pair[int, int64] {
		return rdd.Pair[int, int64]{Key: len(p.Key), Value: p.Value}
	})
	keys := rdd.Keys(left)
	small := rdd.Range(g, 0, 20, 3)
	return widePlan{
		Reduced: rdd.Collect(reduced), Two: rdd.Take(reduced, 2), Grouped: rdd.Collect(rdd.GroupByKey(left)),
		Joined: rdd.Collect(rdd.Join(left, right)), Full: rdd.Collect(rdd.FullJoin(left, right)),
		Left: rdd.Collect(rdd.LeftJoin(left, right)), Right: rdd.Collect(rdd.RightJoin(left, right)),
		Without: rdd.Collect(rdd.SubtractByKey(left, right)), Distinct: rdd.Collect(rdd.Distinct(keys)),
		Both:    rdd.Collect(rdd.Intersection(keys, rdd.Keys(right))),
		Minus:   rdd.Collect(rdd.Subtract(keys, rdd.Keys(right))),
		Sorted:  rdd.Collect(rdd.SortByKey(left)),
		Falling: rdd.Collect(rdd.SortByKey(left, rdd.Descending(), rdd.Partitions(3))),
		ByValue: rdd.Collect(rdd.SortBy(left, func(p pair) int64 { return p.Value })),
		Dealt:   rdd.Collect(rdd.Repartition(left, 4)), Counts: rdd.CountByKey(left),
		Most:    rdd.Top(rdd.Values(left), 7),
		Chained: rdd.Collect(rdd.SortByKey(rdd.ReduceByKey(lengths, add))),
		Glommed: rdd.Collect(rdd.Glom(small)), Saved: rdd.SaveText(reduced, a.Dir),
		Sum:       rdd.Fold(rdd.Values(left), 0, add),
		Cartesian: rdd.Count(rdd.Cartesian(small, small)),
	}
}

// same compares rows as sets, or, where they are ordered, as lists.
func same[T any](t *testing.T, what string, got, want []T, ordered bool) {
	t.Helper()
	if !ordered {
		text := func(row T) string { return fmt.Sprintf("%v", plain(row)) }
		byText := func(a, b T) int { return strings.Compare(text(a), text(b)) }
		got, want = slices.SortedFunc(slices.Values(got), byText), slices.SortedFunc(slices.Values(want), byText)
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d rows, want %d", what, len(got), len(want))
		return
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("%s: row %d is %v, want %v", what, i, plain(got[i]), plain(want[i]))
			return
		}
	}
}

// plain follows pointers, for printing.
func plain(row any) any {
	if p, ok := row.(rdd.Pair[string, rdd.Joined[*int64, *item]]); ok {
		return fmt.Sprint(p.Key, deref(p.Value.Left), deref(p.Value.Right))
	}
	if p, ok := row.(rdd.Pair[string, rdd.Joined[int64, *item]]); ok {
		return fmt.Sprint(p.Key, p.Value.Left, deref(p.Value.Right))
	}
	if p, ok := row.(rdd.Pair[string, rdd.Joined[*int64, item]]); ok {
		return fmt.Sprint(p.Key, deref(p.Value.Left), p.Value.Right)
	}
	return row
}

func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// reference is what the plan must come to, computed from slices and maps.
func (p widePlan) compare(ctx context.Context, t *testing.T, s *rdd.Session, a wideArgs) {
	left := leftRows(a)
	ls, rs := map[string][]int64{}, map[string][]item{}
	for _, p := range left {
		ls[p.Key] = append(ls[p.Key], p.Value)
	}
	for _, p := range rightRows(a) {
		rs[p.Key] = append(rs[p.Key], p.Value)
	}
	var reduced []pair
	var grouped []rdd.Pair[string, []int64]
	var distinct, both []string
	counts, lengths := map[string]int64{}, map[int]int64{}
	total := int64(0)
	for k, values := range ls {
		sum := int64(0)
		for _, v := range values {
			sum += v
		}
		total += sum
		reduced = append(reduced, pair{Key: k, Value: sum})
		lengths[len(k)] += sum
		grouped = append(grouped, rdd.Pair[string, []int64]{Key: k, Value: values})
		distinct, counts[k] = append(distinct, k), int64(len(values))
		if rs[k] != nil {
			both = append(both, k)
		}
	}
	p.compareJoins(ctx, t, s, a, ls, rs)
	if two, err := p.Two.Run(ctx, s); err != nil || len(two) != min(2, len(reduced)) {
		t.Errorf("take: %d rows, %v", len(two), err)
	}
	check(ctx, t, s, "reduce by key", p.Reduced, reduced, false)
	check(ctx, t, s, "group by key", p.Grouped, grouped, false)
	check(ctx, t, s, "distinct", p.Distinct, distinct, false)
	check(ctx, t, s, "intersection", p.Both, both, false)
	check(ctx, t, s, "repartition", p.Dealt, left, false)
	check(ctx, t, s, "sort by key", p.Sorted,
		sortedBy(left, func(a, b pair) int { return strings.Compare(a.Key, b.Key) }), true)
	check(ctx, t, s, "sort by key, descending", p.Falling,
		sortedBy(left, func(a, b pair) int { return strings.Compare(b.Key, a.Key) }), true)
	check(ctx, t, s, "sort by value", p.ByValue,
		sortedBy(left, func(a, b pair) int { return cmp.Compare(a.Value, b.Value) }), true)
	var chained []rdd.Pair[int, int64]
	for _, k := range slices.Sorted(maps.Keys(lengths)) {
		chained = append(chained, rdd.Pair[int, int64]{Key: k, Value: lengths[k]})
	}
	check(ctx, t, s, "reduce, reduce, sort", p.Chained, chained, true)
	values := sortedBy(left, func(a, b pair) int { return cmp.Compare(b.Value, a.Value) })
	var most []int64
	for _, v := range values[:min(7, len(values))] {
		most = append(most, v.Value)
	}
	check(ctx, t, s, "top", p.Most, most, true)
	if got, err := p.Counts.Run(ctx, s); err != nil || !maps.Equal(got, counts) {
		t.Errorf("count by key: %v, %v, want %v", err, got, counts)
	}
	if got, err := p.Sum.Run(ctx, s); err != nil || got != total {
		t.Errorf("fold: %v, %d, want %d", err, got, total)
	}
	if got, err := p.Cartesian.Run(ctx, s); err != nil || got != 400 {
		t.Errorf("cartesian: %v, %d rows", err, got)
	}
	if n, err := p.Saved.Run(ctx, s); err != nil || n != int64(len(reduced)) {
		t.Errorf("save: %v, %d rows, want %d", err, n, len(reduced))
	}
	same(t, "saved", savedLines(t, a.Dir), textOf(reduced), false)
	if _, err := p.Saved.Run(ctx, s); err == nil || !strings.Contains(err.Error(), a.Dir) {
		t.Errorf("saving over what is there: %v", err)
	}
}

// compareJoins is compare for what takes two datasets.
func (p widePlan) compareJoins(ctx context.Context, t *testing.T, s *rdd.Session, a wideArgs, ls map[string][]int64,
	rs map[string][]item) {
	var without []pair
	var minus []string
	var joined []rdd.Pair[string, rdd.Joined[int64, item]]
	var full []rdd.Pair[string, rdd.Joined[*int64, *item]]
	var leftJoin []rdd.Pair[string, rdd.Joined[int64, *item]]
	var rightJoin []rdd.Pair[string, rdd.Joined[*int64, item]]
	for _, l := range leftRows(a) {
		if rs[l.Key] == nil {
			without, minus = append(without, l), append(minus, l.Key)
			full = append(full, rdd.Pair[string, rdd.Joined[*int64, *item]]{Key: l.Key,
				Value: rdd.Joined[*int64, *item]{Left: &l.Value}})
			leftJoin = append(leftJoin, rdd.Pair[string, rdd.Joined[int64, *item]]{Key: l.Key,
				Value: rdd.Joined[int64, *item]{Left: l.Value}})
		}
		for _, r := range rs[l.Key] {
			joined = append(joined, rdd.Pair[string, rdd.Joined[int64, item]]{Key: l.Key,
				Value: rdd.Joined[int64, item]{Left: l.Value, Right: r}})
			full = append(full, rdd.Pair[string, rdd.Joined[*int64, *item]]{Key: l.Key,
				Value: rdd.Joined[*int64, *item]{Left: &l.Value, Right: &r}})
			leftJoin = append(leftJoin, rdd.Pair[string, rdd.Joined[int64, *item]]{Key: l.Key,
				Value: rdd.Joined[int64, *item]{Left: l.Value, Right: &r}})
			rightJoin = append(rightJoin, rdd.Pair[string, rdd.Joined[*int64, item]]{Key: l.Key,
				Value: rdd.Joined[*int64, item]{Left: &l.Value, Right: r}})
		}
	}
	for _, r := range rightRows(a) {
		if ls[r.Key] == nil {
			full = append(full, rdd.Pair[string, rdd.Joined[*int64, *item]]{Key: r.Key,
				Value: rdd.Joined[*int64, *item]{Right: &r.Value}})
			rightJoin = append(rightJoin, rdd.Pair[string, rdd.Joined[*int64, item]]{Key: r.Key,
				Value: rdd.Joined[*int64, item]{Right: r.Value}})
		}
	}
	check(ctx, t, s, "join", p.Joined, joined, false)
	check(ctx, t, s, "full join", p.Full, full, false)
	check(ctx, t, s, "left join", p.Left, leftJoin, false)
	check(ctx, t, s, "right join", p.Right, rightJoin, false)
	check(ctx, t, s, "subtract by key", p.Without, without, false)
	check(ctx, t, s, "subtract", p.Minus, minus, false)
}

func check[T any](ctx context.Context, t *testing.T, s *rdd.Session, what string, a rdd.Action[[]T], want []T,
	ordered bool) {
	t.Helper()
	got, err := a.Run(ctx, s)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	same(t, what, got, want, ordered)
}

func sortedBy[T any](rows []T, order func(a, b T) int) []T {
	out := slices.Clone(rows)
	slices.SortStableFunc(out, order)
	return out
}

func textOf(rows []pair) (out []string) {
	for _, r := range rows {
		out = append(out, fmt.Sprintf("%s\t%d", r.Key, r.Value))
	}
	return out
}

// savedLines are the lines of a saved dataset, whose marker must be there.
func savedLines(t *testing.T, dir string) (lines []string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "_SUCCESS")); err != nil {
		t.Error(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "part-*"))
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Error(err)
		}
		if text := strings.TrimSuffix(string(raw), "\n"); text != "" {
			lines = append(lines, strings.Split(text, "\n")...)
		}
	}
	return lines
}

// TestEveryOperationIsWhatItsReferenceSays, however many partitions and
// executors there are, and however little memory.
func TestEveryOperationIsWhatItsReferenceSays(t *testing.T) {
	for _, partitions := range []int{1, 7, 64} {
		for _, executors := range []int{1, 3} {
			for _, memory := range []int64{0, 1} { // what a sorter makes of 1 is its least
				for _, rows := range []int{0, 1, 3000} {
					if rows < 2 && partitions != 7 || testing.Short() && (partitions != 7 || memory == 0) {
						continue
					}
					name := fmt.Sprintf("%d partitions, %d executors, memory %d, %d rows", partitions, executors,
						memory, rows)
					t.Run(name, func(t *testing.T) {
						a := wideArgs{Seed: uint64(partitions), Rows: rows, Partitions: partitions,
							Dir: filepath.Join(t.TempDir(), "saved")}
						cfg := testConfig(t)
						cfg.Executors, cfg.TaskMemory = executors, memory
						_, err := volley.Run(context.Background(), cfg, "wide", a, buildWide,
							func(ctx context.Context, s *rdd.Session, a wideArgs, p widePlan) (string, error) {
								p.compare(ctx, t, s, a)
								return "end", nil
							})
						if err != nil {
							t.Error(err)
						}
					})
				}
			}
		}
	}
}

// TestPlansThatCannotBe are refused where they are built, by file and line.
func TestPlansThatCannotBe(t *testing.T) {
	for what, build := range map[string]func(g *rdd.Graph, _ struct{}) struct{}{
		"a key that is a pointer": func(g *rdd.Graph, _ struct{}) struct{} {
			rdd.Distinct(rdd.Map(rdd.Range(g, 0, 1, 1),
				func(i int64) struct{ P *int64 } { return struct{ P *int64 }{&i} }))
			return struct{}{}
		},
		"a value that is a function": func(g *rdd.Graph, _ struct{}) struct{} {
			rdd.GroupByKey(rdd.KeyBy(rdd.Map(rdd.Range(g, 0, 3, 1), func(int64) func() { return nil }),
				func(func()) int { return 0 }))
			return struct{}{}
		},
		"rows with an interface": func(g *rdd.Graph, _ struct{}) struct{} {
			rdd.SortBy(rdd.Map(rdd.Range(g, 0, 3, 1), func(n int64) map[int]any { return nil }),
				func(map[int]any) int { return 0 })
			return struct{}{}
		},
	} {
		_, err := volley.Run(context.Background(), testConfig(t), "plan", struct{}{}, build,
			func(context.Context, *rdd.Session, struct{}, struct{}) (string, error) { return "", nil })
		if err == nil || !strings.Contains(err.Error(), "wide_test.go:") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestGeneratedRowsAreTheSameEveryTime, and a random split loses none.
func TestGeneratedRowsAreTheSameEveryTime(t *testing.T) {
	type plan struct {
		All   rdd.Action[[]int64]
		Parts []rdd.Action[[]int64]
	}
	build := func(g *rdd.Graph, _ struct{}) plan {
		rows := rdd.Generate(g, 5, 42, func(part int, r *rand.Rand) iter.Seq[int64] {
			return func(yield func(int64) bool) {
				for range 100 + part {
					if !yield(r.Int64()) {
						return
					}
				}
			}
		})
		p := plan{All: rdd.Collect(rdd.Union(rows, rows))}
		for _, part := range rdd.RandomSplit(rdd.Coalesce(rows, 2), 7, 1, 2, 3) {
			p.Parts = append(p.Parts, rdd.Collect(part))
		}
		return p
	}
	_, err := volley.Run(context.Background(), testConfig(t), "generate", struct{}{}, build,
		func(ctx context.Context, s *rdd.Session, _ struct{}, p plan) (string, error) {
			all, err := p.All.Run(ctx, s)
			if err != nil {
				return "", err
			}
			if n := len(all) / 2; n != 510 || !slices.Equal(all[:n], all[n:]) {
				t.Errorf("%d rows, the two halves differ", n)
			}
			var parts []int64
			for i, a := range p.Parts {
				rows, err := a.Run(ctx, s)
				if err != nil {
					return "", err
				}
				if want := 510 * (i + 1) / 6; len(rows) < want/2 || len(rows) > 2*want {
					t.Errorf("part %d has %d rows, about %d are wanted", i, len(rows), want)
				}
				parts = append(parts, rows...)
			}
			same(t, "the parts together", parts, all[:510], false)
			return "end", nil
		})
	if err != nil {
		t.Error(err)
	}
}

// TestManyRowsAndOddOnesComeBack: more than a decoder takes by default, strings
// that are not UTF-8, and times to the nanosecond.
func TestManyRowsAndOddOnesComeBack(t *testing.T) {
	type row struct {
		Text string
		At   time.Time
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	build := func(g *rdd.Graph, _ struct{}) rdd.Action[[]row] {
		return rdd.Collect(rdd.Map(rdd.Range(g, 0, 140_000, 1),
			func(i int64) row { return row{Text: "\xe9", At: at.Add(time.Duration(i))} }))
	}
	_, err := volley.Run(context.Background(), testConfig(t), "odd", struct{}{}, build,
		func(ctx context.Context, s *rdd.Session, _ struct{}, a rdd.Action[[]row]) (string, error) {
			rows, err := a.Run(ctx, s)
			if err == nil && (len(rows) != 140_000 || rows[7].Text != "\xe9" || !rows[7].At.Equal(at.Add(7))) {
				t.Errorf("%d rows, the eighth is %+v", len(rows), rows[7])
			}
			return "end", err
		})
	if err != nil {
		t.Error(err)
	}
}
