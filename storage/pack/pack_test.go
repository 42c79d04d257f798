package pack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/rows"
)

func quiet(int) {}

// packOf writes text to a file and packs it in a fresh cache.
func packOf(t *testing.T, text string, ro input.Options, o Options) (*Pack, error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "input")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := input.Open(context.Background(), ro, path)
	if err != nil {
		return nil, err
	}
	return packSource(t, src, o)
}

// packSource packs what a source reads in a fresh cache.
func packSource(t *testing.T, src *input.Source, o Options) (*Pack, error) {
	t.Helper()
	cache, err := OpenCache(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	id, err := ID(src, o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := cache.Get(context.Background(), id, src, o, quiet)
	if p != nil {
		t.Cleanup(func() { p.Close() })
	}
	return p, err
}

func TestPackHoldsEveryRowOnceInEveryLayout(t *testing.T) {
	var sparse, dense strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&sparse, "%d %d:1 %d:%d\n", i%2, 1+i%50, 60+i%40, i)
		fmt.Fprintf(&dense, "%d,%d,0.5\n", i%2, i)
	}
	for _, c := range []struct {
		name, text string
		o          Options
	}{
		{"sparse", sparse.String(), Options{Splits: 7}},
		{"sparse random float32", sparse.String(), Options{Splits: 7, Random: true, Float32: true, Seed: 3}},
		{"dense", dense.String(), Options{Splits: 3}},
		{"dense float32", dense.String(), Options{Splits: 3, Float32: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := packOf(t, c.text, input.Options{}, c.o)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[int]int{}
			for i := range p.Meta.Splits {
				s, err := OpenSplit(filepath.Join(p.Dir, SplitFile(i)), p.Meta, i)
				if err != nil {
					t.Fatal(err)
				}
				collectIDs(s, seen)
				s.Close()
			}
			if len(seen) != 5000 {
				t.Fatalf("%d distinct rows, want 5000", len(seen))
			}
			for id, n := range seen {
				if n != 1 {
					t.Fatalf("row %d occurs %d times", id, n)
				}
			}
		})
	}
}

// collectIDs counts rows by the value that carries their number, through the
// visiting order, which must reach each row once.
func collectIDs(s *Split, seen map[int]int) {
	for _, b := range s.Batches {
		for p := range b.Rows {
			r := int(b.RowAt(p))
			at := r * s.Meta.Features
			if s.Meta.Layout == SparseLayout {
				at = int(b.Offsets[r+1]) - 1
			}
			if b.X32 != nil {
				seen[int(b.X32[at])]++
			} else {
				seen[int(b.X64[at])]++
			}
		}
	}
}

