package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Kind is what an operation does.
type Kind uint8

// The kinds of operation.
const (
	Created   Kind = iota // a new empty file, which has the number File from then on
	Opened                // an existing file, which has the number File from then on
	Written               // Data at Offset of File
	Resized               // File, to the length Offset
	Synced                // File's content, not its name
	Renamed               // Path to To, which is replaced
	Swapped               // Path and To
	Removed               // a file's name, or an empty directory
	MadeDir               // one directory
	SyncedDir             // the names in a directory
)

// Op is an operation that has succeeded.
type Op struct {
	Kind   Kind
	Path   string // absolute; empty where File identifies it
	To     string
	File   int // number of an open file, from 1
	Offset int64
	Data   []byte
}

// recorder receives all operations, one after the other.
var recorder struct {
	sync.Mutex
	on    atomic.Bool // tell is set
	tell  func(Op)
	files int
}

// Record calls a function with every operation from now on, until stop. It is for
// tests, one at a time.
func Record(tell func(Op)) (stop func()) {
	recorder.Lock()
	defer recorder.Unlock()
	recorder.tell = tell
	recorder.on.Store(true)
	return func() {
		recorder.Lock()
		defer recorder.Unlock()
		recorder.tell = nil
		recorder.on.Store(false)
	}
}

// do runs and records an operation, so that the recorded order is the order of
// execution.
func do(act func() error, op func() Op) error {
	if !recorder.on.Load() {
		return act()
	}
	recorder.Lock()
	defer recorder.Unlock()
	err := act()
	if err == nil && recorder.tell != nil {
		recorder.tell(op())
	}
	return err
}

// absolute returns a path in the form that operations have.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// Rename gives a file or a directory another name, at once.
func Rename(from, to string) error {
	return do(func() error { return os.Rename(from, to) },
		func() Op { return Op{Kind: Renamed, Path: absolute(from), To: absolute(to)} })
}

// Swap gives two files or directories each other's names, at once. Not every file
// system can.
func Swap(a, b string) error {
	return do(func() error { return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) },
		func() Op { return Op{Kind: Swapped, Path: absolute(a), To: absolute(b)} })
}

// Remove removes a file or an empty directory.
func Remove(path string) error {
	return do(func() error { return os.Remove(path) }, func() Op { return Op{Kind: Removed, Path: absolute(path)} })
}

// RemoveAll removes a file or a directory and everything in it; a missing one is no
// error.
func RemoveAll(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		entries, err := os.ReadDir(path)
		for _, e := range entries {
			err = errors.Join(err, RemoveAll(filepath.Join(path, e.Name())))
		}
		if err != nil {
			return err
		}
	}
	if err := Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Mkdir makes a directory.
func Mkdir(path string, perm fs.FileMode) error {
	return do(func() error { return os.Mkdir(path, perm) },
		func() Op { return Op{Kind: MadeDir, Path: absolute(path)} })
}

// MkdirAll makes a directory and the missing ones above it.
func MkdirAll(path string, perm fs.FileMode) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	if up := filepath.Dir(path); up != path {
		if err := MkdirAll(up, perm); err != nil {
			return err
		}
	}
	err := Mkdir(path, perm)
	if info, serr := os.Stat(path); err != nil && serr == nil && info.IsDir() {
		return nil // another has made it
	}
	return err
}

// MkdirTemp makes a directory of a name that no other has.
func MkdirTemp(dir, pattern string) (path string, err error) {
	err = do(func() error {
		path, err = os.MkdirTemp(dir, pattern)
		return err
	}, func() Op { return Op{Kind: MadeDir, Path: absolute(path)} })
	return path, err
}

// SyncDir waits until the disk has the names in a directory.
func SyncDir(path string) error {
	return do(func() error {
		d, err := os.Open(path)
		if err != nil {
			return err
		}
		defer d.Close()
		return d.Sync()
	}, func() Op { return Op{Kind: SyncedDir, Path: absolute(path)} })
}
