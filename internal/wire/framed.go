package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

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
	raw := make([]byte, n)
	_, err := io.ReadFull(f.r, raw)
	return raw, err
}

// Close closes the stream.
func (f *Framed) Close() error { return f.rw.Close() }

// framedExecutor is an executor's end over frames.
type framedExecutor struct{ *Framed }

// FramedExecutor is an executor's end of a connection that goes over frames.
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

// outboxLimit is how many messages may wait to be sent: a receiver that reads
// so little is as good as dead.
const outboxLimit = 1 << 16

// Outbox sends messages in order, one at a time, without making those wait who
// put them in.
type Outbox[M any] struct {
	mu     sync.Mutex
	some   *sync.Cond
	list   []M
	closed bool
	done   chan struct{}
}

// NewOutbox starts sending; failed is called once, with the first error.
func NewOutbox[M any](send func(M) error, failed func(error)) *Outbox[M] {
	o := &Outbox[M]{done: make(chan struct{})}
	o.some = sync.NewCond(&o.mu)
	go func() {
		defer close(o.done)
		for {
			m, ok := o.take()
			if !ok {
				return
			}
			if err := send(m); err != nil {
				o.shut()
				failed(err)
				return
			}
		}
	}()
	return o
}

func (o *Outbox[M]) take() (m M, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.list) == 0 && !o.closed {
		o.some.Wait()
	}
	if len(o.list) == 0 {
		return m, false
	}
	m, o.list = o.list[0], o.list[1:]
	return m, true
}

// Put hands a message over.
func (o *Outbox[M]) Put(m M) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return io.ErrClosedPipe
	case len(o.list) >= outboxLimit:
		return fault.Newf(fault.Timeout, "send", fmt.Sprintf("%T", m), "%d messages wait: the other end does not read", len(o.list))
	}
	o.list = append(o.list, m)
	o.some.Signal()
	return nil
}

func (o *Outbox[M]) shut() {
	o.mu.Lock()
	o.closed = true
	o.some.Signal()
	o.mu.Unlock()
}

// Close sends what waits and ends.
func (o *Outbox[M]) Close() {
	o.shut()
	<-o.done
}
