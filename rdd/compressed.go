package rdd

import (
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/volley-engine/volley/internal/huge"
)

// compressed are entries by row: those of the i-th row lie from starts[i] up to, but
// without, starts[i+1].
type compressed struct {
	rows, columns []int64 // the numbers of those that there are, in order
	starts        []int
	at            []int32   // columns, by their places
	values        []float64 // nil where all are value
	value         float64

	mixing sync.Once
	mixed  []int
}

// order returns rows mixed, always alike.
func (c *compressed) order() []int {
	c.mixing.Do(func() { c.mixed = rand.New(rand.NewPCG(1, 1)).Perm(len(c.rows)) })
	return c.mixed
}

// cell is an entry by the places of its row and its column.
type cell struct{ row, column int32 }

// cellBlock is how many cells are handed on at a time.
const cellBlock = 512

// stream has cells in sortedParts parts, always the same.
type stream struct {
	rows  func(part int, yield func(rows []int32))
	cells func(part int, yield func(some []cell, values []float64)) // no values where all are one
	one   bool
	value float64
}

// mostBuckets is how many streams of cells are written at a time: a processor's cache has a
// line of each.
const mostBuckets = 1 << 9

// buckets are cells by neighbouring rows, each bucket's in their order.
type buckets struct {
	shift  int // a cell's bucket is its row without this number of last bits
	begins []int
	all    []cell
	values []float64 // nil where all are value
	value  float64
}

// deal deals cells out to buckets, which of some million rows are small enough for a processor's cache, in
// the memory of another deal of as many, if there was one.
func deal(rows int, room *buckets, from stream) *buckets {
	d := &buckets{shift: max(0, bits.Len(uint(rows))-bits.Len(uint(mostBuckets))+1), value: from.value}
	next := d.count(rows>>d.shift+1, from)
	if n := d.begins[len(d.begins)-1]; room != nil && len(room.all) == n {
		d.all, d.values = room.all, room.values
	} else if d.all = huge.Make[cell](n, n); !from.one {
		d.values = huge.Make[float64](n, n)
	}
	sideBySide(len(next), func(p int) {
		at := next[p]
		from.cells(p, func(some []cell, values []float64) {
			for i := range some {
				b := some[i].row >> d.shift
				d.all[at[b]] = some[i]
				if values != nil {
					d.values[at[b]] = values[i]
				}
				at[b]++
			}
		})
	})
	return d
}

// count finds where each of n buckets begins, and returns where in it each part of the cells does.
func (d *buckets) count(n int, from stream) (next [][]int) {
	next = make([][]int, sortedParts)
	sideBySide(len(next), func(p int) {
		count := make([]int, n)
		from.rows(p, func(rows []int32) {
			for _, row := range rows {
				count[row>>d.shift]++
			}
		})
		next[p] = count
	})
	d.begins = make([]int, n+1)
	sum := 0
	for b := range n {
		d.begins[b] = sum
		for p := range next {
			next[p][b], sum = sum, sum+next[p][b]
		}
	}
	d.begins[n] = sum
	return next
}

// compress sorts cells by row, those of one row in the order that they were dealt out in.
func (d *buckets) compress(rows, columns []int64) *compressed {
	c := &compressed{rows: rows, columns: columns, starts: make([]int, len(rows)+1),
		at: huge.Make[int32](len(d.all), len(d.all)), value: d.value}
	if d.values != nil {
		c.values = huge.Make[float64](len(d.all), len(d.all))
	}
	sideBySide(len(d.begins)-1, func(b int) { c.fill(d, b) })
	return c
}

// fill sorts a bucket.
func (c *compressed) fill(d *buckets, b int) {
	from, to := b<<d.shift, min((b+1)<<d.shift, len(c.rows))
	if from >= to {
		return
	}
	begin, bucket := d.begins[b], d.all[d.begins[b]:d.begins[b+1]]
	next := make([]int, to-from)
	for i := range bucket {
		next[int(bucket[i].row)-from]++
	}
	for row, at := 0, begin; row < len(next); row++ {
		next[row], at = at, at+next[row]
		c.starts[from+row+1] = at
	}
	for i := range bucket {
		to := &next[int(bucket[i].row)-from]
		c.at[*to] = bucket[i].column
		if c.values != nil {
			c.values[*to] = d.values[begin+i]
		}
		*to++
	}
}

