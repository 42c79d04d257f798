package objects

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"

	"gocloud.dev/gcerrors"

	"github.com/volley-engine/volley/internal/fault"
)

// Stat returns what a store says of an object; where there is none the error is fs.ErrNotExist.
func Stat(ctx context.Context, name string) (Info, error) {
	s, key, err := storeOf(ctx, name)
	if err != nil {
		return Info{}, err
	}
	return statIn(ctx, s, key, name)
}

func statIn(ctx context.Context, s store, key, name string) (i Info, err error) {
	i, err = s.stat(ctx, key)
	i.Name = name
	return i, explained("open", name, err)
}

// List calls a function with the objects below a name, in the order of their names, until it returns false.
func List(ctx context.Context, name string, yield func(Info) bool) error {
	s, prefix, err := storeOf(ctx, name)
	if err != nil {
		return err
	}
	root := name[:len(name)-len(prefix)]
	if prefix == "" {
		root = Join(name) + "/"
	}
	err = s.list(ctx, prefix, func(key string, i Info) bool {
		i.Name = root + key
		return yield(i)
	})
	if gcerrors.Code(err) == gcerrors.NotFound {
		return fault.New(fault.BadInput, "list", name, never("there is no such bucket"))
	}
	return explained("list", name, err)
}

// Get returns the bytes of an object of at most a size; where there is none the error is fs.ErrNotExist.
func Get(ctx context.Context, name string, most int64) ([]byte, error) {
	r, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.Size > most {
		return nil, fault.Newf(fault.BadInput, "read", name, "it has %d bytes, more than %d", r.Size, most)
	}
	stop := context.AfterFunc(ctx, r.cancel)
	defer stop()
	raw := make([]byte, r.Size)
	_, err = io.ReadFull(r, raw)
	return raw, err
}

// CanWrite refuses names of which no object can be written.
func CanWrite(name string) error {
	if _, err := parse(name); err != nil || !IsWeb(name) {
		return err
	}
	return explained("write", name, errReadOnly)
}

// Put writes an object, which appears whole in place of one that is there.
func Put(ctx context.Context, name string, raw []byte) error { return put(ctx, name, raw, replaces{}) }

// PutNew does what Put does, where there is no such object: one that is there is fs.ErrExist.
func PutNew(ctx context.Context, name string, raw []byte) error {
	return put(ctx, name, raw, replaces{nothing: true})
}

// PutInPlace does what Put does, in place of an object that a store has described: another is fs.ErrExist.
func PutInPlace(ctx context.Context, was Info, raw []byte) error {
	return put(ctx, was.Name, raw, replaces{tag: was.Tag})
}

func put(ctx context.Context, name string, raw []byte, r replaces) error {
	w, err := create(ctx, name, r)
	if err != nil {
		return err
	}
	if _, err = w.Write(raw); err == nil {
		err = w.Close()
	}
	w.Abort()
	if r != (replaces{}) && (gcerrors.Code(err) == gcerrors.FailedPrecondition ||
		statusOf(err) == http.StatusPreconditionFailed || statusOf(err) == http.StatusConflict) {
		return fs.ErrExist
	}
	return err
}

// Remove deletes an object; one that is not there is no error.
func Remove(ctx context.Context, name string) error {
	s, key, err := storeOf(ctx, name)
	if err != nil {
		return err
	}
	err = explained("remove", name, s.remove(ctx, key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Writer writes an object, of which nothing is seen before Close.
type Writer struct {
	Name   string
	w      io.WriteCloser
	cancel context.CancelFunc
	ended  bool
}

// Create begins to write an object.
func Create(ctx context.Context, name string) (*Writer, error) { return create(ctx, name, replaces{}) }

func create(ctx context.Context, name string, r replaces) (*Writer, error) {
	s, key, err := storeOf(ctx, name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w, err := s.write(ctx, key, r)
	if err != nil {
		cancel()
		return nil, explained("write", name, err)
	}
	return &Writer{Name: name, w: w, cancel: cancel}, nil
}

// Write adds bytes to the object.
func (w *Writer) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	return n, explained("write", w.Name, err)
}

// Close returns once the store has the whole object.
func (w *Writer) Close() error {
	if w.ended {
		return nil
	}
	w.ended = true
	err := w.w.Close()
	w.cancel()
	return explained("write", w.Name, err)
}

// Abort gives the object up: nothing of it is seen.
func (w *Writer) Abort() {
	if w.ended {
		return
	}
	w.ended = true
	w.cancel()
	_ = w.w.Close() // it has ended before
}
