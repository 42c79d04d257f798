package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/volley-engine/volley/internal/fault"
)

// maxFrame bounds a message before memory is allocated for it.
const maxFrame = 1 << 30

// Framed carries encoded messages over a byte stream, each behind its length.
// One goroutine may read while others write.
type Framed struct {
	rw io.ReadWriteCloser
	r  *bufio.Reader
	mu sync.Mutex // guards writing
}

// NewFramed lays frames over a byte stream.
func NewFramed(rw io.ReadWriteCloser) *Framed {
	return &Framed{rw: rw, r: bufio.NewReaderSize(rw, 64<<10)}
}

// Write sends one message.
func (f *Framed) Write(raw []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	head := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(raw)), uint32(len(raw)))
	_, err := f.rw.Write(append(head, raw...))
	return err
}

// Read receives one message.
func (f *Framed) Read() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxFrame {
		return nil, fault.Newf(fault.Corrupt, "receive", "a message", "it claims %d bytes", n)
	}
	var raw bytes.Buffer // grows with the bytes received: a length alone allocates no memory
	if raw.Grow(int(min(n, firstRead))); n > 0 {
		if _, err := io.CopyN(&raw, f.r, int64(n)); err != nil {
			return nil, err
		}
	}
	return raw.Bytes(), nil
}

// firstRead is how much memory is allocated for a message before any of it has arrived.
const firstRead = 64 << 10

// Close closes the stream.
func (f *Framed) Close() error { return f.rw.Close() }

// framedExecutor is an executor's end over frames.
type framedExecutor struct{ *Framed }

// FramedExecutor returns an executor's end of a connection that goes over frames.
func FramedExecutor(f *Framed) ExecutorConn { return framedExecutor{f} }

func (f framedExecutor) Send(m *ToDriver) error {
	raw, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	return f.Write(raw)
}

func (f framedExecutor) Recv() (*ToExecutor, error) {
	raw, err := f.Read()
	if err != nil {
		return nil, err
	}
	m := &ToExecutor{}
	return m, proto.Unmarshal(raw, m)
}

// queueMost is how many messages may wait: a receiver that lags so far behind
// counts as dead.
const queueMost = 1 << 16

// queueBytes is how many bytes may wait, beside one message of any size.
const queueBytes = 256 << 20

// Queue is a bounded queue of messages whose Put does not block.
type Queue[M any] struct {
	mu     sync.Mutex
	some   *sync.Cond
	list   []queued[M]
	bytes  int // of those in list
	taken  int // messages, so far
	closed bool
}

// queued is a message that waits, and how many bytes it takes.
type queued[M any] struct {
	message M
	size    int
}

// sizeOf returns how many bytes a message takes, where it can be told.
func sizeOf(m any) int {
	switch m := m.(type) {
	case *Frame:
		return m.size
	case proto.Message:
		return proto.Size(m)
	case []byte:
		return len(m)
	}
	return 0
}

// NewQueue makes an empty queue.
func NewQueue[M any]() *Queue[M] {
	q := &Queue[M]{}
	q.some = sync.NewCond(&q.mu)
	return q
}

// Put adds a message, or returns an error where the queue is full.
func (q *Queue[M]) Put(m M) error {
	entry := queued[M]{m, sizeOf(m)}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return io.ErrClosedPipe
	} else if q.overfull(entry.size, 1) {
		return q.noRoom(m)
	}
	q.list, q.bytes = append(q.list, entry), q.bytes+entry.size
	q.some.Broadcast()
	return nil
}

// Await adds a message once there is room for it: it blocks the sender while the receiver
// does not read, until nothing has been taken for a given time. It leaves most of the queue
// to senders that cannot wait.
func (q *Queue[M]) Await(m M, patience time.Duration) error {
	entry := queued[M]{m, sizeOf(m)}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.overfull(entry.size, awaited) && !q.waitForRoom(entry.size, patience) {
		return q.noRoom(m)
	}
	if q.closed {
		return io.ErrClosedPipe
	}
	q.list, q.bytes = append(q.list, entry), q.bytes+entry.size
	q.some.Broadcast()
	return nil
}

// waitForRoom returns once there is room or the queue is closed, and reports false once nothing has been taken for
// a given time.
func (q *Queue[M]) waitForRoom(size int, patience time.Duration) bool {
	late, over, taken := false, false, q.taken
	var timer *time.Timer
	timer = time.AfterFunc(patience, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if over { // while this waited for the lock
			return
		}
		if late = q.taken == taken; !late {
			taken = q.taken
			timer.Reset(patience)
		}
		q.some.Broadcast()
	})
	defer func() {
		over = true
		timer.Stop()
	}()
	for !q.closed && !late && q.overfull(size, awaited) {
		q.some.Wait()
	}
	return !late || q.closed
}

// Patience is how long nothing may be taken of a queue, while others wait for room in it, before
// its reader is taken for dead.
const Patience = 10 * time.Second

// awaited is the part of a queue that Await may fill.
const awaited = 4

// overfull reports whether a message does not go into a part of the queue.
func (q *Queue[M]) overfull(size, part int) bool {
	return len(q.list) >= queueMost/part || len(q.list) > 0 && q.bytes+size > queueBytes/part
}

func (q *Queue[M]) noRoom(m M) error {
	return fault.Newf(fault.Timeout, "send", fmt.Sprintf("%T", m),
		"%d messages of %d bytes wait: the other end does not read", len(q.list), q.bytes)
}

// Take waits for the next message; io.EOF means that there are no more.
func (q *Queue[M]) Take() (m M, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.list) == 0 && !q.closed {
		q.some.Wait()
	}
	if len(q.list) == 0 {
		return m, io.EOF
	}
	first := q.list[0]
	q.list[0] = queued[M]{} // it is not kept alive
	q.list, q.bytes, q.taken = q.list[1:], q.bytes-first.size, q.taken+1
	q.some.Broadcast() // there is room
	return first.message, nil
}

// Stop takes no more messages; those left can still be taken.
func (q *Queue[M]) Stop() {
	q.mu.Lock()
	q.closed = true
	q.some.Broadcast()
	q.mu.Unlock()
}

// Outbox sends messages in order, one at a time, from a queue.
type Outbox[M any] struct {
	*Queue[M]
	failed func(error)
}

// Put adds a message. Where too many wait the outbox fails: no message is lost
// silently.
func (o *Outbox[M]) Put(m M) error { return o.failing(o.Queue.Put(m)) }

// Await adds a message once there is room. Where none becomes free in time the outbox fails,
// too.
func (o *Outbox[M]) Await(m M, patience time.Duration) error {
	return o.failing(o.Queue.Await(m, patience))
}

func (o *Outbox[M]) failing(err error) error {
	if fault.KindOf(err) == fault.Timeout {
		o.Stop()
		o.failed(err)
	}
	return err
}

// NewOutbox starts sending; failed is called once, with the first error.
func NewOutbox[M any](send func(M) error, failed func(error)) *Outbox[M] {
	var once sync.Once
	o := &Outbox[M]{NewQueue[M](), func(err error) { once.Do(func() { go failed(err) }) }}
	go func() {
		for {
			m, err := o.Take()
			if err != nil {
				return
			}
			if err := send(m); err != nil {
				o.Stop()
				o.failed(err)
				return
			}
		}
	}()
	return o
}
