package pack

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/storage/input/rows"
)

// chunksOf are sparse rows that are read one chunk after the other.
type chunksOf []*rows.Chunk

func (chunksOf) Len() int { return 1 }

func (c chunksOf) Read(_ context.Context, _ int, yield func(*rows.Chunk) error) error {
	for _, one := range c {
		if err := yield(one.Clone()); err != nil {
			return err
		}
	}
	return nil
}

// sparseChunk is a chunk of random rows whose entries are all of a value, spelled out or not; of no value they differ.
func sparseChunk(seed uint64, value float64, spelled bool) *rows.Chunk {
	rng := rand.New(rand.NewPCG(seed, 1))
	c := &rows.Chunk{ZeroBased: true, Offsets: []int64{0}}
	if value != 0 && !spelled {
		c.Same = &value
	}
	for r := range 50 {
		for j := range 20 {
			if rng.IntN(3) > 0 {
				continue
			}
			c.Indices = append(c.Indices, int32(j))
			if value == 0 {
				c.Values = append(c.Values, rng.NormFloat64())
			} else if spelled {
				c.Values = append(c.Values, value)
			}
		}
		c.Labels, c.Offsets = append(c.Labels, float64(r)), append(c.Offsets, int64(len(c.Indices)))
	}
	return c
}

// TestEntriesOfOneValueArePackedAsThoughSpelledOut, also where others come before or after them.
func TestEntriesOfOneValueArePackedAsThoughSpelledOut(t *testing.T) {
	for what, values := range map[string][]float64{"one": {1, 1, 1}, "two": {1, 1, 2}, "others after": {3, 3, 0},
		"others before": {0, 3, 3}} {
		for _, o := range []Options{{Splits: 2}, {Splits: 2, Float32: true}, {Splits: 3, Sparse: true},
			{Splits: 3, Sparse: true, Float32: true}, {Splits: 3, Sparse: true, Random: true, Seed: 7}} {
			var packs [2]*Pack
			for i, spelled := range []bool{false, true} {
				var all chunksOf
				for k, value := range values {
					all = append(all, sparseChunk(uint64(k), value, spelled))
				}
				cache, err := OpenCache(t.TempDir(), 0)
				if err != nil {
					t.Fatal(err)
				}
				if packs[i], err = cache.Get(t.Context(), plan.DigestOf([]byte("x")), all, o, quiet); err != nil {
					t.Fatal(err)
				}
				defer packs[i].Close()
			}
			if a, b := packs[0].Meta, packs[1].Meta; !slices.Equal(a.Splits, b.Splits) || a.Nonzeros != b.Nonzeros {
				t.Errorf("%s, %+v: %+v, spelled out %+v", what, o, a, b)
			}
		}
	}
}

// TestSpilledEntriesOfOneValueComeBack from the file of a spool.
func TestSpilledEntriesOfOneValueComeBack(t *testing.T) {
	s := newSpool(t.TempDir(), nil)
	defer s.close()
	c := sparseChunk(1, 4, false)
	h := &spooled{chunk: c, rows: c.Rows()}
	if err := s.spill(h); err != nil {
		t.Fatal(err)
	}
	got, err := s.load(h)
	if err != nil {
		t.Fatal(err)
	}
	if want := sparseChunk(1, 4, false); got.Same == nil || *got.Same != 4 || !slices.Equal(got.Indices, want.Indices) {
		t.Errorf("%+v", got)
	}
}
