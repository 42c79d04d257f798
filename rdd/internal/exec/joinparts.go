package exec

import (
	"cmp"
	"errors"
	"io"
	"reflect"
	"unsafe"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/shuffle"
)

// partsJoin joins sides of which the right does not fit into a task's memory (a grace hash join), and yields
// rows in the order of the left, as probing one table of the right does: the result does not show which was
// done. The rows of the right and the keys of the left are written to files by hash partition. Partition by
// partition, the matches of each key are written in the order of the left. At the end the left is read once
// more, and each row takes up its matches.
type partsJoin[K comparable, V, W, U any] struct {
	p     *HashJoin[K, V, W, U]
	packs runner.TaskContext
	of    [joinSlots]int // part of each slot of hashes
	parts int
	right *shuffle.Output // by part
}

// joinSlots is into how many ranges of hashes the right is measured; ranges are grouped into partitions.
const joinSlots = 1 << 10

func slotOf(hash uint64) int { return int(hash * 0x9e3779b97f4a7c15 >> (64 - 10)) }

// InParts joins sides that can be read several times, of which the right does not fit into memory.
func (p *HashJoin[K, V, W, U]) InParts(packs runner.TaskContext, right Rows[row.Pair[K, W]], left Rows[row.Pair[K, V]],
	yield func([]U) error) error {
	j, err := p.cutRight(packs, right)
	if err != nil {
		return err
	}
	defer j.close()
	return j.join(left, yield)
}

// cutRight writes the right by partitions, each of which fits into memory.
func (p *HashJoin[K, V, W, U]) cutRight(packs runner.TaskContext, right Rows[row.Pair[K, W]]) (
	*partsJoin[K, V, W, U], error) {
	j := &partsJoin[K, V, W, U]{p: p, packs: packs}
	if err := j.cut(right); err != nil {
		return nil, err
	}
	out := NewWriter(j.packs, p.Right.Row, j.parts)
	out.ToFile()
	defer out.Close()
	err := eachOfPart(j, p.Right.Hash, right, func(part int, row *row.Pair[K, W]) error { return out.Add(part, row) })
	if err != nil {
		return nil, err
	}
	j.right, err = out.Finish()
	return j, err
}

func (j *partsJoin[K, V, W, U]) close() { j.right.Remove() }

// join yields the joined rows of some rows of the left.
func (j *partsJoin[K, V, W, U]) join(left Rows[row.Pair[K, V]], yield func([]U) error) error {
	keys, row, err := j.keysOf(left)
	if err != nil {
		return err
	}
	defer keys.Remove()
	found, err := j.find(keys, row)
	if err != nil {
		return err
	}
	defer found.Remove()
	return j.emit(found, left, yield)
}

// cut measures the right, and groups ranges of hashes into partitions.
func (j *partsJoin[K, V, W, U]) cut(right Rows[row.Pair[K, W]]) error {
	var bytes [joinSlots]int
	var hashes []uint64
	var raw []byte
	c := j.p.Right
	err := right(func(rows []row.Pair[K, W]) error {
		hashes = row.Hashes(c.Hash, rows, hashes)
		for i := range rows {
			raw = c.Row.Append(raw[:0], &rows[i])
			bytes[slotOf(hashes[i])] += len(raw) + int(unsafe.Sizeof(rows[i])) + tableRow
		}
		return nil
	})
	if err != nil {
		return err
	}
	room, sum := max(j.packs.Memory()/2, 1<<20), 0
	for slot, n := range bytes {
		if n > max(j.packs.Memory(), 8<<20) {
			return fault.Newf(fault.NoResources, "join", "rows of the right",
				"those of one key, or of very few, take %d MiB, and the task has %d MiB", n>>20, j.packs.Memory()>>20).
				WithHint("raise --memory, or bring the rows of such a key together before the join")
		}
		if sum > 0 && sum+n > room {
			j.parts, sum = j.parts+1, 0
		}
		j.of[slot], sum = j.parts, sum+n
	}
	j.parts++
	return nil
}

// tableRow is how many bytes a row takes in a table beside itself: its hash, and its places in the index and
// in a chain.
const tableRow = 28