func TestTheNextRunFindsThePack(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.csv")
	os.WriteFile(path, []byte("1,2\n0,3\n"), 0o600)
	for i := range 2 {
		cache, err := OpenCache(filepath.Join(dir, "cache"), 0)
		if err != nil {
			t.Fatal(err)
		}
		src, err := input.Open(context.Background(), input.Options{}, path)
		if err != nil {
			t.Fatal(err)
		}
		id, _ := ID(src, Options{})
		p, err := cache.Get(context.Background(), id, src, Options{}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		if p.Found != (i == 1) {
			t.Errorf("run %d: found %v", i, p.Found)
		}
		p.Close()
	}
}

func TestTheBudgetEvictsWhatWasUsedLeastRecently(t *testing.T) {
	dir := t.TempDir()
	cache, err := OpenCache(filepath.Join(dir, "cache"), 1)
	if err != nil {
		t.Fatal(err)
	}
	get := func(name string) *Pack {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("1,2\n0,3\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		src, err := input.Open(context.Background(), input.Options{}, path)
		if err != nil {
			t.Fatal(err)
		}
		id, _ := ID(src, Options{})
		p, err := cache.Get(context.Background(), id, src, Options{}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	a := get("a.csv")
	b := get("b.csv") // a is in use and stays, though the budget is one byte
	if _, err := os.Stat(filepath.Join(a.Dir, "pack.json")); err != nil {
		t.Error("a pack in use was evicted")
	}
	a.Close()
	b.Close()
	c := get("c.csv")
	defer c.Close()
	for _, p := range []*Pack{a, b} {
		if _, err := os.Stat(p.Dir); err == nil {
			t.Errorf("%s is over the budget and still there", p.Dir)
		}
	}
}

func TestAKilledBuildLeavesNothingThatIsTakenForWhole(t *testing.T) {
	dir := t.TempDir()
	cache, err := OpenCache(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	tmp, _, err := cache.TempDir("build") // its builder dies: nobody calls done, the lock goes with the process
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tmp, "half"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCache(dir, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tmp); err != nil {
		t.Error("a build whose builder lives was swept away")
	}
	if packs := cache.packs(); len(packs) != 0 {
		t.Errorf("half a build is a pack: %v", packs)
	}
}

// TestTwoWantOnePack: while one builds a pack the other waits for it, and gets
// it as soon as it is there, not when the first lets go of it.
func TestTwoWantOnePack(t *testing.T) {
	dir := t.TempDir()
	cache, err := OpenCache(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	id, err := ID("rows", Options{})
	if err != nil {
		t.Fatal(err)
	}
	building, release := make(chan struct{}), make(chan struct{})
	rows := heldRows{building: building, release: release}
	type got struct {
		p   *Pack
		err error
	}
	first, second := make(chan got, 1), make(chan got, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	go func() {
		p, err := cache.Get(ctx, id, rows, Options{}, quiet)
		first <- got{p, err}
	}()
	<-building
	go func() {
		p, err := cache.Get(ctx, id, heldRows{}, Options{}, quiet)
		second <- got{p, err}
	}()
	close(release)
	a, b := <-first, <-second
	if a.err != nil || b.err != nil {
		t.Fatal(a.err, b.err)
	}
	defer a.p.Close()
	defer b.p.Close()
	if !b.p.Found {
		t.Error("the second built the pack again")
	}
}

// heldRows are two rows that are read when somebody says so.
type heldRows struct{ building, release chan struct{} }

func (heldRows) Len() int { return 1 }

func (h heldRows) Read(_ context.Context, _ int, yield func(*rows.Chunk) error) error {
	if h.building == nil {
		return errors.New("it should have been found")
	}
	close(h.building)
	<-h.release
	c := &rows.Chunk{ZeroBased: true}
	c.AppendDense(0, []float64{1})
	c.AppendDense(1, []float64{2})
	return yield(c)
}

// TestADamagedPackIsMadeAgain: one bit of a pack's file is flipped.
func TestADamagedPackIsMadeAgain(t *testing.T) {
	dir := t.TempDir()
	cache, err := OpenCache(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "input")
	if err := os.WriteFile(path, []byte("1 1:1\n0 1:2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := input.Open(context.Background(), input.Options{}, path)
	if err != nil {
		t.Fatal(err)
	}
	get := func() *Pack {
		p, err := cache.Get(context.Background(), plan.DigestOf([]byte("x")), src, Options{}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		p.Close()
		return p
	}
	first := get()
	if !get().Found {
		t.Error("a whole pack was not found")
	}
	file := filepath.Join(first.Dir, SplitFile(0))
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if again := get(); again.Found {
		t.Error("a damaged pack was taken for whole")
	} else if again.Meta.Splits[0].SHA256 != first.Meta.Splits[0].SHA256 {
		t.Error("it was made differently")
	}
}

// TestFeaturesThatNoSingleHasAreRefused when a pack of single precision is made, rather
// than infinite in it.
func TestFeaturesThatNoSingleHasAreRefused(t *testing.T) {
	for name, text := range map[string]string{"csv": "label,a\n1,2\n0,1e300\n", "libsvm": "1 1:2\n0 1:-1e300\n",
		"nearly": "label,a\n1,2\n0,3.4028236e38\n"} {
		if _, err := packOf(t, text, input.Options{}, Options{Float32: true}); err == nil ||
			!strings.Contains(err.Error(), "single precision") {
			t.Errorf("%s: it is packed: %v", name, err)
		}
		if _, err := packOf(t, text, input.Options{}, Options{}); err != nil {
			t.Errorf("%s in double precision: %v", name, err)
		}
	}
	if _, err := packOf(t, "label,a\n1,3.4028235e38\n0,1e-300\n", input.Options{}, Options{Float32: true}); err != nil {
		t.Errorf("the greatest single, and what is next to nothing: %v", err)
	}
}

func FuzzMappedSplit(f *testing.F) {
	f.Add([]byte("ARROW1\x00\x00"), int64(3))
	f.Fuzz(func(t *testing.T, raw []byte, rows int64) {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, layout := range []Layout{DenseLayout, SparseLayout, BlobLayout} {
			m := &Meta{Layout: layout, Features: 3, Splits: []SplitMeta{{Rows: rows, Bytes: int64(len(raw))}}}
			if s, err := OpenSplit(path, m, 0); err == nil {
				s.Close()
			}
		}
	})
}
