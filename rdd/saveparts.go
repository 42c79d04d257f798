package rdd

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// partName is what a part of a saved dataset is called.
const partName = "part-%05d"

// SaveOption is an option of saving a dataset.
type SaveOption func(*saveOptions)

type saveOptions struct{ overwrite, durable bool }

// Durable makes a save wait until the disk has all of it, so that a loss of power leaves
// what was there before, or what was saved, whole. It takes as long as the disk
// needs for all bytes.
func Durable() SaveOption { return func(o *saveOptions) { o.durable = true } }

// Overwrite lets a save replace a directory that an earlier save has written; one with
// anything else in it is refused. What was there can be read until what replaces it
// can.
func Overwrite() SaveOption { return func(o *saveOptions) { o.overwrite = true } }

// SaveText writes every row as a line: a string as it is, a Pair as key, tab
// and value, anything else as fmt prints it. One file a partition,
// part-00000 and so on, and the marker _SUCCESS, which lists them: the directory appears
// at once when all are written, and a save that was killed leaves what was there
// before. The directory has to be the
// same for all executors; that it exists is an error without Overwrite.
func SaveText[T any](ds Dataset[T], dir string, options ...SaveOption) Action[int64] {
	if lines, ok := any(ds).(Dataset[string]); ok {
		return saveParts(lines, "save-text", dir, options, asLines(func(w *bufio.Writer, row *string) error {
			_, err := w.WriteString(*row)
			return err
		}))
	}
	return saveParts(ds, "save-text", dir, options, asLines(func(w *bufio.Writer, r *T) error {
		_, err := w.WriteString(row.TextLine(*r))
		return err
	}))
}

// SaveJSONLines does what SaveText does, with every row as JSON.
func SaveJSONLines[T any](ds Dataset[T], dir string, options ...SaveOption) Action[int64] {
	return saveParts(ds, "save-json-lines", dir, options, asLines(func(w *bufio.Writer, r *T) error {
		raw, err := json.Marshal(r)
		if err != nil {
			return fault.New(fault.UserCode, "encode", row.TypeName[T](), err)
		}
		_, err = w.Write(raw)
		return err
	}))
}

// sink writes the rows of a partition to a file.
type sink[T any] interface {
	Add(rows []T) error
	Close() error
}

// lineSink writes each row as a line.
type lineSink[T any] struct {
	w     *bufio.Writer
	write func(*bufio.Writer, *T) error
}

func asLines[T any](write func(*bufio.Writer, *T) error) func(io.Writer) (sink[T], error) {
	return func(w io.Writer) (sink[T], error) {
		return &lineSink[T]{bufio.NewWriterSize(w, saveBuffer), write}, nil
	}
}

const saveBuffer = 256 << 10

func (l *lineSink[T]) Add(rows []T) error {
	for i := range rows {
		if err := l.write(l.w, &rows[i]); err != nil {
			return err
		}
		if err := l.w.WriteByte('\n'); err != nil {
			return err
		}
	}
	return nil
}

func (l *lineSink[T]) Close() error { return l.w.Flush() }

// stagedPart is what a task has written: under a name that no other attempt
// has, until the save is committed.
type stagedPart struct {
	Name string
	Rows int64
	Size int64
}

func saveParts[T any](ds Dataset[T], kind, dir string, options []SaveOption,
	open func(io.Writer) (sink[T], error)) Action[int64] {
	var o saveOptions
	for _, set := range options {
		set(&o)
	}
	if dir == "" {
		ds.g.fail("%s: no directory is given", kind)
	}
	dir = absolute(dir)
	task := func(ctx context.Context, part int, _ []byte, _ runner.TaskContext) ([]byte, error) {
		env, err := envOf(ctx)
		if err != nil {
			return nil, err
		}
		var staged stagedPart
		staged.Name, staged.Size, err = writePart(stagedDir(dir), fmt.Sprintf(partName+"-%d-*", part, env.args.Attempt),
			o.durable, func(w io.Writer) error {
				to, err := open(w)
				if err != nil {
					return err
				}
				err = ds.each(ctx, part, func(rows []T) error {
					staged.Rows += int64(len(rows))
					return to.Add(rows)
				})
				return cmp.Or(err, to.Close())
			})
		if err != nil {
			return nil, err
		}
		return cborMode.Marshal(staged)
	}
	a := action(ds, kind, task, func(ctx context.Context, s *Session, id int) (int64, error) {
		s.saves[id]++
		owner := ownerOf(s, id)
		if rows, done := savedBy(dir, owner); done {
			return rows, saveError(dir, disk.RemoveAll(stagedDir(dir)))
		}
		if err := stage(dir, owner, o); err != nil {
			return 0, err
		}
		raws, err := callAll(ctx, s, id, ds.parts)
		if err != nil {
			disk.RemoveAll(stagedDir(dir))
			return 0, err
		}
		return commitParts(dir, owner, raws, o)
	})
	ds.g.nodes[a.id].detail = dir
	return a
}

// absolute returns a path that means the same to executors, which may run elsewhere.
func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

func saveError(path string, err error) error {
	if err == nil {
		return nil
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fault.New(fault.NoResources, "save to", path, err)
}

// writePart writes a file of a name that no other attempt has.
func writePart(dir, pattern string, durable bool, fill func(io.Writer) error) (name string, size int64, err error) {
	f, err := disk.CreateTemp(dir, pattern)
	if err != nil {
		return "", 0, saveError(dir, err)
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = saveError(f.Name(), cerr)
		}
		if err != nil {
			disk.Remove(f.Name())
		}
	}()
	if err = f.Chmod(0o644); err == nil {
		err = fill(f)
	}
	if err == nil {
		size, err = f.Seek(0, io.SeekEnd)
	}
	if err == nil && durable {
		err = f.Sync() // the marker must not be on the disk before it
	}
	return filepath.Base(f.Name()), size, writeError(f.Name(), err)
}

// writeError returns of an error of the file system where it was.
func writeError(path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return saveError(path, err)
	}
	return err
}