// eachOfPart calls do with each row and its partition.
func eachOfPart[K comparable, V, W, U, X any](j *partsJoin[K, V, W, U], hash row.Hasher, rows Rows[row.Pair[K, X]],
	do func(part int, row *row.Pair[K, X]) error) error {
	var hashes []uint64
	return rows(func(rows []row.Pair[K, X]) error {
		hashes = row.Hashes(hash, rows, hashes)
		for i := range rows {
			if err := do(j.of[slotOf(hashes[i])], &rows[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// keyOnly is a row of the left without its value.
type keyOnly[K comparable] = row.Pair[K, bool]

// keysOf writes the keys of the left by partitions.
func (j *partsJoin[K, V, W, U]) keysOf(left Rows[row.Pair[K, V]]) (*shuffle.Output, row.Codec[keyOnly[K]], error) {
	codec, err := row.PairCodecOf[K, bool](j.p.Left.Key)
	if err != nil {
		return nil, codec, fault.New(fault.Internal, "join", "keys of the left", err)
	}
	out := NewWriter(j.packs, codec, j.parts)
	out.ToFile()
	defer out.Close()
	err = eachOfPart(j, j.p.Left.Hash, left,
		func(part int, r *row.Pair[K, V]) error { return out.Add(part, &keyOnly[K]{Key: r.Key}) })
	if err != nil {
		return nil, codec, err
	}
	keys, err := out.Finish()
	return keys, codec, err
}

// matchRows are the matches of a row of the left: the same as those of the row before it in its partition, or
// others.
type matchRows[W any] struct {
	Same   bool
	Values []W
}

// find writes the matches of the rows of the left, partition by partition.
func (j *partsJoin[K, V, W, U]) find(keys *shuffle.Output, codec row.Codec[keyOnly[K]]) (*shuffle.Output, error) {
	values, err := row.CodecOf[matchRows[W]]()
	if err != nil {
		return nil, fault.New(fault.Internal, "join", "rows of the right", err)
	}
	out := NewWriter(j.packs, values, j.parts)
	out.ToFile()
	defer out.Close()
	for part := range j.parts {
		t := NewJoinTable(j.p.Right, 0)
		if err := readPart(j.right, part, j.p.Right.Row, t.AddAll); err != nil {
			return nil, err
		}
		t.Build(1)
		if err := findIn(t, part, keys, codec, out); err != nil {
			return nil, err
		}
	}
	return out.Finish()
}

// findIn writes the matches of the keys of a partition in a table.
func findIn[K comparable, W any](t *JoinTable[K, W], part int, keys *shuffle.Output, row row.Codec[keyOnly[K]],
	out *Writer[matchRows[W]]) error {
	var sc scratch
	var made matchRows[W]
	last := noPlace
	return readPart(keys, part, row, func(rows []keyOnly[K]) error {
		for ; len(rows) > 0; rows = rows[min(probed, len(rows)):] {
			find(t, &sc, rows[:min(probed, len(rows))])
			for _, at := range sc.places {
				made.Same, made.Values = at == last && at != noPlace, made.Values[:0]
				if last = at; !made.Same {
					of := t.matches(at)
					for w := of.Next(); w != nil; w = of.Next() {
						made.Values = append(made.Values, *w)
					}
				}
				if err := out.Add(part, &made); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// emit reads the left once more, with the matches of each row.
func (j *partsJoin[K, V, W, U]) emit(found *shuffle.Output, left Rows[row.Pair[K, V]], yield func([]U) error) error {
	readers := make([]*matchReader[W], j.parts)
	defer func() {
		for _, r := range readers {
			r.close()
		}
	}()
	for part := range readers {
		var err error
		if readers[part], err = openMatches[W](found, part); err != nil {
			return err
		}
	}
	out := row.NewBatcher(yield)
	var hashes []uint64
	var made []U
	err := left(func(rows []row.Pair[K, V]) error {
		hashes = row.Hashes(j.p.Left.Hash, rows, hashes)
		for i := range rows {
			values, err := readers[j.of[slotOf(hashes[i])]].next()
			if err != nil {
				return err
			}
			made = j.p.Emit(made[:0], rows[i].Key, rows[i].Value, Matches[W]{values: values})
			for k := range made {
				if err := out.Add(made[k]); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return cmp.Or(err, out.Flush())
}

// matchReader reads the matches of a partition.
type matchReader[W any] struct {
	in     io.ReadCloser
	blocks *shuffle.BlockReader
	codec  row.Codec[matchRows[W]]
	block  []byte
	raw    []byte // left of the block
	text   row.Arena
	last   []W
}

func openMatches[W any](found *shuffle.Output, part int) (*matchReader[W], error) {
	in, err := found.Open(shuffle.Span{From: part, Through: part + 1})
	if err != nil {
		return nil, err
	}
	values, err := row.CodecOf[matchRows[W]]()
	return &matchReader[W]{in: in, blocks: shuffle.NewBlockReader(in), codec: values}, err
}

// next returns the matches of the next row; they may be kept.
func (r *matchReader[W]) next() (_ []W, err error) {
	if len(r.raw) == 0 {
		block, err := r.blocks.Next()
		if errors.Is(err, io.EOF) {
			err = fault.Newf(fault.Internal, "join", "rows of the left", "there are more than there were before")
		}
		if err != nil {
			return nil, err
		}
		r.block = append(r.block[:0], block...)
		r.raw = r.block
	}
	var found matchRows[W]
	if r.raw, err = r.codec.Parse(r.raw, &found, &r.text); err == nil && !found.Same {
		r.last = found.Values
	}
	return r.last, row.Corrupt(err)
}

func (r *matchReader[W]) close() {
	if r != nil {
		r.in.Close()
	}
}

// JoinOnce does what InParts does, for a left that can be read only once: it is written to a file, or, where its rows
// would not read back the same, joined as many rows at a time as fit into memory.
func (p *HashJoin[K, V, W, U]) JoinOnce(packs runner.TaskContext, right Rows[row.Pair[K, W]],
	left Rows[row.Pair[K, V]], yield func([]U) error) error {
	if row.RoundTrips(reflect.TypeFor[row.Pair[K, V]]()) {
		again, done, err := spooled(packs, p.Left.Row, left)
		if err != nil {
			return err
		}
		defer done()
		return p.InParts(packs, right, again, yield)
	}
	j, err := p.cutRight(packs, right)
	if err != nil {
		return err
	}
	defer j.close()
	return someAtATime(packs.Memory()/2, p.Left.Row, left, func(some []row.Pair[K, V]) error {
		return j.join(func(rows func([]row.Pair[K, V]) error) error { return row.InBatches(some, rows) }, yield)
	})
}

// someAtATime yields rows, as many at a time as take about the given number of bytes.
func someAtATime[T any](most int, row row.Codec[T], rows Rows[T], yield func([]T) error) error {
	var some []T
	var raw []byte
	bytes := 0
	err := rows(func(rows []T) error {
		for i := range rows {
			raw = row.Append(raw[:0], &rows[i])
			some, bytes = append(some, rows[i]), bytes+len(raw)+2*int(unsafe.Sizeof(rows[i]))
			if bytes < most {
				continue
			}
			if err := yield(some); err != nil {
				return err
			}
			clear(some)
			some, bytes = some[:0], 0
		}
		return nil
	})
	if err != nil || len(some) == 0 {
		return err
	}
	return yield(some)
}

// HashJoin joins rows by looking those of the left up in hash tables of the right.
type HashJoin[K comparable, V, W, U any] struct {
	Left  Keyed[K, V]
	Right Keyed[K, W]
	Emit  Emitter[K, V, W, U]
}

// Emitter appends the joined rows of one row of the left and its matches.
type Emitter[K comparable, V, W, U any] func(out []U, key K, v V, matches Matches[W]) []U

// probed is how many rows are looked up at a time: what the first access has brought into the cache is there
// at the second.
const probed = 256

// Probe joins the rows of the left with those of a table.
func (p *HashJoin[K, V, W, U]) Probe(t *JoinTable[K, W], left func(func([]row.Pair[K, V]) error) error,
	yield func([]U) error) error {
	var sc scratch
	most := row.BatchSize[U]()
	out := make([]U, 0, most)
	err := left(func(rows []row.Pair[K, V]) error {
		for ; len(rows) > 0; rows = rows[min(probed, len(rows)):] {
			now := rows[:min(probed, len(rows))]
			find(t, &sc, now)
			for i := range now {
				if out = p.Emit(out, now[i].Key, now[i].Value, t.matches(sc.places[i])); len(out) >= most {
					if err := yield(out); err != nil {
						return err
					}
					out = out[:0]
				}
			}
		}
		return nil
	})
	if err != nil || len(out) == 0 {
		return err
	}
	return yield(out)
}
