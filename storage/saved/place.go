package saved

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/objects"
)

// Part is a file that a task has written: under a name that no other attempt has, until the save is committed.
type Part struct {
	Name string
	Dir  string // of its keys, below the saved directory
	Rows int64
	Size int64
}

// Options are how a save treats what is there, and whether it waits for the disk.
type Options struct{ Overwrite, Append, Durable bool }

// Place is what a save goes to: a directory, or the objects below a name. All of a save appears at once, in either.
type Place interface {
	// Stage prepares for the parts of a save.
	Stage(owner string, o Options) error
	// Parts returns where an attempt of a task writes a part.
	Parts(ctx context.Context, part int, attempt uint64) Files
	// Commit makes a save of what tasks have written, by part.
	Commit(owner string, parts [][]Part, o Options) (rows int64, err error)
	// Drop removes what a save of an owner has left that is not committed.
	Drop(owner string) error
}

// At returns the place of a directory, or of a name of objects.
func At(dir string) Place {
	if objects.Is(dir) {
		return &objectPlace{dir: dir}
	}
	return localPlace{dir}
}

// Files makes the files of a part.
type Files interface {
	// Create begins a file of a directory of keys, under a name that no other attempt has.
	Create(keys string) (File, error)
	// Remove removes a file that was kept.
	Remove(name string)
}

// File is a file that is being written.
type File interface {
	io.Writer
	Name() string
	// Keep ends the file, and returns what the commit knows it by.
	Keep(durable bool) (name string, err error)
	// Drop gives the file up.
	Drop()
}

// localPlace is a directory.
type localPlace struct{ dir string }

func (l localPlace) Stage(owner string, o Options) error { return stage(l.dir, owner, o) }

func (l localPlace) Commit(owner string, parts [][]Part, o Options) (int64, error) {
	return commitParts(l.dir, owner, parts, o)
}

func (l localPlace) Drop(string) error { return Error(l.dir, disk.RemoveAll(stagedDir(l.dir))) }

func (l localPlace) Parts(_ context.Context, part int, attempt uint64) Files {
	return localParts{attemptsDir(l.dir), fmt.Sprintf(partName+"-%d-*", part, attempt)}
}

type localParts struct{ dir, pattern string }

func (l localParts) Create(string) (File, error) {
	f, err := disk.CreateTemp(l.dir, l.pattern)
	if err != nil {
		return nil, Error(l.dir, err)
	}
	if err := f.Chmod(0o644); err != nil {
		localPart{f}.Drop()
		return nil, Error(f.Name(), err)
	}
	return localPart{f}, nil
}

func (l localParts) Remove(name string) { disk.Remove(filepath.Join(l.dir, name)) }

type localPart struct{ *disk.File }

func (l localPart) Keep(durable bool) (name string, err error) {
	if durable {
		err = l.Sync() // the marker must not be on the disk before it
	}
	if cerr := l.Close(); err == nil {
		err = Error(l.Name(), cerr)
	}
	return filepath.Base(l.Name()), err
}

func (l localPart) Drop() {
	l.Close()
	disk.Remove(l.Name())
}

// Empty makes a directory, which must have nothing in it, for an operation.
func Empty(op, dir string) error {
	full := fault.Newf(fault.BadInput, op, dir, "it exists and is not empty")
	if objects.Is(dir) {
		found, err := (&objectPlace{dir: dir}).found()
		if err == nil && len(found) > 0 {
			err = full
		}
		return err
	}
	if found, err := os.ReadDir(dir); err == nil && len(found) > 0 {
		return full
	}
	return Error(dir, os.MkdirAll(dir, 0o755))
}
