package rdd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"unsafe"

	"github.com/google/uuid"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/exec"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/objects"
	"github.com/volley-engine/volley/storage/saved"
	"github.com/volley-engine/volley/storage/shuffle"
)

// Level says where a persisted dataset is kept.
type Level int

// Memory keeps rows ready for use in the memory of who reads them, as far as
// there is room, and in their encoding besides; Disk in their encoding only.
const (
	Memory Level = iota
	Disk
)

// Cache keeps what a dataset comes to, so that it is computed once: Persist at
// the level Memory with one copy.
func Cache[T any](ds Dataset[T]) Dataset[T] { return Persist(ds, Memory, 1) }

// Persist keeps the partitions of a dataset where they are first computed, and
// copies of them on other executors, if there are any: a partition is computed
// again only when all copies are lost. Nothing moves but the copies; order is
// kept.
func Persist[T any](ds Dataset[T], level Level, copies int) Dataset[T] {
	if copies < 1 {
		ds.g.fail("persist: %d copies are too few", copies)
	}
	return kept(ds, "persist", fmt.Sprint(level, copies), level, func(d *shuffleDecl) { d.copies = copies })
}

// Checkpoint keeps a dataset in a directory that all executors reach, and cuts
// its lineage: once it is written, what it was computed from is not needed any
// more, whichever executors are lost. The directory must be new or empty.
func Checkpoint[T any](ds Dataset[T], dir string) Dataset[T] {
	if dir == "" {
		ds.g.fail("checkpoint: no directory is given")
	}
	return kept(ds, "checkpoint", dir, Memory, func(d *shuffleDecl) { d.dir = files.Absolute(dir) })
}

// kept returns a dataset whose partitions are written once, as the outputs of a
// shuffle that moves nothing.
func kept[T any](ds Dataset[T], kind, detail string, level Level, set func(*shuffleDecl)) Dataset[T] {
	row, err := row.CodecOf[T]()
	if err != nil {
		ds.g.fail("%s: the rows cannot be encoded: %v", kind, err)
	}
	d := &shuffleDecl{maps: ds.parts, narrow: true}
	set(d)
	d.write = func(ctx context.Context, part int, packs runner.TaskContext) (*written, error) {
		return writeKept(ctx, ds, part, row, packs, d.dir)
	}
	id := keep[T](ds.g, kind, detail, ds.id, d)
	return Dataset[T]{g: ds.g, id: id, spread: ds.spread, parts: ds.parts,
		produce: func(ctx context.Context, part int, yield func([]T) error) error {
			if level == Memory {
				return readKept(ctx, id, part, row, yield)
			}
			return readShuffle(ctx, id, part, row, yield)
		}}
}

// keep adds the shuffle of a dataset that is kept, and the node that copies what
// its tasks write.
func keep[T any](g *Graph, kind, detail string, input int, d *shuffleDecl) int {
	id := g.shuffle(kind, row.TypeName[T](), detail, input, d)
	if d.copies > 1 {
		d.copier = g.add(node{kind: kind + "-copy", typ: row.TypeName[T](), task: copyOutput(id)})
	}
	if d.dir != "" {
		g.node(id).settle = func(context.Context, *Session) ([]int, error) {
			return []int{}, saved.Empty("checkpoint to", d.dir)
		}
	}
	return id
}

// writeKept writes a partition, to a directory of its own where there is one.
func writeKept[T any](ctx context.Context, ds Dataset[T], part int, row row.Codec[T], packs runner.TaskContext,
	dir string) (*written, error) {
	if dir == "" {
		return writeWholePart(ctx, ds, part, row, packs)
	}
	if objects.Is(dir) {
		return writeObject(ctx, ds, part, row, packs, dir)
	}
	out := exec.WriterTo(shuffle.NewWriter(dir, 1, packs.Memory()/8, -1), row)
	defer out.Close()
	return writeAll(ctx, ds, part, out)
}

// writeObject writes a partition to a file, and then to an object.
func writeObject[T any](ctx context.Context, ds Dataset[T], part int, row row.Codec[T], packs runner.TaskContext,
	dir string) (*written, error) {
	w := packs.NewMapOutput(1)
	w.ToFile()
	out := exec.WriterTo(w, row)
	defer out.Close()
	made, err := writeAll(ctx, ds, part, out)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("rows-%05d-%s", part, uuid.NewString())
	return made, made.output.MoveTo(ctx, objects.Join(dir, name))
}

// copyOutput returns the task that copies an output of a node's map task to where it
// runs.
func copyOutput(node int) taskFunc {
	return func(ctx context.Context, part int, args []byte, packs runner.TaskContext) ([]byte, error) {
		var o mapOutput
		if err := cborReading.Unmarshal(args, &o); err != nil {
			return nil, err
		}
		key := shuffle.Key{Node: node, Map: part, Attempt: o.Attempt}
		in, err := packs.OpenMapOutput(ctx, plan.ExecutorID(o.Holders[0]), key, shuffle.Span{From: 0, Through: 1})
		if err != nil {
			return nil, err
		}
		defer in.Close()
		w := packs.NewMapOutput(1)
		defer w.Close()
		for r := shuffle.NewBlockReader(in); ; {
			block, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			room := w.Room(0)
			*room = append(*room, block...)
			if err := w.Flush(0); err != nil {
				return nil, err
			}
		}
		b, err := w.Finish()
		if err != nil {
			return nil, err
		}
		holder := string(packs.KeepShuffle(key, b))
		if slices.Contains(o.Holders, holder) {
			holder = "" // no other executor holds it
		}
		return cborMode.Marshal(holder)
	}
}

// readKept reads a partition from the memory of this process, into which it goes
// at the first time, if it is not too large.
func readKept[T any](ctx context.Context, id, part int, codec row.Codec[T], yield func([]T) error) error {
	env, err := envOf(ctx)
	if err != nil {
		return err
	}
	a, told := env.args.Shuffles[id][part]
	if !told {
		return errNoShuffle()
	}
	size := 2*a.Bytes + a.Rows*int64(unsafe.Sizeof(*new(T)))
	if size > int64(env.packs.Memory())/2 {
		return readShuffle(ctx, id, part, codec, yield)
	}
	rows, err := env.packs.Shared(fmt.Sprint("kept ", id, " ", part), fmt.Sprint(attemptsOf(a)), size,
		func() (any, error) {
			all := make([]T, 0, a.Rows)
			err := readShuffleInto(ctx, id, part, codec, &row.Arena{Large: a.Bytes > 2*row.LargePiece},
				func(rows []T) error { all = append(all, rows...); return nil })
			return all, err
		})
	if err != nil {
		return err
	}
	return row.InBatches(rows.([]T), yield)
}

// attemptsOf returns what tells outputs apart that have been made again.
func attemptsOf(a shuffleArgs) string { return string(a.Outputs) }

// Unpersist gives up what a persisted dataset has kept; it is computed again when
// it is needed.
func Unpersist[T any](s *Session, ds Dataset[T]) error {
	if d := s.g.node(ds.id).shuffle; d == nil || !d.narrow {
		return fmt.Errorf("unpersist %s: it is not persisted", s.g.name(ds.id))
	}
	_, leave, _ := s.enter(context.Background(), false)
	defer leave()
	s.drop(ds.id)
	return nil
}
