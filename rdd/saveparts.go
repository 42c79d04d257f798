package rdd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/runner"
)

// Files of a saved dataset: the parts, and the marker that is written last. A
// directory without the marker is not complete.
const (
	partName   = "part-%05d"
	markerName = "_SUCCESS"
	stagedIn   = ".staged"
	ownerName  = "owner"
)

// SaveOption is an option of saving a dataset.
type SaveOption func(*saveOptions)

type saveOptions struct{ overwrite, durable bool }

// Durable makes a save wait until the disk has every part before it writes the
// marker, so that a loss of power cannot leave a marker without its parts. It
// takes as long as the disk needs for all bytes.
func Durable() SaveOption { return func(o *saveOptions) { o.durable = true } }

// Overwrite lets a save replace a directory that is there. One that is killed
// while it does may leave neither what was there nor what was to be.
func Overwrite() SaveOption { return func(o *saveOptions) { o.overwrite = true } }

// SaveText writes every row as a line: a string as it is, a Pair as key, tab
// and value, anything else as fmt prints it. One file a partition,
// part-00000 and so on, and the marker _SUCCESS at the end: a save that was
// killed leaves nothing that reads as complete. The directory has to be the
// same for all executors; that it exists is an error without Overwrite.
func SaveText[T any](ds Dataset[T], dir string, options ...SaveOption) Action[int64] {
	if lines, ok := any(ds).(Dataset[string]); ok {
		return saveParts(lines, "save-text", dir, options, asLines(func(w *bufio.Writer, row *string) error {
			_, err := w.WriteString(*row)
			return err
		}))
	}
	return saveParts(ds, "save-text", dir, options, asLines(func(w *bufio.Writer, row *T) error {
		_, err := w.WriteString(textLine(*row))
		return err
	}))
}

// SaveJSONLines is SaveText with every row as JSON.
func SaveJSONLines[T any](ds Dataset[T], dir string, options ...SaveOption) Action[int64] {
	return saveParts(ds, "save-json-lines", dir, options, asLines(func(w *bufio.Writer, row *T) error {
		raw, err := json.Marshal(row)
		if err != nil {
			return fault.New(fault.UserCode, "encode", typeName[T](), err)
		}
		_, err = w.Write(raw)
		return err
	}))
}

