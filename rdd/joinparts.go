package rdd

import (
	"context"
	"errors"
	"io"
	"reflect"
	"unsafe"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/storage/shuffle"
)

// eachRows hands out rows, the same ones in the same order each time.
type eachRows[T any] func(yield func([]T) error) error

// partsJoin joins sides of which the right does not fit into a task's memory, and hands rows
// out in the order of the left, as probing a table of the whole right does: which of the
// two is done never shows. The rows of the right are written down by parts of their hashes,
// and the keys of the left, too; part by part, what each key finds is written down in the
// order of the left, whose rows are read once more at the end, and take up what they have
// found.
type partsJoin[K comparable, V, W, U any] struct {
	p     *joinPlan[K, V, W, U]
	packs runner.TaskContext
	of    [joinSlots]int // part of each slot of hashes
	parts int
	right *shuffle.Output // by part
}

// joinSlots is how finely hashes are told apart in parts.
const joinSlots = 1 << 10

func slotOf(hash uint64) int { return int(hash * 0x9e3779b97f4a7c15 >> (64 - 10)) }

// inParts joins a left that can be read twice.
func (p *joinPlan[K, V, W, U]) inParts(ctx context.Context, right eachRows[Pair[K, W]], left eachRows[Pair[K, V]],
	yield func([]U) error) error {
	j, err := p.cutRight(ctx, right)
	if err != nil {
		return err
	}
	defer j.close()
	return j.join(left, yield)
}

// cutRight writes the right down by parts, each of which fits into memory.
func (p *joinPlan[K, V, W, U]) cutRight(ctx context.Context, right eachRows[Pair[K, W]]) (*partsJoin[K, V, W, U],
	error) {
	env, err := envOf(ctx)
	if err != nil {
		return nil, err
	}
	j := &partsJoin[K, V, W, U]{p: p, packs: env.packs}
	if err := j.cut(right); err != nil {
		return nil, err
	}
	out := newSpreader(j.packs, p.co.r.row, j.parts)
	out.ToFile()
	defer out.Close()
	err = eachOfPart(j, p.co.r.hash, right, func(part int, row *Pair[K, W]) error { return out.add(part, row) })
	if err != nil {
		return nil, err
	}
	j.right, err = out.Finish()
	return j, err
}

func (j *partsJoin[K, V, W, U]) close() { j.right.Remove() }

