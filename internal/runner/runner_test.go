package runner

import (
	"context"
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/storage/input/rows"
	"github.com/volley-engine/volley/storage/pack"
)

// summer adds up rows' values in floating point, so that the order in which
// it does shows in the bits.
type summer struct{}

func (summer) Zero() any { return 0.0 }

func (summer) State() int { return 0 }

func (summer) Weighted() bool { return true }

func (summer) Fold(acc any, b *pack.Batch, from, to int, _ []float64) (any, int, error) {
	s := acc.(float64)
	for p := from; p < to; p++ {
		s += b.X64[b.RowAt(p)]
	}
	return s, to - from, nil
}

func (summer) Merge(a, b any) any          { return a.(float64) + b.(float64) }
func (summer) Scale(a any, by float64) any { return a.(float64) * by }
func (summer) Close(a any, _ float64) any  { return a }
func (summer) Encode(a any) ([]byte, error) {
	return binary.LittleEndian.AppendUint64(nil, math.Float64bits(a.(float64))), nil
}

// values is data whose sum depends on the order of adding.
type values struct{ n int }

func (values) Len() int { return 1 }

func (v values) Read(_ context.Context, _ int, yield func(*rows.Chunk) error) error {
	c := &rows.Chunk{}
	for i := range v.n {
		c.AppendDense(0, []float64{math.Sin(float64(i)) * math.Pow(10, float64(i%13))})
	}
	return yield(c)
}