// sideBySide calls do with each number below n, from as many goroutines as there are
// processors.
func sideBySide(n int, do func(i int)) {
	var all sync.WaitGroup
	var next atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	all.Wait()
}

// sortedParts is how many parts of cells are dealt out side by side.
const sortedParts = 64

// part returns the rows of a part, of which there are sortedParts.
func (c *compressed) part(i int) (from, to int) {
	return i * len(c.rows) / sortedParts, (i + 1) * len(c.rows) / sortedParts
}

// transposed returns the same entries by column; those of one column are in the order of
// the rows.
func (c *compressed) transposed(room *buckets) *compressed {
	return deal(len(c.columns), room, stream{one: c.values == nil, value: c.value,
		rows: func(part int, yield func([]int32)) {
			from, to := c.part(part)
			yield(c.at[c.starts[from]:c.starts[to]])
		}, cells: c.turned}).compress(c.columns, c.rows)
}

// turned yields the cells of a part with their rows for columns.
func (c *compressed) turned(part int, yield func([]cell, []float64)) {
	var some [cellBlock]cell
	row, to := c.part(part)
	for begin, end := c.starts[row], c.starts[to]; begin < end; begin += cellBlock {
		block := c.at[begin:min(begin+cellBlock, end)]
		for i, column := range block {
			for c.starts[row+1] <= begin+i {
				row++
			}
			some[i] = cell{column, int32(row)}
		}
		var values []float64
		if c.values != nil {
			values = c.values[begin:][:len(block)]
		}
		yield(some[:len(block)], values)
	}
}

// ranking gives numbers their places among all that there are, in order: by a bit for each
// number that there could be, where these are not many more.
type ranking struct {
	all    []int64
	first  int64
	there  []uint64 // bits of numbers, from the first on; nil where places were searched for
	before []int32  // by word of there: how many numbers come before its own
}

// place returns the place of a number that there is; where places were searched for, the
// number is its place by now.
func (r *ranking) place(number int64) int32 {
	if r.there == nil {
		return int32(number)
	}
	i := uint64(number - r.first)
	return r.before[i/64] + int32(bits.OnesCount64(r.there[i/64]&(1<<(i%64)-1)))
}

// forget gives up what places are found by.
func (r *ranking) forget() { r.there, r.before = nil, nil }

// sparseBits is how many bits a ranking has for each entry, at the most.
const sparseBits = 32

// rank returns the places of entries' numbers, of which the least and the greatest are known.
func rank(parts [][]Entry, n int, of span, number func(*Entry) *int64) *ranking {
	if spread := uint64(of.high) - uint64(of.low); n > 0 && spread < uint64(sparseBits*n+1024) {
		return rankByBits(parts, number, of.low, spread/64+1)
	}
	return rankBySearch(parts, number, n)
}

// rankByBits marks the numbers, from the first on, and counts the marks.
func rankByBits(parts [][]Entry, number func(*Entry) *int64, first int64, words uint64) *ranking {
	r := &ranking{first: first, there: make([]uint64, words), before: make([]int32, words)}
	for _, entries := range parts {
		for i := range entries {
			v := uint64(*number(&entries[i]) - first)
			r.there[v/64] |= 1 << (v % 64)
		}
	}
	for w, word := range r.there {
		r.before[w] = int32(len(r.all))
		for ; word != 0; word &= word - 1 {
			r.all = append(r.all, first+int64(w*64+bits.TrailingZeros64(word)))
		}
	}
	return r
}

// rankBySearch looks places up among the numbers in order, and puts them in the numbers' stead.
func rankBySearch(parts [][]Entry, number func(*Entry) *int64, n int) *ranking {
	all := make([]int64, 0, n)
	for _, entries := range parts {
		for i := range entries {
			all = append(all, *number(&entries[i]))
		}
	}
	slices.Sort(all)
	all = slices.Clone(slices.Compact(all))
	sideBySide(len(parts), func(p int) {
		for i := range parts[p] {
			v := number(&parts[p][i])
			at, _ := slices.BinarySearch(all, *v)
			*v = int64(at)
		}
	})
	return &ranking{all: all}
}
