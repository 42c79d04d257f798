package soak

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/volley-engine/volley/rdd"
)

// kept are the operations that keep rows: once, or from round to round.
func kept[K comparable, V any]() []op[K, V] {
	return []op[K, V]{cached[K, V], persisted[K, V], givenUp[K, V], checkpointed[K, V], looped[K, V], loopedByKey[K, V]}
}

func cached[K comparable, V any](d *draw, _ *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	return derived(d, n, "Cache", func(_ *built, ds same[K, V]) same[K, V] { return rdd.Cache(ds) },
		asTheyAre[row[K, V]])
}

func persisted[K comparable, V any](d *draw, _ *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	level, copies := one(d, rdd.Memory, rdd.Disk), 1+d.IntN(3)
	return derived(d, n, fmt.Sprintf("Persist at level %d, %d copies", level, copies),
		func(_ *built, ds same[K, V]) same[K, V] { return rdd.Persist(ds, level, copies) }, asTheyAre[row[K, V]])
}

// givenUp is kept, counted, and given up before it is read.
func givenUp[K comparable, V any](d *draw, _ *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	return derived(d, n, "Unpersist of Cache", func(b *built, ds same[K, V]) same[K, V] {
		kept := rdd.Cache(ds)
		count := rdd.Count(kept)
		b.ready = append(b.ready, func(ctx context.Context, s *rdd.Session) error {
			if _, err := count.Run(ctx, s); err != nil {
				return err
			}
			return rdd.Unpersist(s, kept)
		})
		return kept
	}, asTheyAre[row[K, V]])
}

func checkpointed[K comparable, V any](d *draw, _ *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	name := fmt.Sprint("checkpoint-", len(d.steps))
	return derived(d, n, "Checkpoint", func(b *built, ds same[K, V]) same[K, V] {
		return rdd.Checkpoint(ds, filepath.Join(b.dir, name))
	}, asTheyAre[row[K, V]])
}

// loop is a node whose rows are replaced a few times.
func loop[K comparable, V any](d *draw, n *node[row[K, V]], words string, first, body func(same[K, V]) same[K, V],
	round func([]row[K, V]) []row[K, V]) *node[row[K, V]] {
	rounds := d.IntN(4)
	return derived(d, n, fmt.Sprintf("%d rounds of %s", rounds, words), func(b *built, ds same[K, V]) same[K, V] {
		l := rdd.NewLoop(first(ds), body)
		b.ready = append(b.ready, func(ctx context.Context, s *rdd.Session) error {
			for range rounds {
				if err := l.Step(ctx, s); err != nil {
					return err
				}
			}
			return nil
		})
		return l.Now()
	}, allRows(func(rows []row[K, V]) []row[K, V] {
		for range rounds {
			rows = round(rows)
		}
		return rows
	}))
}

// looped has a round that moves nothing.
func looped[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	f := k.again(d.Uint64())
	// a Map may give others keys
	spreadNoMore := func(ds same[K, V]) same[K, V] { return rdd.Map(ds, func(r row[K, V]) row[K, V] { return r }) }
	return loop(d, n, "Map", spreadNoMore, func(now same[K, V]) same[K, V] { return rdd.Map(now, f) },
		func(rows []row[K, V]) []row[K, V] { return rowOf(f)([][]row[K, V]{rows})[0] }).uncut()
}

// loopedByKey has one that brings keys together.
func loopedByKey[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	parts, f := one(d, 1, 3, 6), k.again(d.Uint64())
	return loop(d, n, "Map and ReduceByKey",
		func(ds same[K, V]) same[K, V] { return rdd.PartitionBy(ds, rdd.HashPartitioner[K](parts)) },
		func(now same[K, V]) same[K, V] {
			return rdd.ReduceByKey(rdd.Map(now, f), k.lesser, rdd.Partitions(parts))
		},
		func(rows []row[K, V]) (out []row[K, V]) {
			for _, g := range k.groups(rowOf(f)([][]row[K, V]{rows})[0]) {
				out = append(out, row[K, V]{Key: g.key, Value: k.least(g.values)[0]})
			}
			return out
		}).dealt()
}
