package files

import (
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/storage/objects"
)

// Handle is an open file or object. ReadAt may be called concurrently.
type Handle interface {
	io.Reader
	io.ReaderAt
	io.Seeker
	io.Closer
}

// OpenPath opens a file or an object.
func OpenPath(path string) (Handle, error) {
	if objects.Is(path) {
		return opened(objects.Open(path))
	}
	return openLocal(path)
}

func openLocal(path string) (Handle, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, disk.OpenError(path, err)
	}
	return f, nil
}

// opened returns no handle with an error.
func opened(r *objects.Reader, err error) (Handle, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Open opens a file as it was resolved: an object that has changed since is refused when it is read.
func (f File) Open() (Handle, error) {
	if objects.Is(f.Path) {
		return opened(objects.OpenAs(context.Background(), f.object()))
	}
	return openLocal(f.Path)
}

// Open opens the file of a range, of which little is read beyond the range's end.
func (r Range) Open() (Handle, error) {
	h, err := r.File.Open()
	if o, ok := h.(*objects.Reader); ok {
		o.Until(r.Offset + r.Length)
	}
	return h, err
}

// object returns what the store said of an object.
func (f File) object() objects.Info {
	i := objects.Info{Name: f.Path, Size: f.Size, Tag: f.Tag, Whole: f.Whole}
	if f.ModTime != 0 {
		i.ModTime = time.Unix(0, f.ModTime)
	}
	return i
}

// fileOf returns an object as a file.
func fileOf(i objects.Info) File {
	f := File{Path: i.Name, Size: i.Size, Tag: i.Tag, Whole: i.Whole}
	if !i.ModTime.IsZero() {
		f.ModTime = i.ModTime.UnixNano()
	}
	if f.Tag == "" && f.ModTime == 0 { // what was read of it before must not be taken for it
		f.Tag = "seen once " + uuid.NewString()
	}
	return f
}

// ReadFile returns the bytes of a file or an object; where there is none the error is fs.ErrNotExist.
func ReadFile(path string) ([]byte, error) {
	if objects.Is(path) {
		return objects.Get(context.Background(), path, math.MaxInt64)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, disk.OpenError(path, err)
	}
	return raw, nil
}

// Join returns the path, or the name of an object, below a directory.
func Join(dir string, below ...string) string {
	if objects.Is(dir) {
		return objects.Join(dir, below...)
	}
	return filepath.Join(append([]string{dir}, below...)...)
}

// Absolute returns a path that means the same in every process; what has a scheme does already.
func Absolute(path string) string {
	if strings.Contains(path, "://") {
		return path
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
