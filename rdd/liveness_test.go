package rdd

import (
	"context"
	"io"
	"testing"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/storage/shuffle"
)

// watched is a cluster that holds tasks to what they say of their progress: who makes
// rows, or moves bytes, for long without a word is given up.
type watched struct {
	*uneven
	rows, bytes int // since the last word
	mostRows    int
	mostBytes   int
}

// row notes that a row has come to a function of the user's.
func (w *watched) row() {
	w.rows++
	w.mostRows = max(w.mostRows, w.rows)
}

// RunCall runs tasks one after the other, each with its own count.
func (w *watched) RunCall(ctx context.Context, c plan.CallRequest) ([][]byte, []error, error) {
	data := make([][]byte, len(c.Args))
	for i := range c.Args {
		w.rows, w.bytes = 0, 0
		on := watchedPacks{unevenPacks{frailPacks{w.frail, w.place()}, w.uneven}, w}
		raw, err := w.g.Task(ctx, c.Node, c.Partitions[i], c.Args[i], on)
		if err != nil {
			return nil, nil, err
		}
		data[i] = raw
	}
	return data, make([]error, len(data)), nil
}

// watchedPacks is what a watched task reaches.
type watchedPacks struct {
	unevenPacks
	w *watched
}

func (p watchedPacks) Advance(int) { p.w.rows, p.w.bytes = 0, 0 }

func (p watchedPacks) Moved(int) { p.w.rows, p.w.bytes = 0, 0 }

func (p watchedPacks) Spilled(int64) {}

func (p watchedPacks) OpenMapOutput(ctx context.Context, holder plan.ExecutorID, key shuffle.Key,
	span shuffle.Span) (io.ReadCloser, error) {
	r, err := p.unevenPacks.OpenMapOutput(ctx, holder, key, span)
	return watchedReader{r, p.w}, err
}

// watchedReader counts the bytes of shuffled rows.
type watchedReader struct {
	io.ReadCloser
	w *watched
}

func (r watchedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.w.bytes += n
	r.w.mostBytes = max(r.w.mostBytes, r.w.bytes)
	return n, err
}

// What a task may do at the most without a word: one batch, and a few blocks.
const (
	quietRows  = 1024
	quietBytes = 512 << 10
)

// TestTasksSayThatTheyGetOn: whatever an operation does between reading its rows and
// handing them on, in memory or by way of files, a healthy task says so.
func TestTasksSayThatTheyGetOn(t *testing.T) {
	for _, memory := range []int{1 << 14, 1 << 30} {
		for _, p := range orderedPlans() {
			t.Run(p.name, func(t *testing.T) {
				g := NewGraph()
				w := &watched{uneven: newUneven(t, g, memory)}
				counted := func(row kv) kv { w.row(); return row }
				l := Map(Parallelize(g, 2, somePairs(seeded(1), 20_000, 5000)...), counted)
				r := Map(Parallelize(g, 2, somePairs(seeded(2), 10_000, 4000)...), counted)
				a := p.build(g, l, r)
				if _, err := a.Run(context.Background(), NewSession(g, w, Config{TaskMemory: 1 << 10})); err != nil {
					t.Fatal(err)
				}
				if w.mostRows > quietRows || w.mostBytes > quietBytes {
					t.Errorf("with %d bytes of memory: %d rows and %d bytes without a word", memory, w.mostRows,
						w.mostBytes)
				}
			})
		}
	}
}

// TestWhatComesOutOfMemoryIsProgress: rows that a task has taken in before, grouped,
// combined, sorted or kept, are progress again when they are handed on.
func TestWhatComesOutOfMemoryIsProgress(t *testing.T) {
	for name, build := range map[string]func(g *Graph, rows Dataset[kv]) Dataset[kv]{
		"combined": func(_ *Graph, rows Dataset[kv]) Dataset[kv] {
			return ReduceByKey(rows, func(a, b int64) int64 { return a + b }, Partitions(2))
		},
		"grouped": func(_ *Graph, rows Dataset[kv]) Dataset[kv] {
			return MapValues(GroupByKey(rows, Partitions(2)), func(v []int64) int64 { return v[0] })
		},
		"cogrouped": func(_ *Graph, rows Dataset[kv]) Dataset[kv] {
			return SubtractByKey(rows, Filter(rows, none), Partitions(2))
		},
		"sorted": func(_ *Graph, rows Dataset[kv]) Dataset[kv] { return SortByKey(rows, Partitions(2)) },
		"partitioned and sorted": func(_ *Graph, rows Dataset[kv]) Dataset[kv] {
			return RepartitionAndSort(rows, HashPartitioner[string](2))
		},
		"kept":      func(_ *Graph, rows Dataset[kv]) Dataset[kv] { return Cache(rows) },
		"made many": func(_ *Graph, rows Dataset[kv]) Dataset[kv] { return FlatMap(Filter(rows, first), many) },
		"parallel":  func(_ *Graph, rows Dataset[kv]) Dataset[kv] { return rows },
		"range": func(g *Graph, _ Dataset[kv]) Dataset[kv] {
			return Map(Range(g, 0, 20_000, 2), func(i int64) kv { return kv{Key: "", Value: i} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewGraph()
			w := &watched{uneven: newUneven(t, g, 1<<30)}
			rows := build(g, Parallelize(g, 2, somePairs(seeded(1), 20_000, 20_000)...))
			slow := Map(rows, func(row kv) kv { w.row(); return row })
			if _, err := Count(slow).Run(context.Background(), NewSession(g, w, Config{})); err != nil {
				t.Fatal(err)
			}
			if w.mostRows > quietRows {
				t.Errorf("%d rows without a word", w.mostRows)
			}
		})
	}
}

// none keeps no row, first one in ten thousand, and many makes ten thousand of one.
func none(kv) bool { return false }

func first(row kv) bool { return row.Value%10_000 == 0 }

func many(row kv) []kv { return make([]kv, 10_000) }

// TestASaveIsProgress: what is written is, too.
func TestASaveIsProgress(t *testing.T) {
	g := NewGraph()
	w := &watched{uneven: newUneven(t, g, 1<<30)}
	rows := Map(Parallelize(g, 1, somePairs(seeded(1), 20_000, 20_000)...), func(row kv) kv { w.row(); return row })
	if _, err := SaveText(rows, t.TempDir()+"/out").Run(context.Background(), NewSession(g, w, Config{})); err != nil {
		t.Fatal(err)
	}
	if w.mostRows > quietRows {
		t.Errorf("%d rows were written without a word", w.mostRows)
	}
}
