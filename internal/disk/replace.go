package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// PutDir puts a directory in the place of another, or in a place that is free, at once:
// a reader finds what was there, whole, or what is there now. Both lie in one
// directory. Durable says that the disk has it before PutDir returns; what is in the
// directory must have been synced by then. Where the file system cannot swap two
// names, there is a moment without either.
func PutDir(from, dir string, durable bool) error {
	replaced := ""
	_, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = Rename(from, dir)
	case err == nil:
		replaced, err = swapOrMove(from, dir)
	}
	if err == nil && durable {
		err = SyncDir(filepath.Dir(dir))
	}
	if err != nil || replaced == "" {
		return err
	}
	return RemoveAll(replaced)
}

// Recover brings back what PutDir had put aside when it was killed between two names, where
// the file system could not swap them, and removes what it had still to remove.
func Recover(from, dir string) error {
	old := from + asideSuffix
	if _, err := os.Lstat(old); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return Rename(old, dir)
	}
	return RemoveAll(old)
}

// asideSuffix is what a directory that is put aside is called after the one that takes its
// place.
const asideSuffix = ".old"

// swapOrMove gives from the name of dir, and returns the name that dir has then.
func swapOrMove(from, dir string) (old string, err error) {
	err = Swap(from, dir)
	if err == nil {
		return from, nil
	}
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.ENOTSUP) {
		return "", err
	}
	old = from + asideSuffix
	if err := Rename(dir, old); err != nil {
		return "", err
	}
	if err := Rename(from, dir); err != nil {
		return "", errors.Join(err, Rename(old, dir))
	}
	return old, nil
}

// MkdirSynced makes a directory and those above it, where they are not there, and
// returns once the disk has their names.
func MkdirSynced(path string, perm fs.FileMode) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	up := filepath.Dir(path)
	if up != path {
		if err := MkdirSynced(up, perm); err != nil {
			return err
		}
	}
	if err := MkdirAll(path, perm); err != nil {
		return err
	}
	return SyncDir(up)
}
