package rdd

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/saved"
)

// SaveOption is an option of saving a dataset.
type SaveOption func(*saveOptions)

type saveOptions struct {
	saved.Options
	codec  string
	by     []string
	header string // "" is none
}

// Header has each file of a SaveText begin with a line, such as the names of columns.
func Header(line string) SaveOption { return func(o *saveOptions) { o.header = line } }

// Append lets a save add its rows to a directory that an earlier save has written: files that are there stay as they
// are, and all appear at once, in the order of the saves.
func Append() SaveOption { return func(o *saveOptions) { o.Append = true } }

// Compressed compresses what is saved: text, CSV and JSON by "gzip" or "zstd", Parquet by "zstd" (the default), "gzip",
// "snappy" or "none", Arrow by "zstd" (the default), "lz4" or "none".
func Compressed(codec string) SaveOption { return func(o *saveOptions) { o.codec = codec } }

// PartitionedBy writes the rows of each value of some columns into a directory named after it, such as
// country=DE/year=2026, as Spark and Hive do. The columns are not in the files (but in those of JSON); the readers
// take them from the directories. An empty text comes back as it was, or as a null where there may be nulls.
func PartitionedBy(columns ...string) SaveOption { return func(o *saveOptions) { o.by = columns } }

// Durable makes a save wait until the disk has all of it, so that a loss of power leaves
// what was there before, or what was saved, whole. It takes as long as the disk
// needs for all bytes.
func Durable() SaveOption { return func(o *saveOptions) { o.Durable = true } }

// Overwrite lets a save replace a directory that an earlier save has written; one with
// anything else in it is refused. What was there can be read until what replaces it
// can.
func Overwrite() SaveOption { return func(o *saveOptions) { o.Overwrite = true } }

// SaveText writes every row as a line: a string as it is, a Pair as key, tab
// and value, anything else as fmt prints it. One file a partition,
// part-00000 and so on, and the marker _SUCCESS, which lists them: the directory appears
// at once when all are written, and a save that was killed leaves what was there
// before. The directory has to be the
// same for all executors; that it exists is an error without Overwrite.
func SaveText[T any](ds Dataset[T], dir string, options ...SaveOption) Action[int64] {
	if lines, ok := any(ds).(Dataset[string]); ok {
		return saveParts(lines, format[string]{kind: "save-text", codecs: lineCodecs, open: asLines(
			func(w *bufio.Writer, row *string) error {
				_, err := w.WriteString(*row)
				return err
			})}, dir, options)
	}
	return saveParts(ds, format[T]{kind: "save-text", codecs: lineCodecs, open: asLines(
		func(w *bufio.Writer, r *T) error {
			_, err := w.WriteString(row.TextLine(*r))
			return err
		})}, dir, options)
}

// SaveJSONLines does what SaveText does, with every row as JSON.
func SaveJSONLines[T any](ds Dataset[T], dir string, options ...SaveOption) Action[int64] {
	c, _ := row.ColumnsOf[T]() // what has no columns can be saved, but not by them
	j, err := row.JSONOf[T]()
	if err != nil {
		ds.g.fail("save-json-lines: %v", err)
	}
	return saveParts(ds, format[T]{kind: "save-json-lines", codecs: lineCodecs, columns: c, open: asLines(
		func(w *bufio.Writer, r *T) error {
			raw, err := j.Marshal(r)
			if err != nil {
				return fault.New(fault.UserCode, "encode", row.TypeName[T](), err)
			}
			_, err = w.Write(raw)
			return err
		})}, dir, options)
}

// format is how rows are written into files.
type format[T any] struct {
	kind    string
	codecs  []string        // the first is the default
	columns *row.Columns[T] // that rows have; nil where they have none
	// open returns a writer of rows, whose columns are those given, to a file.
	open func(w io.Writer, columns *row.Columns[T], codec string) (sink[T], error)
}

// lineCodecs are the compressions of lines.
var lineCodecs = []string{"none", "gzip", "zstd"}

// compressor returns a writer that compresses lines.
func compressor(w io.Writer, codec string) (io.WriteCloser, error) {
	switch codec {
	case "gzip":
		return gzip.NewWriter(w), nil
	case "zstd":
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	}
	return plainWriter{w}, nil
}

// plainWriter is a writer whose file stays open.
type plainWriter struct{ io.Writer }

// Close does nothing.
func (plainWriter) Close() error { return nil }

// sink writes the rows of a partition to a file.
type sink[T any] interface {
	Add(rows []T) error
	Close() error
}

// lineSink writes each row as a line.
type lineSink[T any] struct {
	w     *bufio.Writer
	to    io.Closer
	write func(*bufio.Writer, *T) error
}

