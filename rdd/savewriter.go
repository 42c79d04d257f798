package rdd

import (
	"cmp"
	"container/list"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/saved"
)

// mostOpen is how many files a task writes at a time. Of more directories the one that was written to longest ago is
// closed, and gets another file where more of its rows come.
const mostOpen = 64

// partWriter writes the rows of a partition: into one file, or into one for each directory.
type partWriter[T any] struct {
	format[T]
	saveOptions
	files   saved.Files
	columns *row.Columns[T] // of the files
	keysOf  func(row *T) ([]files.Key, error)
	open    map[string]*list.Element // by directory, of *openPart[T]
	recent  *list.List               // the last written to is the first
	staged  []saved.Part
}

// openPart is a file that is being written.
type openPart[T any] struct {
	dir  string
	file *countedPart
	sink sink[T]
	rows int64
}

// countedPart counts the bytes of a file.
type countedPart struct {
	saved.File
	size int64
}

func (c *countedPart) Write(p []byte) (int, error) {
	n, err := c.File.Write(p)
	c.size += int64(n)
	return n, err
}

func newPartWriter[T any](f format[T], o saveOptions, to saved.Files) (w *partWriter[T], err error) {
	w = &partWriter[T]{format: f, saveOptions: o, files: to, columns: f.columns,
		open: map[string]*list.Element{}, recent: list.New()}
	if len(o.by) == 0 {
		if _, err = w.of(""); err != nil {
			err = w.finish(err)
		}
		return w, err
	}
	w.columns, w.keysOf, err = f.columns.Keys(o.by)
	return w, err
}

// add writes rows.
func (w *partWriter[T]) add(rows []T) error {
	if w.keysOf == nil {
		return w.addTo("", rows)
	}
	for from := 0; from < len(rows); {
		dir, err := w.dirOf(&rows[from])
		to := from + 1
		for err == nil && to < len(rows) {
			var next string
			if next, err = w.dirOf(&rows[to]); next != dir {
				break
			}
			to++
		}
		if err == nil {
			err = w.addTo(dir, rows[from:to])
		}
		if err != nil {
			return err
		}
		from = to
	}
	return nil
}

func (w *partWriter[T]) dirOf(r *T) (string, error) {
	keys, err := w.keysOf(r)
	if err != nil {
		return "", fault.New(fault.UserCode, "save", "a row", err)
	}
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = files.KeyDir(k)
	}
	return strings.Join(names, "/"), nil
}

func (w *partWriter[T]) addTo(dir string, rows []T) error {
	p, err := w.of(dir)
	if err != nil {
		return err
	}
	p.rows += int64(len(rows))
	return writeError(p.file.Name(), p.sink.Add(rows))
}

// of returns the open file of a directory.
func (w *partWriter[T]) of(dir string) (*openPart[T], error) {
	if e := w.open[dir]; e != nil {
		w.recent.MoveToFront(e)
		return e.Value.(*openPart[T]), nil
	}
	if w.recent.Len() == mostOpen {
		if err := w.close(w.recent.Back(), nil); err != nil {
			return nil, err
		}
	}
	f, err := w.files.Create(dir)
	if err != nil {
		return nil, err
	}
	p := &openPart[T]{dir: dir, file: &countedPart{File: f}}
	w.open[dir] = w.recent.PushFront(p)
	p.sink, err = w.format.open(p.file, w.columns, w.codec)
	if err == nil && w.header != "" { // of lines
		err = p.sink.(interface{ begin(line string) error }).begin(w.header)
	}
	return p, writeError(f.Name(), err)
}

// close ends a file; with an error it is removed.
func (w *partWriter[T]) close(e *list.Element, err error) error {
	p := w.recent.Remove(e).(*openPart[T])
	delete(w.open, p.dir)
	if p.sink != nil {
		err = cmp.Or(err, p.sink.Close())
	}
	part := saved.Part{Dir: p.dir, Rows: p.rows, Size: p.file.size}
	if err == nil {
		part.Name, err = p.file.Keep(w.Durable)
	}
	if err != nil {
		p.file.Drop()
		return writeError(p.file.Name(), err)
	}
	w.staged = append(w.staged, part)
	return nil
}

// finish ends all files, and removes them where there was an error.
func (w *partWriter[T]) finish(err error) error {
	for w.recent.Len() > 0 {
		err = cmp.Or(w.close(w.recent.Back(), err), err)
	}
	if err != nil {
		for _, p := range w.staged {
			w.files.Remove(p.Name)
		}
	}
	return err
}
