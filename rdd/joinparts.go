package rdd

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"unsafe"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/storage"
)

// eachRows hands out rows, the same ones in the same order each time.
type eachRows[T any] func(yield func([]T) error) error

// partsJoin joins sides of which the right does not fit into a task's memory, and hands rows
// out in the order of the left, as probing a table of the whole right does: which of the
// two is done never shows. The right is taken a part of its hashes at a time; the left
// is read once for each, and what its rows have found is written down in their
// order, and once more at the end, when every row takes up what it has found.
type partsJoin[K comparable, V, W, U any] struct {
	p     *joinPlan[K, V, W, U]
	packs runner.Packs
	of    [joinSlots]int // part of each slot of hashes
	parts int
}

// joinSlots is how finely hashes are told apart in parts.
const joinSlots = 1 << 10

func slotOf(hash uint64) int { return int(hash * 0x9e3779b97f4a7c15 >> (64 - 10)) }

func (p *joinPlan[K, V, W, U]) inParts(ctx context.Context, right eachRows[Pair[K, W]], left eachRows[Pair[K, V]], yield func([]U) error) error {
	env, err := envOf(ctx)
	if err != nil {
		return err
	}
	j := &partsJoin[K, V, W, U]{p: p, packs: env.packs}
	if err := j.cut(right); err != nil {
		return err
	}
	found, err := j.find(right, left)
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
	return err
}

// tableRow is what a row takes in a table beside itself: its hash, and its places in the index and in
// a chain.
const tableRow = 28

// find writes down what the rows of the left find, part by part.
func (j *partsJoin[K, V, W, U]) find(right eachRows[Pair[K, W]], left eachRows[Pair[K, V]]) (*storage.Buckets, error) {
	values, err := codecOf[[]W]()
	if err != nil {
		return nil, fault.New(fault.Internal, "join", "rows of the right", err)
	}
	out := newSpreader(j.packs, values, j.parts)
	out.ToFile()
	defer out.Close()
	for part := range j.parts {
		t := newLookup(j.p.co.r, 0)
		if err := filtered(j, part, j.p.co.r.hash, right, t.addAll); err != nil {
			return nil, err
		}
		t.build(1)
		var sc scratch
		var matches []W
		err := filtered(j, part, j.p.co.l.hash, left, func(rows []Pair[K, V]) error {
			find(t, &sc, rows)
			for i := range rows {
				matches = matches[:0]
				of := t.matches(sc.places[i])
				for w := of.take(); w != nil; w = of.take() {
					matches = append(matches, *w)
				}
				if err := out.add(part, &matches); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out.Finish()
}

// filtered hands out the rows of one part.
func filtered[K comparable, V, W, U, X any](j *partsJoin[K, V, W, U], part int, hash hasher, rows eachRows[Pair[K, X]], yield func([]Pair[K, X]) error) error {
	var hashes []uint64
	var some []Pair[K, X]
	return rows(func(rows []Pair[K, X]) error {
		hashes = hashOf(hash, rows, hashes)
		some = some[:0]
		for i := range rows {
			if j.of[slotOf(hashes[i])] == part {
				some = append(some, rows[i])
			}
		}
		for list := some; len(list) > 0; list = list[min(probed, len(list)):] {
			if err := yield(list[:min(probed, len(list))]); err != nil {
				return err
			}
		}
		return nil
	})
}

// emit reads the left once more, and what each of its rows has found.
func (j *partsJoin[K, V, W, U]) emit(found *storage.Buckets, left eachRows[Pair[K, V]], yield func([]U) error) error {
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
	blocks *storage.BlockReader
	codec  codec[[]W]
	raw    []byte
	text   arena
}

func openFound[W any](found *storage.Buckets, part int) (*foundReader[W], error) {
	in, err := found.Open(storage.Span{From: part, Through: part + 1})
	if err != nil {
		return nil, err
	}
	values, err := codecOf[[]W]()
	return &foundReader[W]{in: in, blocks: storage.NewBlockReader(in), codec: values}, err
}

// next is what the next row has found; it may be kept.
func (r *foundReader[W]) next() (values []W, err error) {
	if len(r.raw) == 0 {
		block, err := r.blocks.Next()
		if errors.Is(err, io.EOF) {
			err = fault.Newf(fault.Internal, "join", "rows of the left", "there are more than there were before")
		}
		if err != nil {
			return nil, err
		}
		r.raw = slices.Clone(block)
	}
	r.raw, err = r.codec.parse(r.raw, &values, &r.text)
	return values, corruptRow(err)
}

func (r *foundReader[W]) close() {
	if r != nil {
		r.in.Close()
	}
}

// again makes rows that can be handed out only once ones that can be read as often as is
// needed, the same in every respect: on disk, or, where a codec would change them, in memory.
func again[T any](packs runner.Packs, rows eachRows[T]) (_ eachRows[T], done func(), err error) {
	c, err := codecOf[T]()
	if err == nil && comesBackTheSame(reflect.TypeFor[T]()) {
		return spooled(packs, c, rows)
	}
	var kept []T
	err = rows(func(rows []T) error { kept = append(kept, rows...); return nil })
	return func(yield func([]T) error) error { return inBatches(kept, yield) }, func() {}, err
}

// spooled writes rows down that can be handed out only once.
func spooled[T any](packs runner.Packs, row codec[T], rows eachRows[T]) (again eachRows[T], done func(), err error) {
	out := newSpreader(packs, row, 1)
	out.ToFile()
	defer out.Close()
	err = rows(func(rows []T) error {
		for i := range rows {
			if err := out.add(0, &rows[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	b, err := out.Finish()
	if err != nil {
		return nil, nil, err
	}
	return func(yield func([]T) error) error { return readSpooled(b, row, yield) }, b.Remove, nil
}

// readSpooled hands out what spooled has written.
func readSpooled[T any](b *storage.Buckets, row codec[T], yield func([]T) error) error {
	in, err := b.Open(storage.Span{From: 0, Through: 1})
	if err != nil {
		return err
	}
	defer in.Close()
	var text arena
	var rows []T
	blocks := storage.NewBlockReader(in)
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