func asLines[T any](write func(*bufio.Writer, *T) error) func(io.Writer, *row.Columns[T], string) (sink[T], error) {
	return func(w io.Writer, _ *row.Columns[T], codec string) (sink[T], error) {
		to, err := compressor(w, codec)
		if err != nil {
			return nil, err
		}
		return &lineSink[T]{bufio.NewWriterSize(to, saveBuffer), to, write}, nil
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

// begin writes the file's first line.
func (l *lineSink[T]) begin(line string) error {
	_, err := l.w.WriteString(line + "\n")
	return err
}

func (l *lineSink[T]) Close() error { return cmp.Or(l.w.Flush(), l.to.Close()) }

func saveParts[T any](ds Dataset[T], f format[T], dir string, options []SaveOption) Action[int64] {
	o := f.optionsOf(ds.g, options)
	if dir == "" {
		ds.g.fail("%s: no directory is given", f.kind)
	}
	dir = files.Absolute(dir)
	task := func(ctx context.Context, part int, _ []byte, _ runner.TaskContext) ([]byte, error) {
		env, err := envOf(ctx)
		if err != nil {
			return nil, err
		}
		w, err := newPartWriter(f, o, saved.At(dir).Parts(ctx, part, env.args.Attempt))
		if err != nil {
			return nil, err
		}
		err = ds.each(ctx, part, w.add)
		if err = w.finish(err); err != nil {
			return nil, err
		}
		return cborMode.Marshal(w.staged)
	}
	a := action(ds, f.kind, task, func(ctx context.Context, s *Session, id int) (int64, error) {
		release, _, err := s.claimOf(ctx, claim{what: saving, dir: dir}) // each adds to what is there, or replaces it
		if err != nil {
			return 0, err
		}
		defer release()
		s.saves[id]++
		owner, to := ownerOf(s, id), saved.At(dir)
		if rows, done := saved.By(dir, owner); done {
			s.noteSaved(dir, rows)
			return rows, to.Drop(owner)
		}
		if err := to.Stage(owner, o.Options); err != nil {
			return 0, err
		}
		raws, err := callAll(ctx, s, id, ds.parts)
		if err != nil {
			_ = to.Drop(owner) // why it is given up is more important
			return 0, err
		}
		parts, err := partsOf(raws)
		if err != nil {
			return 0, err
		}
		rows, err := to.Commit(owner, parts, o.Options)
		if err == nil {
			s.noteSaved(dir, rows)
		}
		return rows, err
	})
	ds.g.node(a.id).detail = dir
	return a
}

// optionsOf returns the options of a save; what cannot be is a mistake in the plan.
func (f *format[T]) optionsOf(g *Graph, options []SaveOption) (o saveOptions) {
	for _, set := range options {
		set(&o)
	}
	if o.codec == "" {
		o.codec = f.codecs[0]
	}
	if !slices.Contains(f.codecs, o.codec) {
		g.fail("%s: the compression %q is none of %s", f.kind, o.codec, strings.Join(f.codecs, ", "))
	}
	o.Durable = o.Durable || o.Append // a marker that is newer than its parts would hide those before them, too
	if o.Append && o.Overwrite {
		g.fail("%s: Append and Overwrite exclude one another", f.kind)
	}
	if o.header != "" && f.kind != "save-text" {
		g.fail("%s: Header is of SaveText", f.kind)
	}
	if len(o.by) == 0 {
		return o
	}
	if f.columns == nil {
		g.fail("%s: the rows have no columns that PartitionedBy could name", f.kind)
	} else if _, _, err := f.columns.Keys(o.by); err != nil {
		g.fail("%s: %v", f.kind, err)
	}
	return o
}

// noteSaved tells the job of a dataset that is there.
func (s *Session) noteSaved(dir string, rows int64) {
	if s.cfg.Saved != nil {
		s.cfg.Saved(dir, rows)
	}
}

// partsOf returns the files that tasks have written.
func partsOf(raws [][]byte) (all [][]saved.Part, err error) {
	for _, raw := range raws {
		var written []saved.Part
		if err := cborReading.Unmarshal(raw, &written); err != nil {
			return nil, err
		}
		all = append(all, written)
	}
	return all, nil
}

// ownerOf names a save of a job that may be started again; empty where it
// cannot be.
func ownerOf(s *Session, id int) string {
	if s.cfg.Owner == "" {
		return ""
	}
	return fmt.Sprintf("%s %d.%d", s.cfg.Owner, id, s.saves[id])
}

// writeError returns of an error of the file system where it was.
func writeError(path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return saved.Error(path, err)
	}
	return err
}
