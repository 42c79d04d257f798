package exec

import (
	"reflect"
	"sync"
	"unsafe"

	"github.com/volley-engine/volley/internal/huge"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// PartitionedAggregation combines rows by key. While keys are few it has one hash table. Once that outgrows
// the CPU's caches, where every row would wait for memory, and has no dense index, which would wait half as
// long, rows are partitioned into shards by the upper bits of their hashes. The rows of a shard are gathered,
// and combined many at a time in the shard's own table, which stays in the caches meanwhile. The values of a
// key are combined in the order in which they came.
type PartitionedAggregation[K comparable, V, C any] struct {
	keyed   Keyed[K, C]
	one     *Table[K, C]
	tables  []*Table[K, C]   // by shard; nil until rows are dealt out
	rows    []row.Pair[K, V] // of all shards, room for as many each
	held    []int            // rows in each shard
	hashes  []uint64
	large   bool // the one table has been found not to stay in the caches
	sharded bool
	most    int // bytes of the tables
	bytes   int // they have by now, whatever memory they had before
	room    int // rows of a shard; 0 where rows cannot be dealt out
}

// Rows are partitioned into shards, by bits of their hash, once a table takes more than
// a number of bytes; rows that wait in shards take half of what tables may.
const (
	shardBits  = 7
	shards     = 1 << shardBits
	cachedMost = 10 << 20
	leastRoom  = 1024 // rows, without which a shard's table would not stay in the cache for long
)

// newPartitionedAggregation returns an empty aggregation.
func newPartitionedAggregation[K comparable, V, C any](k Keyed[K, C]) *PartitionedAggregation[K, V, C] {
	return &PartitionedAggregation[K, V, C]{keyed: k, one: newTable[K, C](k.Key, k.Hash, 0)}
}

// begin sets how many bytes tables may take, and the rows of a window. Only rows of fixed size are
// partitioned: the memory that others refer to would have to be kept.
func (d *PartitionedAggregation[K, V, C]) begin(most, window int, fixed bool) {
	d.most, d.room = most, 0
	if room := min(most, window) / 2 / shards / int(unsafe.Sizeof(row.Pair[K, V]{})); fixed && room >= leastRoom {
		d.room = room
	}
}

// add takes in a batch of rows.
func (d *PartitionedAggregation[K, V, C]) add(rows []row.Pair[K, V], by Combiner[V, C]) {
	if !d.sharded {
		CombineInto(d.one, rows, by.Create, by.Add)
		if d.bytes = d.one.Content(); d.room > 0 && d.bytes > cachedMost && !d.large {
			d.enlarge()
		}
		return
	}
	d.hashes = row.Hashes(d.keyed.Hash, rows, d.hashes)
	for i, h := range d.hashes {
		k := int(h >> (64 - shardBits))
		n := d.held[k]
		d.rows[k*d.room+n] = rows[i]
		if d.held[k] = n + 1; n+1 == d.room {
			d.combine(k, by)
		}
	}
}

// enlarge decides once, when the table has become large, whether to partition. It goes by the keys alone,
// since the contents of tables when they are full depend on it.
func (d *PartitionedAggregation[K, V, C]) enlarge() {
	if d.large = true; !d.one.dense() {
		d.shard()
	}
}

// shard begins to partition: the entries of the one table move to those of the shards.
func (d *PartitionedAggregation[K, V, C]) shard() {
	if d.tables == nil {
		d.tables, d.held = make([]*Table[K, C], shards), make([]int, shards)
		for k := range d.tables {
			d.tables[k] = newTable[K, C](d.keyed.Key, d.keyed.Hash, 0)
		}
	}
	if need := shards * d.room; len(d.rows) < need {
		d.rows = huge.Make[row.Pair[K, V]](need, need)
	}
	for i, h := range d.one.hashed() {
		t := d.tables[h>>(64-shardBits)]
		at, _ := t.insert(&d.one.Entries[i].Key, h)
		t.Entries[at].Value = d.one.Entries[i].Value
	}
	d.one.Clear()
	d.sharded, d.bytes = true, 0
	for _, t := range d.tables {
		d.bytes += t.Content()
	}
}

// combine takes the rows gathered for a shard into its table, a batch at a time.
func (d *PartitionedAggregation[K, V, C]) combine(k int, by Combiner[V, C]) {
	t, rows := d.tables[k], d.rows[k*d.room:k*d.room+d.held[k]]
	before := t.Content()
	for n := row.BatchSize[row.Pair[K, V]](); len(rows) > 0; rows = rows[min(n, len(rows)):] {
		CombineInto(t, rows[:min(n, len(rows))], by.Create, by.Add)
	}
	d.held[k] = 0
	d.bytes += t.Content() - before
}

// raw returns how the rows to be combined are encoded, and whether they can be and read back the same:
// functions must not see other values where there is little memory.
func (d *PartitionedAggregation[K, V, C]) raw() (Keyed[K, V], bool) {
	codec, err := row.PairCodecOf[K, V](d.keyed.Key)
	return Keyed[K, V]{Key: d.keyed.Key, Hash: d.keyed.Hash, Row: codec}, err == nil &&
		row.RoundTrips(reflect.TypeFor[V]())
}

// flushAll combines the rows gathered for all shards.
func (d *PartitionedAggregation[K, V, C]) flushAll(by Combiner[V, C]) {
	for k := range d.tables {
		if d.sharded {
			d.combine(k, by)
		}
	}
}

// entry returns the entry of a key, nil if there is none. Rows gathered for shards are not in it yet.
func (d *PartitionedAggregation[K, V, C]) entry(key *K, hash uint64) *row.Pair[K, C] {
	t := d.one
	if d.sharded {
		t = d.tables[hash>>(64-shardBits)]
	}
	if len(t.Entries) == 0 {
		return nil
	}
	var sc scratch
	look(t, &sc, []row.Pair[K, C]{{Key: *key}}, false)
	if sc.places[0] == noPlace {
		return nil
	}
	return &t.Entries[sc.places[0]]
}

// full reports whether tables take more memory than they may.
func (d *PartitionedAggregation[K, V, C]) full() bool { return d.bytes > d.most }

// empty removes all entries, and keeps the tables in use.
func (d *PartitionedAggregation[K, V, C]) empty() {
	for _, t := range d.inUse() {
		t.Clear()
	}
	d.bytes = 0
}

// inUse returns the tables in use.
func (d *PartitionedAggregation[K, V, C]) inUse() []*Table[K, C] {
	if !d.sharded {
		return []*Table[K, C]{d.one}
	}
	return d.tables
}

// clear removes all entries and keeps the memory.
func (d *PartitionedAggregation[K, V, C]) clear() {
	d.one.Clear()
	for k, t := range d.tables {
		t.Clear()
		d.held[k] = 0
	}
	d.large, d.sharded, d.bytes = false, false, 0
}

// AggregationPool holds aggregations for one task after the other, so that each begins with the memory that
// the one before it needed.
type AggregationPool[K comparable, V, C any] struct {
	keyed Keyed[K, C]
	fixed bool // rows have one size
	pool  sync.Pool
}

// NewAggregationPool returns an empty pool.
func NewAggregationPool[K comparable, V, C any](k Keyed[K, C]) *AggregationPool[K, V, C] {
	row, err := row.PairCodecOf[K, V](k.Key)
	return &AggregationPool[K, V, C]{keyed: k, fixed: err == nil && row.Flat > 0}
}

// Get returns an aggregation whose tables may take most bytes, for windows of window bytes of rows.
func (p *AggregationPool[K, V, C]) Get(most, window int) *PartitionedAggregation[K, V, C] {
	d, ok := p.pool.Get().(*PartitionedAggregation[K, V, C])
	if !ok {
		d = newPartitionedAggregation[K, V, C](p.keyed)
	}
	d.begin(most, window, p.fixed)
	return d
}

// Put takes an aggregation back.
func (p *AggregationPool[K, V, C]) Put(d *PartitionedAggregation[K, V, C]) {
	if d.one.pooled() {
		d.clear()
		p.pool.Put(d)
	}
}
