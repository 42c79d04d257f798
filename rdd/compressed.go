package rdd

import (
	"math"
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
	at            []int32 // columns, by their places
	values        []float64

	mixing sync.Once
	mixed  []int
}

// order returns rows mixed, always alike.
func (c *compressed) order() []int {
	c.mixing.Do(func() { c.mixed = rand.New(rand.NewPCG(1, 1)).Perm(len(c.rows)) })
	return c.mixed
}

// cell is an entry by the places of its row and its column.
type cell struct {
	row, column int32
	value       float64
}

// cellBlock is how many cells are handed on at a time.
const cellBlock = 512

// cells yields those of a part, always the same, up to cellBlock at a time.
type cells func(part int, yield func([]cell))

// mostBuckets is how many streams of cells are written at a time: a processor's cache has a
// line of each.
const mostBuckets = 1 << 9

// buckets are cells by neighbouring rows, each bucket's in their order.
type buckets struct {
	shift  int // a cell's bucket is its row without this number of last bits
	begins []int
	all    []cell
}

// deal deals cells out to buckets, which of some million rows are small enough for a processor's cache, in
// memory that another deal of as many was in, if there was one.
func deal(rows int, room []cell, each cells) *buckets {
	d := &buckets{shift: max(0, bits.Len(uint(rows))-bits.Len(uint(mostBuckets))+1)}
	n, shift := rows>>d.shift+1, d.shift
	next := make([][]int, sortedParts)
	sideBySide(len(next), func(p int) {
		count := make([]int, n)
		each(p, func(some []cell) {
			for i := range some {
				count[some[i].row>>shift]++
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
	if d.all = room; len(room) != sum {
		d.all = huge.Make[cell](sum, sum)
	}
	sideBySide(len(next), func(p int) {
		at := next[p]
		each(p, func(some []cell) {
			for i := range some {
				b := some[i].row >> shift
				d.all[at[b]] = some[i]
				at[b]++
			}
		})
	})
	return d
}

// compress sorts cells by row, those of one row in the order that they were dealt out in.
func (d *buckets) compress(rows, columns []int64) *compressed {
	c := &compressed{rows: rows, columns: columns, starts: make([]int, len(rows)+1),
		at: huge.Make[int32](len(d.all), len(d.all)), values: huge.Make[float64](len(d.all), len(d.all))}
	sideBySide(len(d.begins)-1, func(b int) {
		from, to := b<<d.shift, min((b+1)<<d.shift, len(rows))
		c.fill(from, to, d.begins[b], d.all[d.begins[b]:d.begins[b+1]])
	})
	return c
}

// fill sorts a bucket: the cells of some rows, which begin at a place.
func (c *compressed) fill(from, to, begin int, bucket []cell) {
	if from >= to {
		return
	}
	next := make([]int, to-from)
	for i := range bucket {
		next[int(bucket[i].row)-from]++
	}
	for row := range next {
		next[row], begin = begin, begin+next[row]
		c.starts[from+row+1] = begin
	}
	for i := range bucket {
		row := int(bucket[i].row) - from
		c.at[next[row]], c.values[next[row]] = bucket[i].column, bucket[i].value
		next[row]++
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

// transposed returns the same entries by column; those of one column are in the order of
// the rows.
func (c *compressed) transposed(room []cell) *compressed {
	return deal(len(c.columns), room, func(part int, yield func([]cell)) {
		var some [cellBlock]cell
		n := 0
		for row := part * len(c.rows) / sortedParts; row < (part+1)*len(c.rows)/sortedParts; row++ {
			for k := c.starts[row]; k < c.starts[row+1]; k++ {
				some[n] = cell{c.at[k], int32(row), c.values[k]}
				if n++; n == cellBlock {
					yield(some[:])
					n = 0
				}
			}
		}
		yield(some[:n])
	}).compress(c.columns, c.rows)
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

// rank returns the places of entries' numbers.
func rank(parts [][]Entry, number func(*Entry) *int64) *ranking {
	low, high, n := int64(math.MaxInt64), int64(math.MinInt64), 0
	for _, entries := range parts {
		for i := range entries {
			v := *number(&entries[i])
			low, high = min(low, v), max(high, v)
		}
		n += len(entries)
	}
	if spread := uint64(high) - uint64(low); n > 0 && spread < uint64(sparseBits*n+1024) {
		return rankByBits(parts, number, low, spread/64+1)
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
