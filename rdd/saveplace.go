package rdd

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/storage/objects"
)

// place is what a save goes to: a directory, or the objects below a name. All of a save appears at once, in either.
type place interface {
	// stage prepares for the parts of a save.
	stage(owner string, o saveOptions) error
	// parts returns where an attempt of a task writes a part.
	parts(ctx context.Context, part int, attempt uint64) partFiles
	// commit makes a save of the parts that tasks have written, by part.
	commit(owner string, raws [][]byte, o saveOptions) (rows int64, err error)
	// drop removes what a save of an owner has left that is not committed.
	drop(owner string) error
}

func placeOf(dir string) place {
	if objects.Is(dir) {
		return &objectPlace{dir: dir}
	}
	return localPlace{dir}
}

// partFiles makes the files of a part.
type partFiles interface {
	// create begins a file of a directory of keys, under a name that no other attempt has.
	create(keys string) (partFile, error)
	// remove removes a file that was kept.
	remove(name string)
}

// partFile is a file that is being written.
type partFile interface {
	io.Writer
	Name() string
	// keep ends the file, and returns what the commit knows it by.
	keep(durable bool) (name string, err error)
	// drop gives the file up.
	drop()
}

// localPlace is a directory.
type localPlace struct{ dir string }

func (l localPlace) stage(owner string, o saveOptions) error { return stage(l.dir, owner, o) }

func (l localPlace) commit(owner string, raws [][]byte, o saveOptions) (int64, error) {
	return commitParts(l.dir, owner, raws, o)
}

func (l localPlace) drop(string) error { return saveError(l.dir, disk.RemoveAll(stagedDir(l.dir))) }

func (l localPlace) parts(_ context.Context, part int, attempt uint64) partFiles {
	return localParts{attemptsDir(l.dir), fmt.Sprintf(partName+"-%d-*", part, attempt)}
}

type localParts struct{ dir, pattern string }

func (l localParts) create(string) (partFile, error) {
	f, err := disk.CreateTemp(l.dir, l.pattern)
	if err != nil {
		return nil, saveError(l.dir, err)
	}
	if err := f.Chmod(0o644); err != nil {
		localPart{f}.drop()
		return nil, saveError(f.Name(), err)
	}
	return localPart{f}, nil
}

func (l localParts) remove(name string) { disk.Remove(filepath.Join(l.dir, name)) }

type localPart struct{ *disk.File }

func (l localPart) keep(durable bool) (name string, err error) {
	if durable {
		err = l.Sync() // the marker must not be on the disk before it
	}
	if cerr := l.Close(); err == nil {
		err = saveError(l.Name(), cerr)
	}
	return filepath.Base(l.Name()), err
}

func (l localPart) drop() {
	l.Close()
	disk.Remove(l.Name())
}