// sink writes the rows of a partition to a file.
type sink[T any] interface {
	add(rows []T) error
	close() error
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

func (l *lineSink[T]) add(rows []T) error {
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

func (l *lineSink[T]) close() error { return l.w.Flush() }

// tabbed is what a Pair is as text.
type tabbed interface{ tabbed() string }

func (p Pair[K, V]) tabbed() string { return textLine(p.Key) + "\t" + textLine(p.Value) }

func textLine(row any) string {
	switch r := row.(type) {
	case string:
		return r
	case []byte:
		return string(r)
	case tabbed:
		return r.tabbed()
	}
	return fmt.Sprint(row)
}

// stagedPart is what a task has written: under a name that no other attempt
// has, until the save is committed.
type stagedPart struct {
	Name string
	Rows int64
}

func saveParts[T any](ds Dataset[T], kind, dir string, options []SaveOption, open func(io.Writer) (sink[T], error)) Action[int64] {
	var o saveOptions
	for _, set := range options {
		set(&o)
	}
	if dir == "" {
		ds.g.fail("%s: no directory is given", kind)
	}
	dir = absolute(dir)
	task := func(ctx context.Context, part int, _ []byte, _ runner.Packs) ([]byte, error) {
		env, err := envOf(ctx)
		if err != nil {
			return nil, err
		}
		var staged stagedPart
		staged.Name, err = writePart(filepath.Join(dir, stagedIn), fmt.Sprintf(partName+"-%d-*", part, env.args.Attempt), o.durable, func(w io.Writer) error {
			to, err := open(w)
			if err != nil {
				return err
			}
			err = ds.each(ctx, part, func(rows []T) error {
				staged.Rows += int64(len(rows))
				return to.add(rows)
			})
			return firstError(err, to.close())
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
			return rows, nil
		}
		if err := stage(dir, owner, o.overwrite); err != nil {
			return 0, err
		}
		raws, err := callAll(ctx, s, id, ds.parts)
		if err != nil {
			os.RemoveAll(filepath.Join(dir, stagedIn))
			os.Remove(dir) // if there is nothing else in it
			return 0, err
		}
		return commitParts(dir, owner, raws)
	})
	ds.g.nodes[a.id].detail = dir
	return a
}

// absolute is a path that means the same to executors, which may run elsewhere.
func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// ownerOf names a save of a job that may be started again; empty where it
// cannot be.
func ownerOf(s *Session, id int) string {
	if s.cfg.Owner == "" {
		return ""
	}
	return fmt.Sprintf("%s %d.%d", s.cfg.Owner, id, s.saves[id])
}

// savedBy says whether the same save was completed before its job was started
// again, and how many rows it wrote.
func savedBy(dir, owner string) (rows int64, done bool) {
	raw, err := os.ReadFile(filepath.Join(dir, markerName))
	line, ok := strings.CutPrefix(string(raw), owner+" ")
	if err != nil || owner == "" || !ok {
		return 0, false
	}
	_, err = fmt.Sscan(line, &rows)
	return rows, err == nil
}

// begunBy says whether the same save was begun before.
func begunBy(dir, owner string) bool {
	raw, err := os.ReadFile(filepath.Join(dir, stagedIn, ownerName))
	return err == nil && owner != "" && string(raw) == owner
}

// stage prepares a directory for the parts of a save.
func stage(dir, owner string, overwrite bool) error {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return saveError(dir, err)
	}
	if len(files) > 0 && !overwrite && !begunBy(dir, owner) {
		return fault.Newf(fault.BadInput, "save to", dir, "it exists and is not empty").WithHint("remove it, or save with Overwrite")
	}
	if err := os.RemoveAll(filepath.Join(dir, stagedIn)); err != nil {
		return saveError(dir, err)
	}
	if err := os.MkdirAll(filepath.Join(dir, stagedIn), 0o755); err != nil {
		return saveError(dir, err)
	}
	return saveError(dir, os.WriteFile(filepath.Join(dir, stagedIn, ownerName), []byte(owner), 0o644))
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
func writePart(dir, pattern string, durable bool, fill func(io.Writer) error) (name string, err error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return "", saveError(dir, err)
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = saveError(f.Name(), cerr)
		}
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if err = f.Chmod(0o644); err == nil {
		err = fill(f)
	}
	if err == nil && durable {
		err = f.Sync() // the marker must not be on the disk before it
	}
	return filepath.Base(f.Name()), writeError(f.Name(), err)
}

// writeError says of an error of the file system where it was.
func writeError(path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return saveError(path, err)
	}
	return err
}

// commitParts puts the parts in their places and the marker at the end. What a
// former save has left goes first, its marker before its parts.
func commitParts(dir, owner string, raws [][]byte) (rows int64, err error) {
	if err := os.Remove(filepath.Join(dir, markerName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, saveError(dir, err)
	}
	old, _ := filepath.Glob(filepath.Join(escapeGlob(dir), "part-*"))
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			return 0, saveError(f, err)
		}
	}
	for part, raw := range raws {
		var staged stagedPart
		if err := cborReading.Unmarshal(raw, &staged); err != nil {
			return 0, err
		}
		to := filepath.Join(dir, fmt.Sprintf(partName, part))
		if err := os.Rename(filepath.Join(dir, stagedIn, filepath.Base(staged.Name)), to); err != nil {
			return 0, saveError(to, err)
		}
		rows += staged.Rows
	}
	var marker []byte
	if owner != "" {
		marker = fmt.Appendf(nil, "%s %d\n", owner, rows)
	}
	if err := os.WriteFile(filepath.Join(dir, markerName), marker, 0o644); err != nil {
		return 0, saveError(dir, err)
	}
	return rows, saveError(dir, os.RemoveAll(filepath.Join(dir, stagedIn)))
}

// escapeGlob makes a path match itself only.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "*", `\*`, "?", `\?`).Replace(path)
}