// join hands out the rows that some of the left's make.
func (j *partsJoin[K, V, W, U]) join(left eachRows[Pair[K, V]], yield func([]U) error) error {
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

// cut measures the right, and says which slots of hashes are taken together.
func (j *partsJoin[K, V, W, U]) cut(right eachRows[Pair[K, W]]) error {
	var bytes [joinSlots]int
	var hashes []uint64
	var raw []byte
	c := j.p.co.r
	err := right(func(rows []Pair[K, W]) error {
		hashes = hashOf(c.hash, rows, hashes)
		for i := range rows {
			raw = c.row.append(raw[:0], &rows[i])
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

// tableRow is what a row takes in a table beside itself: its hash, and its places in the index and in
// a chain.
const tableRow = 28

// eachOfPart says of each row which part it belongs to.
func eachOfPart[K comparable, V, W, U, X any](j *partsJoin[K, V, W, U], hash hasher, rows eachRows[Pair[K, X]],
	do func(part int, row *Pair[K, X]) error) error {
	var hashes []uint64
	return rows(func(rows []Pair[K, X]) error {
		hashes = hashOf(hash, rows, hashes)
		for i := range rows {
			if err := do(j.of[slotOf(hashes[i])], &rows[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// keyOnly is a row of the left without its value.
type keyOnly[K comparable] = Pair[K, bool]

// keysOf writes the keys of the left down by parts.
func (j *partsJoin[K, V, W, U]) keysOf(left eachRows[Pair[K, V]]) (*shuffle.Output, codec[keyOnly[K]], error) {
	row, err := pairCodecOf[K, bool](j.p.co.l.key)
	if err != nil {
		return nil, row, fault.New(fault.Internal, "join", "keys of the left", err)
	}
	out := newSpreader(j.packs, row, j.parts)
	out.ToFile()
	defer out.Close()
	err = eachOfPart(j, j.p.co.l.hash, left,
		func(part int, r *Pair[K, V]) error { return out.add(part, &keyOnly[K]{Key: r.Key}) })
	if err != nil {
		return nil, row, err
	}
	keys, err := out.Finish()
	return keys, row, err
}

// foundRows are the rows that one of the left has found: those that the one before it in its
// part has, or others.
type foundRows[W any] struct {
	Same   bool
	Values []W
}

// find writes down what the rows of the left find, part by part.
func (j *partsJoin[K, V, W, U]) find(keys *shuffle.Output, row codec[keyOnly[K]]) (*shuffle.Output, error) {
	values, err := codecOf[foundRows[W]]()
	if err != nil {
		return nil, fault.New(fault.Internal, "join", "rows of the right", err)
	}
	out := newSpreader(j.packs, values, j.parts)
	out.ToFile()
	defer out.Close()
	for part := range j.parts {
		t := newJoinTable(j.p.co.r, 0)
		if err := readPart(j.right, part, j.p.co.r.row, t.addAll); err != nil {
			return nil, err
		}
		t.build(1)
		if err := findIn(t, part, keys, row, out); err != nil {
			return nil, err
		}
	}
	return out.Finish()
}

// findIn writes down what the keys of a part find in a table.
func findIn[K comparable, W any](t *lookup[K, W], part int, keys *shuffle.Output, row codec[keyOnly[K]],
	out *spreader[foundRows[W]]) error {
	var sc scratch
	var made foundRows[W]
	last := noPlace
	return readPart(keys, part, row, func(rows []keyOnly[K]) error {
		for ; len(rows) > 0; rows = rows[min(probed, len(rows)):] {
			find(t, &sc, rows[:min(probed, len(rows))])
			for _, at := range sc.places {
				made.Same, made.Values = at == last && at != noPlace, made.Values[:0]
				if last = at; !made.Same {
					of := t.matches(at)
					for w := of.take(); w != nil; w = of.take() {
						made.Values = append(made.Values, *w)
					}
				}
				if err := out.add(part, &made); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// emit reads the left once more, and what each of its rows has found.
func (j *partsJoin[K, V, W, U]) emit(found *shuffle.Output, left eachRows[Pair[K, V]], yield func([]U) error) error {
	readers := make([]*foundReader[W], j.parts)
	defer func() {
		for _, r := range readers {
			r.close()
		}
	}()
	for part := range readers {
		var err error
		if readers[part], err = openFound[W](found, part); err != nil {
			return err
		}
	}
	out := newBatcher(yield)
	var hashes []uint64
	var made []U
	err := left(func(rows []Pair[K, V]) error {
		hashes = hashOf(j.p.co.l.hash, rows, hashes)
		for i := range rows {
			values, err := readers[j.of[slotOf(hashes[i])]].next()
			if err != nil {
				return err
			}
			made = j.p.emit(made[:0], rows[i].Key, rows[i].Value, rowsOf[W]{values: values})
			for k := range made {
				if err := out.add(made[k]); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return firstError(err, out.flush())
}

// foundReader reads what the rows of a part have found.
type foundReader[W any] struct {
	in     io.ReadCloser
	blocks *shuffle.BlockReader
	codec  codec[foundRows[W]]
	block  []byte
	raw    []byte // left of the block
	text   arena
	last   []W
}

func openFound[W any](found *shuffle.Output, part int) (*foundReader[W], error) {
	in, err := found.Open(shuffle.Span{From: part, Through: part + 1})
	if err != nil {
		return nil, err
	}
	values, err := codecOf[foundRows[W]]()
	return &foundReader[W]{in: in, blocks: shuffle.NewBlockReader(in), codec: values}, err
}

// next is what the next row has found; it may be kept.
func (r *foundReader[W]) next() (_ []W, err error) {
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
	var row foundRows[W]
	if r.raw, err = r.codec.parse(r.raw, &row, &r.text); err == nil && !row.Same {
		r.last = row.Values
	}
	return r.last, corruptRow(err)
}

func (r *foundReader[W]) close() {
	if r != nil {
		r.in.Close()
	}
}

// joinOnce joins a left that can be read only once with a right in parts: it is written down,
// or, where a codec would change its rows, taken as many rows at a time as fit into memory.
func (p *joinPlan[K, V, W, U]) joinOnce(ctx context.Context, packs runner.TaskContext, right eachRows[Pair[K, W]],
	left eachRows[Pair[K, V]], yield func([]U) error) error {
	if comesBackTheSame(reflect.TypeFor[Pair[K, V]]()) {
		again, done, err := spooled(packs, p.co.l.row, left)
		if err != nil {
			return err
		}
		defer done()
		return p.inParts(ctx, right, again, yield)
	}
	j, err := p.cutRight(ctx, right)
	if err != nil {
		return err
	}
	defer j.close()
	return someAtATime(packs.Memory()/2, p.co.l.row, left, func(some []Pair[K, V]) error {
		return j.join(func(rows func([]Pair[K, V]) error) error { return inBatches(some, rows) }, yield)
	})
}

// someAtATime hands rows on, as many at a time as take about the given number of bytes.
func someAtATime[T any](most int, row codec[T], rows eachRows[T], yield func([]T) error) error {
	var some []T
	var raw []byte
	bytes := 0
	err := rows(func(rows []T) error {
		for i := range rows {
			raw = row.append(raw[:0], &rows[i])
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

// spooled writes rows down that can be handed out only once.
func spooled[T any](packs runner.TaskContext, row codec[T], rows eachRows[T]) (again eachRows[T], done func(),
	err error) {
	out := newSpreader(packs, row, 1)
	out.ToFile()
	defer out.Close()
	err = rows(func(rows []T) error { return out.addAll(0, rows) })
	if err != nil {
		return nil, nil, err
	}
	return out.again()
}

// readPart hands out the rows of a part that were written down.
func readPart[T any](b *shuffle.Output, part int, row codec[T], yield func([]T) error) error {
	in, err := b.Open(shuffle.Span{From: part, Through: part + 1})
	if err != nil {
		return err
	}
	defer in.Close()
	var text arena
	var rows []T
	blocks := shuffle.NewBlockReader(in)
	for {
		block, err := blocks.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			rows, err = row.parseAll(block, rows[:0], &text)
			err = corruptRow(err)
		}
		if err != nil {
			return err
		}
		if err := yield(rows); err != nil {
			return err
		}
	}
}
