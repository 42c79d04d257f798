package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// File is a file that is written, maybe after some of it was read. One goroutine at a
// time may use it.
type File struct {
	f      *os.File
	number int   // number for the recorder; 0 where it has none
	at     int64 // where the next Write goes
}

// numbered gives a file that has just been opened its number; it is called under the
// recorder's lock.
func (f *File) numbered(kind Kind) Op {
	recorder.files++
	f.number = recorder.files
	return Op{Kind: kind, Path: absolute(f.f.Name()), File: f.number}
}

// OpenFile does what os.OpenFile does, without O_APPEND.
func OpenFile(path string, flag int, perm fs.FileMode) (f *File, err error) {
	if flag&os.O_APPEND != 0 {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("O_APPEND is not supported")}
	}
	kind, f := Created, &File{}
	if _, err := os.Stat(path); err == nil {
		kind = Opened
	}
	err = do(func() error {
		f.f, err = os.OpenFile(path, flag&^os.O_TRUNC, perm)
		return err
	}, func() Op { return f.numbered(kind) })
	if err == nil && kind == Opened && flag&os.O_TRUNC != 0 {
		err = f.Truncate(0)
	}
	if err != nil {
		if f.f != nil {
			f.f.Close()
		}
		return nil, err
	}
	return f, nil
}

// Create does what os.Create does.
func Create(path string) (*File, error) {
	return OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// CreateTemp makes a file of a name that no other has.
func CreateTemp(dir, pattern string) (*File, error) {
	f := &File{}
	err := do(func() (err error) {
		f.f, err = os.CreateTemp(dir, pattern)
		return err
	}, func() Op { return f.numbered(Created) })
	if err != nil {
		return nil, err
	}
	return f, nil
}

// WriteFile writes a file without a sync.
func WriteFile(path string, raw []byte, perm fs.FileMode) error {
	f, err := OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	return errors.Join(err, f.Close())
}

// WriteSynced writes and syncs a file, not its directory.
func WriteSynced(path string, raw []byte, perm fs.FileMode) error {
	f, err := OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Name returns the name that the file was opened by.
func (f *File) Name() string { return f.f.Name() }

// Read reads from the current offset.
func (f *File) Read(p []byte) (int, error) {
	n, err := f.f.Read(p)
	f.at += int64(n)
	return n, err
}

// Write writes at the current offset.
func (f *File) Write(p []byte) (n int, err error) {
	at := f.at
	fits, full := room(f.f.Name(), p)
	err = do(func() error {
		if n, err = f.f.WriteAt(fits, at); err == nil {
			err = full
		}
		return err
	}, func() Op { return Op{Kind: Written, File: f.number, Offset: at, Data: append([]byte(nil), p...)} })
	f.at += int64(n)
	return n, err
}

// Seek returns where the file is read or written next.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekCurrent {
		offset, whence = offset+f.at, io.SeekStart
	}
	at, err := f.f.Seek(offset, whence)
	if err == nil {
		f.at = at
	}
	return at, err
}

// Truncate gives the file a length.
func (f *File) Truncate(size int64) error {
	return do(func() error { return f.f.Truncate(size) },
		func() Op { return Op{Kind: Resized, File: f.number, Offset: size} })
}

// Chmod sets the file's permissions.
func (f *File) Chmod(perm fs.FileMode) error { return f.f.Chmod(perm) }

// Sync syncs the file's content, not its directory.
func (f *File) Sync() error {
	return do(f.f.Sync, func() Op { return Op{Kind: Synced, File: f.number} })
}

// Close closes the file.
func (f *File) Close() error { return f.f.Close() }
