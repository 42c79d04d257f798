package soak

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volley-engine/volley/rdd"
)

// Heavy pipelines have several times the rows that their executors have memory for.
const (
	heavyRows  = 120_000
	heavyBytes = 1000 // of a row
	heavyLimit = 64 << 20
	heavySlack = 64 << 20 // that a process may have beyond its limit
)

// longTexts are of about a kilobyte.
func longTexts() domain[string] {
	return domain[string]{"long text", func(n uint64) string {
		var b []byte
		for i := range uint64(heavyBytes / 8) {
			b = binary.LittleEndian.AppendUint64(b, both(n, i)) // nothing that can be compressed
		}
		return string(b)
	}, texts().text}
}

// drawHeavy draws a pipeline of much data: an operation or two that move all of it.
func drawHeavy(seed uint64) *pipeline {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, 17)), pool: map[string][]any{}, limit: 3 * heavyRows}
	type K = time.Time
	k := kindOf(times(), longTexts(), []op[K, string]{grouped[K, string], reduced[K, string], aggregated[K, string],
		distinct[K, string], joinedRows[K, string],
		fullJoined[K, string], cogrouped[K, string], subtractedByKey[K, string], repartitioned[K, string],
		sortedBy[K, string], sortedByAll[K, string], cached[K, string]})
	n := k.heavy(d)
	d.pool[k.name()] = []any{n, k.heavy(d)}
	s := stage(staged[K, string]{k, n})
	for range 1 + d.IntN(2) {
		s = s.grow(d)
	}
	end := s.(staged[K, string]).n
	digests := asks(end.step, "Collect of digests",
		func(b *built) rdd.Action[[]uint64] { return rdd.Collect(rdd.Map(end.in(b), k.digest)) },
		func(got []uint64) error {
			text := func(n uint64) string { return fmt.Sprintf("%016x", n) }
			return sameTexts(textsOf(got, text), textsOf(end.rows(),
				func(r row[K, string]) string { return text(k.digest(r)) }), end.ordered)
		})
	return &pipeline{seed: seed, checks: []check{digests}, steps: reached(end.step)}
}

// heavy is much data, of which no key has a lot.
func (k *kind[K, V]) heavy(d *draw) *node[row[K, V]] {
	seed := d.Uint64()
	f := func(i int64) row[K, V] {
		n := both(seed, uint64(i))
		return row[K, V]{Key: k.key.of(mix(n) % heavyRows), Value: k.value.of(n)}
	}
	return source(d, "Map of Range to "+k.name(), heavyRows, func(b *built) rdd.Dataset[row[K, V]] {
		return rdd.Map(rdd.Range(b.g, 0, heavyRows, 24), f)
	}, func() [][]row[K, V] {
		out := make([]row[K, V], heavyRows)
		for i := range out {
			out[i] = f(int64(i))
		}
		return [][]row[K, V]{out}
	})
}

// TestHeavyPipelinesKeepToTheirMemory: the memory of their own that runners have at
// the most is what they were given, and a little.
func TestHeavyPipelinesKeepToTheirMemory(t *testing.T) {
	from, to := seeds(t, 0, 50)
	for seed := from; seed < to; seed++ {
		x := newSite(t, builtOnce(t), seed)
		x.join(heavyLimit)
		x.join(heavyLimit)
		a := soakArgs{Seed: seed, Dir: x.Dir + "/files", Heavy: true}
		x.try(a, false)
		for name, peak := range x.peaks {
			if peak > heavyLimit+heavySlack {
				t.Errorf("%s took %d MiB, may take %d + %d\n%v", name, peak>>20, heavyLimit>>20, heavySlack>>20,
					a.draw())
			}
		}
		t.Logf("seed %d: %v", seed, x.peaks)
		x.close()
	}
}
