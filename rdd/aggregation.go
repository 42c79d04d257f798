package rdd

import (
	"reflect"
	"sync"
	"unsafe"
)

// partitionedAggregation combines rows by key. While keys are few it has one table. Once that does not
// stay in the machine's caches, where each row would wait for memory, and has no index
// by number, which it would wait for half as long, rows are dealt out to shards by the
// upper bits of their hashes, and a shard's rows are combined many at a time, in a
// table of the shard's own, which stays there meanwhile. The values of a key are
// combined in the order in which they came.
type partitionedAggregation[K comparable, V, C any] struct {
	keyed   keyed[K, C]
	one     *table[K, C]
	tables  []*table[K, C] // by shard; nil until rows are dealt out
	rows    []Pair[K, V]   // of all shards, room for as many each
	held    []int          // rows in each shard
	hashes  []uint64
	large   bool // the one table has been found not to stay in the caches
	dealing bool
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

func newPartitionedAggregation[K comparable, V, C any](k keyed[K, C]) *partitionedAggregation[K, V, C] {
	return &partitionedAggregation[K, V, C]{keyed: k, one: newTable[K, C](k.key, k.hash, 0)}
}

// begin sets how many bytes tables may take. Only rows of fixed size are dealt out:
// what others refer to would have to be kept.
func (d *partitionedAggregation[K, V, C]) begin(most int, fixed bool) {
	d.most, d.room = most, 0
	if room := min(most, windowBytes) / 2 / shards / int(unsafe.Sizeof(Pair[K, V]{})); fixed && room >= leastRoom {
		d.room = room
	}
}

// add takes a batch of rows in.
func (d *partitionedAggregation[K, V, C]) add(rows []Pair[K, V], by Combiner[V, C]) {
	if !d.dealing {
		combineInto(d.one, rows, by.Create, by.Add)
		if d.bytes = d.one.content(); d.room > 0 && d.bytes > cachedMost && !d.large {
			d.enlarge()
		}
		return
	}
	d.hashes = hashOf(d.keyed.hash, rows, d.hashes)
	for i, h := range d.hashes {
		k := int(h >> (64 - shardBits))
		n := d.held[k]
		d.rows[k*d.room+n] = rows[i]
		if d.held[k] = n + 1; n+1 == d.room {
			d.combine(k, by)
		}
	}
}

// enlarge looks once at the keys of a table that has become large. What it decides goes
// by these alone, as what tables have when they are full depends on it.
func (d *partitionedAggregation[K, V, C]) enlarge() {
	if d.large = true; !d.one.dense() {
		d.deal()
	}
}

// deal begins to deal rows out: what the one table has goes to those of the shards.
func (d *partitionedAggregation[K, V, C]) deal() {
	if d.tables == nil {
		d.tables, d.held = make([]*table[K, C], shards), make([]int, shards)
		for k := range d.tables {
			d.tables[k] = newTable[K, C](d.keyed.key, d.keyed.hash, 0)
		}
	}
	if need := shards * d.room; len(d.rows) < need {
		d.rows = makeHuge[Pair[K, V]](need, need)
	}
	for i, h := range d.one.hashed() {
		t := d.tables[h>>(64-shardBits)]
		at, _ := t.insert(&d.one.entries[i].Key, h)
		t.entries[at].Value = d.one.entries[i].Value
	}
	d.one.clear()
	d.dealing, d.bytes = true, 0
	for _, t := range d.tables {
		d.bytes += t.content()
	}
}

// combine takes the rows of a shard into its table, a batch at a time.
func (d *partitionedAggregation[K, V, C]) combine(k int, by Combiner[V, C]) {
	t, rows := d.tables[k], d.rows[k*d.room:k*d.room+d.held[k]]
	before := t.content()
	for n := batchRows[Pair[K, V]](); len(rows) > 0; rows = rows[min(n, len(rows)):] {
		combineInto(t, rows[:min(n, len(rows))], by.Create, by.Add)
	}
	d.held[k] = 0
	d.bytes += t.content() - before
}

// raw is how the rows that are combined are encoded, where they can be, and come back the
// same: functions must not see other values where there is little memory.
func (d *partitionedAggregation[K, V, C]) raw() (keyed[K, V], bool) {
	row, err := pairCodecOf[K, V](d.keyed.key)
	return keyed[K, V]{key: d.keyed.key, hash: d.keyed.hash, row: row}, err == nil &&
		comesBackTheSame(reflect.TypeFor[V]())
}

// settle combines the rows that wait in shards.
func (d *partitionedAggregation[K, V, C]) settle(by Combiner[V, C]) {
	for k := range d.tables {
		if d.dealing {
			d.combine(k, by)
		}
	}
}

// entry is what tables have of a key; nil where that is nothing. Rows that wait are not
// in it.
func (d *partitionedAggregation[K, V, C]) entry(key *K, hash uint64) *Pair[K, C] {
	t := d.one
	if d.dealing {
		t = d.tables[hash>>(64-shardBits)]
	}
	if len(t.entries) == 0 {
		return nil
	}
	var sc scratch
	look(t, &sc, []Pair[K, C]{{Key: *key}}, false)
	if sc.places[0] == noPlace {
		return nil
	}
	return &t.entries[sc.places[0]]
}

// full reports whether tables take as much memory as they may.
func (d *partitionedAggregation[K, V, C]) full() bool { return d.bytes > d.most }

// drain hands all tables to yield, and forgets what they have.
func (d *partitionedAggregation[K, V, C]) drain(by Combiner[V, C], yield func(*table[K, C]) error) error {
	d.settle(by)
	var err error
	d.each(func(t *table[K, C]) {
		if err == nil {
			err = yield(t)
		}
		t.clear()
	})
	d.bytes = 0
	return err
}

// each calls f with the tables in use.
func (d *partitionedAggregation[K, V, C]) each(f func(*table[K, C])) {
	if !d.dealing {
		f(d.one)
		return
	}
	for _, t := range d.tables {
		f(t)
	}
}

// clear forgets everything but the memory it took.
func (d *partitionedAggregation[K, V, C]) clear() {
	d.one.clear()
	for k, t := range d.tables {
		t.clear()
		d.held[k] = 0
	}
	d.large, d.dealing, d.bytes = false, false, 0
}

// aggregationPool are for one task after the other, so that each begins with the memory
// that the one before it needed.
type aggregationPool[K comparable, V, C any] struct {
	keyed keyed[K, C]
	fixed bool // rows have one size
	pool  sync.Pool
}

func newAggregationPool[K comparable, V, C any](k keyed[K, C]) *aggregationPool[K, V, C] {
	row, err := pairCodecOf[K, V](k.key)
	return &aggregationPool[K, V, C]{keyed: k, fixed: err == nil && row.flat > 0}
}

func (p *aggregationPool[K, V, C]) get(most int) *partitionedAggregation[K, V, C] {
	d, ok := p.pool.Get().(*partitionedAggregation[K, V, C])
	if !ok {
		d = newPartitionedAggregation[K, V, C](p.keyed)
	}
	d.begin(most, p.fixed)
	return d
}

func (p *aggregationPool[K, V, C]) put(d *partitionedAggregation[K, V, C]) {
	if d.one.pooled() {
		d.clear()
		p.pool.Put(d)
	}
}