func openSplits(t *testing.T, rows, splits int) []*pack.Split {
	t.Helper()
	cache, err := pack.OpenCache(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	o := pack.Options{Splits: splits, Workers: 1}
	id, err := pack.ID(rows, o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := cache.Get(context.Background(), id, values{rows}, o, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	files, _ := filepath.Glob(filepath.Join(p.Dir, "split-*.arrow"))
	var out []*pack.Split
	for i, f := range files {
		s, err := pack.OpenSplit(f, p.Meta, i)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		out = append(out, s)
	}
	return out
}

// TestAFoldsBitsDependOnCursorAndCountOnly folds with chunks of all sizes.
func TestAFoldsBitsDependOnCursorAndCountOnly(t *testing.T) {
	s := openSplits(t, 1777, 1)[0]
	rapid.Check(t, func(t *rapid.T) {
		cursor, count := rapid.Int64Range(0, s.Rows-1).Draw(t, "cursor"), rapid.Int64Range(1, s.Rows).Draw(t, "count")
		pieces := 1 << rapid.IntRange(0, 4).Draw(t, "pieces")
		whole := NewSplitFold(summer{}, s, cursor, count, pieces)
		if _, err := whole.Advance(count); err != nil {
			t.Fatal(err)
		}
		parts := NewSplitFold(summer{}, s, cursor, 0, pieces)
		for parts.Count() < count {
			n := rapid.Int64Range(1, 300).Draw(t, "chunk")
			if _, err := parts.Advance(min(n, count-parts.Count())); err != nil {
				t.Fatal(err)
			}
		}
		a, b := whole.Finish(true), parts.Finish(true)
		if a.Value != b.Value || a.Count != count || b.Count != count {
			t.Fatalf("%v of %d rows, %v of %d", a.Value, a.Count, b.Value, b.Count)
		}
	})
}

// TestMergingHasOneBracketing gives splits to executors in every way and gets
// the same bits.
func TestMergingHasOneBracketing(t *testing.T) {
	splits := openSplits(t, 2000, 11)
	fold := func(i int) *Acc {
		f := NewSplitFold(summer{}, splits[i], 0, 0, 8)
		if _, err := f.Advance(f.Rows()); err != nil {
			t.Fatal(err)
		}
		return f.Finish(false)
	}
	serial := map[int]*Acc{}
	for i := range splits {
		serial[i] = fold(i)
	}
	want := subtree(summer{}, Levels(len(splits)), 0, len(splits), serial)
	rapid.Check(t, func(t *rapid.T) {
		executors := rapid.IntRange(1, 12).Draw(t, "executors")
		var parts []Part
		held := make([]map[int]bool, executors)
		for e := range held {
			held[e] = map[int]bool{}
		}
		for i := range splits {
			held[rapid.IntRange(0, executors-1).Draw(t, "owner")][i] = true
		}
		total := 0
		for _, h := range held {
			accs := map[int]*Acc{}
			for i := range h {
				accs[i] = &Acc{Value: serial[i].Value, Count: serial[i].Count}
			}
			ps := Reduce(summer{}, len(splits), h, accs)
			total += len(ps)
			parts = append(parts, ps...)
		}
		got := completed(t, len(splits), parts, nil)
		if got.Value != want.Value || got.Count != want.Count {
			t.Fatalf("%v of %d rows, want %v of %d (%d parts)", got.Value, got.Count, want.Value, want.Count, total)
		}
	})
}

func visitedRows(rows, limit int64) int64 {
	if limit == 0 {
		return rows
	}
	return min(limit, rows)
}

// TestPiecesMergeLikeTheirSplits hands pieces to executors in every way, of whole
// splits and of what a cursor and a limit leave of them, and gets the same bits.
func TestPiecesMergeLikeTheirSplits(t *testing.T) {
	splits := openSplits(t, 900, 5)
	const pieces = 8
	rapid.Check(t, func(t *rapid.T) {
		executors := rapid.IntRange(1, 4).Draw(t, "executors")
		cursor, limit := rapid.Int64Range(0, 99).Draw(t, "cursor"), rapid.Int64Range(0, 150).Draw(t, "limit")
		serial := map[int]*Acc{}
		byExecutor := make([]map[PartOf]*Acc, executors)
		parts := 1 << rapid.IntRange(0, 3).Draw(t, "parts")
		scaleOf := func(i int) float64 { return float64(splits[i].Rows) / float64(visitedRows(splits[i].Rows, limit)) }
		scale := func(i int, acc *Acc) {
			if by := scaleOf(i); by != 1 {
				acc.Value = acc.Value.(float64) * by
			}
		}
		for i, s := range splits {
			f := NewSplitFold(summer{}, s, cursor, limit, pieces)
			if _, err := f.Advance(f.Left()); err != nil {
				t.Fatal(err)
			}
			serial[i] = f.Finish(true)
			for k := range parts {
				if _, n := plan.VisitedOf(s.Rows, cursor, limit, parts, k); n == 0 {
					continue
				}
				p := NewPartFold(summer{}, s, cursor, limit, pieces, parts, k)
				for p.Left() > 0 {
					if _, err := p.Advance(7); err != nil {
						t.Fatal(err)
					}
				}
				e := rapid.IntRange(0, executors-1).Draw(t, "executor")
				if byExecutor[e] == nil {
					byExecutor[e] = map[PartOf]*Acc{}
				}
				byExecutor[e][PartOf{i, k, parts}] = p.Part(parts, k)
			}
		}
		want := subtree(summer{}, Levels(len(splits)), 0, len(splits), serial)
		var merged []Part
		for _, e := range byExecutor {
			merged = append(merged, ReduceParts(summer{}, len(splits), e, scale)...)
		}
		got := completed(t, len(splits), merged, scale)
		if got.Value != want.Value || got.Count != want.Count {
			t.Fatalf("%v of %d rows, want %v of %d", got.Value, got.Count, want.Value, want.Count)
		}
	})
}

func TestAMissingSplitIsTheIdentity(t *testing.T) {
	splits := openSplits(t, 500, 4)
	f := NewSplitFold(summer{}, splits[2], 0, 0, 4)
	if _, err := f.Advance(f.Rows()); err != nil {
		t.Fatal(err)
	}
	acc := f.Finish(false)
	parts := Reduce(summer{}, 4, map[int]bool{0: true, 1: true, 2: true, 3: true}, map[int]*Acc{2: acc})
	if len(parts) != 1 || parts[0].Level != 2 {
		t.Fatalf("parts %v", parts)
	}
	if got := completed(t, 4, parts, nil); got.Value != acc.Value {
		t.Errorf("%v, want %v", got.Value, acc.Value)
	}
	if completed(t, 4, nil, nil) != nil {
		t.Error("nothing merges to nothing")
	}
}

func TestPiecesLeaveRoomForAccumulators(t *testing.T) {
	for _, c := range []struct {
		layout           pack.Layout
		split, acc, want int64
	}{{pack.SparseLayout, 1 << 20, 8, 16}, {pack.SparseLayout, 1 << 20, 8 << 10, 16}, {pack.SparseLayout, 1 << 20,
		32 << 10, 4}, {pack.SparseLayout, 100, 1000, 1}, {pack.DenseLayout, 1 << 20, 32 << 10, 16}, {pack.DenseLayout,
		1 << 20, 256 << 10, 4}, {pack.DenseLayout, 100, 1000, 1}} {
		m := &pack.Meta{Layout: c.layout, Splits: []pack.SplitMeta{{Bytes: c.split}}}
		if got := Pieces(summer{}, m, 0, c.acc); int64(got) != c.want {
			t.Errorf("split of %d bytes (%v), accumulator of %d: %d pieces, want %d", c.split, c.layout, c.acc, got,
				c.want)
		}
	}
}

func TestAPageCountsByTask(t *testing.T) {
	p := NewPage(3, nil)
	p.Add(2, 41)
	p.Add(2, 1)
	if p.Processed(2) != 42 || p.Processed(1) != 0 || p.Stopped() {
		t.Error("a count went elsewhere")
	}
	if p.Stop(); !p.Stopped() || p.Processed(0) != 0 {
		t.Error("a stop is not seen, or counts as rows")
	}
}

func TestVisitTakesTasksInTurnAndStops(t *testing.T) {
	splits := openSplits(t, 4000, 2)
	tasks := []Task{{NewSplitFold(summer{}, splits[0], 0, 0, 4), 0}, {NewSplitFold(summer{}, splits[1], 0, 0, 4), 1}}
	page := NewPage(2, nil)
	pacer := stopAfter{page, 10}
	if err := Visit(tasks, page, &pacer, func(int) {}); err != nil {
		t.Fatal(err)
	}
	if a, b := page.Processed(0), page.Processed(1); a != b || a != 5*ChunkRows(2000) {
		t.Errorf("processed %d and %d", a, b)
	}
}

// stopAfter asks for a stop after some chunks.
type stopAfter struct {
	page *Page
	left int
}

func (s *stopAfter) Waited(time.Duration) {}

func (s *stopAfter) Worked(int64) {
	if s.left--; s.left == 0 {
		s.page.Stop()
	}
}

func completed(t interface{ Fatal(...any) }, splits int, parts []Part, whole func(int, *Acc)) *Acc {
	got, err := Complete(summer{}, splits, parts, whole)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestPartsThatOverlapAreRefused: of four splits one part is there twice, lies below another one, or beyond the root.
func TestPartsThatOverlapAreRefused(t *testing.T) {
	one := func(level, index int) Part { return Part{Level: level, Index: index, Acc: &Acc{Value: 1.0, Count: 1}} }
	for name, parts := range map[string][]Part{
		"twice":  {one(0, 0), one(0, 0), one(0, 1), one(1, 1)},
		"below":  {one(1, 0), one(0, 1), one(1, 1)},
		"beyond": {one(1, 0), one(1, 1), one(1, 2)},
	} {
		if got, err := Complete(summer{}, 4, parts, func(int, *Acc) {}); err == nil {
			t.Errorf("%s: merged to %v", name, got)
		}
	}
}
