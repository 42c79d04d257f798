package exec

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/shuffle"
)

// onePacks is what a task alone in the world has.
type onePacks struct {
	runner.TaskContext // what sorters do not need
	store              *shuffle.Outputs
	memory             int
}

func (p onePacks) Advance(int) {}

func (p onePacks) Moved(int) {}

func (p onePacks) Spilled(int64) {}

func (p onePacks) Memory() int { return p.memory }

func (p onePacks) NewMapOutput(partitions int) *shuffle.Writer {
	return p.store.NewWriter(partitions, p.memory/8)
}

func (p onePacks) OpenMapOutput(_ context.Context, _ plan.ExecutorID, key shuffle.Key,
	span shuffle.Span) (io.ReadCloser, error) {
	return p.store.Open(key, span)
}

// TestASorterSorts, whatever its budget, and keeps the order of equal rows.
func TestASorterSorts(t *testing.T) {
	dir := t.TempDir()
	store, err := shuffle.NewOutputs(dir)
	if err != nil {
		t.Fatal(err)
	}
	type pair = row.Pair[string, int]
	c, err := row.CodecOf[pair]()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		keys := KeyOrderOf[string](rapid.Bool().Draw(t, "descending"))
		o := Order[pair]{rank: func(r *pair) uint64 { return keys.rank(r.Key) },
			compare: func(a, b *pair) int { return keys.compare(a.Key, b.Key) }}
		if rapid.Bool().Draw(t, "text") {
			o.text, o.down = func(r *pair) string { return r.Key }, keys.down
		}
		s := NewSorter(c, o, onePacks{store: store, memory: 1})
		s.budget = rapid.SampledFrom([]int{1, 2000, 1 << 20}).Draw(t, "budget")
		var want []pair
		shared := rapid.SampledFrom([]string{"", "https://www.example.com/"}).Draw(t, "shared")
		less := rapid.IntRange(1, 300).Draw(t, "rows until one byte less is shared")
		for i := range rapid.IntRange(0, 900).Draw(t, "rows") {
			key := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 255}), 0, 12).Draw(t, "key")
			want = append(want, pair{Key: shared[:max(0, len(shared)-i/less)] + string(key), Value: i})
		}
		if err := s.AddAll(want); err != nil {
			t.Fatal(err)
		}
		slices.SortStableFunc(want, func(a, b pair) int {
			if keys.down {
				a, b = b, a
			}
			return cmp.Compare(a.Key, b.Key)
		})
		var got []pair
		if err := s.Each(context.Background(), func(rows []pair) error {
			got = append(got,
				rows...)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%d rows, want %d, or not in order", len(got), len(want))
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Fatalf("files are left: %v", left)
		}
	})
}

// TestManyRunsAreMerged although not all of them can be read at a time.
func TestManyRunsAreMerged(t *testing.T) {
	store, err := shuffle.NewOutputs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, _ := row.CodecOf[int64]()
	s := NewSorter(c, Order[int64]{rank: func(r *int64) uint64 { return uint64(*r) }},
		onePacks{store: store, memory: 1})
	s.budget = 1
	const n = 40 * mergeMost
	for i := range int64(n) {
		if err := s.Add(new(i * 7919 % n)); err != nil {
			t.Fatal(err)
		}
		if i%37 == 36 {
			if err := s.spill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(s.Runs) <= mergeMost {
		t.Fatalf("%d runs are too few to tell", len(s.Runs))
	}
	next := int64(0)
	err = s.Each(context.Background(), func(rows []int64) error {
		for _, r := range rows {
			if r != next {
				return fmt.Errorf("%d where %d should be", r, next)
			}
			next++
		}
		return nil
	})
	if s.Close(); err != nil || next != n {
		t.Errorf("%d rows of %d: %v", next, n, err)
	}
}

// TestSortingByRankKeepsOrder of what has one rank.
func TestSortingByRankKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 3*fewTexts).Draw(t, "rows")
		bits := rapid.SampledFrom([]uint64{0xff, 0xff00000000000000, 0x0300ff, ^uint64(0)}).Draw(t, "bits")
		r := rapid.Uint64().Draw(t, "seed")
		rows := make([]Ranked, n)
		for i := range rows {
			r = row.Mix(r + uint64(i))
			rows[i] = Ranked{r & bits, uint32(i)}
		}
		want := slices.Clone(rows)
		slices.SortStableFunc(want, func(a, b Ranked) int { return cmp.Compare(a.Rank, b.Rank) })
		if got := sortRanked(rows); !slices.Equal(got, want) {
			t.Fatal("not sorted, or not as they came")
		}
	})
}
