package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/volley-engine/volley/internal/fault"
)

// An object is read in blocks: a reader keeps the most recent of them, and asks for those that follow while it reads
// one after the other.
const (
	blockBytes = 1 << 20
	blocksKept = 48
	ahead      = 4
)

// The wait before what fails is tried again, and the longest: each is twice as long as the one before.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 20 * time.Second
)

// Reader reads an object, by one goroutine at a time or by several through ReadAt.
type Reader struct {
	Info
	store  store
	key    string
	ctx    context.Context
	cancel context.CancelFunc
	at     int64
	mu     struct {
		sync.Mutex
		blocks map[int64]*block
		clock  int64
		until  int64 // reading ahead ends here
	}
	stream io.ReadCloser // of an object that can be read from its beginning only
	passed int64         // of the stream
}

// block is a part of an object, which is ready when it has been read.
type block struct {
	ready chan struct{}
	data  []byte
	err   error
	used  int64 // when, by the reader's clock
}

// Open begins to read an object.
func Open(name string) (*Reader, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s, key, err := storeOf(ctx, name)
	var i Info
	if err == nil {
		i, err = statIn(ctx, s, key, name)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return newReader(ctx, cancel, s, key, i), nil
}

// OpenAs begins to read an object that a store has described: one that has changed since is refused when it is read.
func OpenAs(ctx context.Context, i Info) (*Reader, error) {
	ctx, cancel := context.WithCancel(ctx)
	s, key, err := storeOf(ctx, i.Name)
	if err != nil {
		cancel()
		return nil, err
	}
	return newReader(ctx, cancel, s, key, i), nil
}

func newReader(ctx context.Context, cancel context.CancelFunc, s store, key string, i Info) *Reader {
	r := &Reader{Info: i, store: s, key: key, ctx: ctx, cancel: cancel}
	r.mu.blocks, r.mu.until = map[int64]*block{}, i.Size
	return r
}

// Until ends reading ahead at an offset: beyond it little is read.
func (r *Reader) Until(end int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.until = min(end, r.Size)
}

// Read reads from the current offset on.
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.readSome(p, r.at)
	r.at += int64(n)
	return n, err
}

// Seek sets the offset that is read next.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.Size
	}
	if offset < 0 {
		return r.at, errors.New("seek before the beginning")
	}
	r.at = offset
	return offset, nil
}

// ReadAt reads len(p) bytes from an offset on, or those that there are.
func (r *Reader) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = r.readSome(p[n:], off+int64(n))
		n += k
	}
	return n, err
}

// readSome reads what one block has.
func (r *Reader) readSome(p []byte, off int64) (int, error) {
	switch {
	case off >= r.Size:
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	case r.Whole:
		return r.readStream(p, off)
	}
	b := r.block(off / blockBytes)
	select {
	case <-b.ready:
	case <-r.ctx.Done():
		return 0, explained("read", r.Name, r.ctx.Err())
	}
	if b.err != nil {
		return 0, b.err
	}
	return copy(p, b.data[off%blockBytes:]), nil
}

// block returns a block, which is perhaps on its way, and begins to read those after it where it is not the first of
// its neighbours.
func (r *Reader) block(number int64) *block {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.begin(number)
	if r.mu.blocks[number-1] != nil {
		for next := number + 1; next <= number+ahead && next*blockBytes < r.mu.until; next++ {
			r.begin(next)
		}
	}
	r.mu.clock++
	b.used = r.mu.clock
	return b
}

// begin returns a block that is there, or begins to read it; r.mu is held.
func (r *Reader) begin(number int64) *block {
	if b := r.mu.blocks[number]; b != nil {
		return b
	}
	if len(r.mu.blocks) >= blocksKept {
		r.forget()
	}
	r.mu.clock++
	b := &block{ready: make(chan struct{}), used: r.mu.clock}
	r.mu.blocks[number] = b
	go func() {
		defer close(b.ready)
		from := number * blockBytes
		b.data, b.err = r.fetch(from, min(blockBytes, r.Size-from))
	}()
	return b
}

// forget drops the block that was used the longest time ago; r.mu is held.
func (r *Reader) forget() {
	var oldest int64
	at := int64(-1)
	for n, b := range r.mu.blocks {
		if at < 0 || b.used < oldest {
			at, oldest = n, b.used
		}
	}
	delete(r.mu.blocks, at)
}

// fetch reads a range, and tries again what may succeed.
func (r *Reader) fetch(from, length int64) (data []byte, err error) {
	err = retried(r.ctx, func() error {
		data, err = r.fetchOnce(from, length)
		return err
	})
	return data, explained("read", r.Name, err)
}

// retried tries again what may succeed, for as long as patience lasts. The libraries of stores do so for calls; what
// remains are calls of web servers, and bodies that break off.
func retried(ctx context.Context, try func() error) error {
	wait, end := firstWait, time.Now().Add(time.Duration(patience.Load()))
	for {
		err := try()
		if err == nil || time.Now().After(end) || !again(ctx, err) {
			return err
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, longestWait)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *Reader) fetchOnce(from, length int64) ([]byte, error) {
	body, now, err := r.store.read(r.ctx, r.key, from, length)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if err := r.same(now); err != nil {
		return nil, err
	}
	data := make([]byte, length)
	_, err = io.ReadFull(body, data)
	return data, err
}

// same checks that an object is the one that was opened.
func (r *Reader) same(now Info) error {
	if r.Info.Same(now) {
		return nil
	}
	return fault.New(fault.BadInput, "read", r.Name, errors.New("the object changed since the job resolved it")).
		WithHint("run the job again")
}

// Same reports whether two answers of a store are about the same bytes, as far as both say.
func (i Info) Same(now Info) bool {
	if i.Tag != "" && now.Tag != "" {
		return i.Tag == now.Tag
	}
	at, then := i.ModTime.Truncate(time.Second), now.ModTime.Truncate(time.Second)
	return i.Size == now.Size && (at.IsZero() || then.IsZero() || at.Equal(then))
}

// readStream reads an object that comes from its beginning only.
func (r *Reader) readStream(p []byte, off int64) (int, error) {
	if off != r.passed {
		return 0, explained("read", r.Name, errUnparted)
	}
	if r.stream == nil {
		body, now, err := r.store.read(r.ctx, r.key, 0, r.Size)
		if err == nil {
			r.stream, err = body, r.same(now)
		}
		if err != nil {
			return 0, explained("read", r.Name, err)
		}
	}
	n, err := r.stream.Read(p)
	r.passed += int64(n)
	if err == io.EOF && r.passed < r.Size {
		err = fmt.Errorf("it ends after %d of %d bytes", r.passed, r.Size)
	}
	if err == io.EOF {
		return n, err
	}
	return n, explained("read", r.Name, err)
}

// Close ends reading, what is on its way too.
func (r *Reader) Close() error {
	r.cancel()
	if r.stream != nil {
		return r.stream.Close()
	}
	return nil
}
