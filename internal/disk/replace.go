package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// PutDir moves a directory atomically to a name that is free or another directory's,
// which it replaces: a reader finds the old one or the new one, whole. Both are in one
// parent directory. With durable set the change is synced before PutDir returns; the
// contents must be synced before. Where the file system cannot swap two names, there is
// a moment without either.
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

// Recover restores a directory that PutDir had moved aside when it was killed, where the
// file system cannot swap names, and removes leftovers.
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

// asideSuffix is the suffix of a directory that is moved aside.
const asideSuffix = ".old"

// swapOrMove renames from to dir, and returns the name that the old dir has then.
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

// MkdirSynced makes a directory and the missing ones above it, and syncs their
// names.
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
