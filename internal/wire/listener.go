package wire

import (
	"container/list"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/volley-engine/volley/internal/fault"
)

// unauthenticatedMost is how many unauthenticated connections a listener keeps.
const unauthenticatedMost = 256

// Listener bounds the unauthenticated connections: beyond the bound the oldest whose caller has not proved who it
// is is closed. Authenticated ones stay.
type Listener struct {
	net.Listener
	mu              sync.Mutex
	unauthenticated *list.List // of *boundConn, the oldest first
}

type boundConn struct {
	net.Conn
	d     *Listener
	place *list.Element // it is unauthenticated; nil is not
	known atomic.Bool
	read  int // bytes, while it was not
}

// unauthenticatedBytes is how much is read of a caller that has not proved who it is: the messages by which it does,
// or by which it asks for its first certificate.
const unauthenticatedBytes = 64 << 10

// Read reads no more than some bytes of a caller that is not known.
func (g *boundConn) Read(p []byte) (int, error) {
	if g.known.Load() {
		return g.Conn.Read(p)
	}
	n, err := g.Conn.Read(p[:min(len(p), unauthenticatedBytes)])
	if g.read += n; g.read > unauthenticatedBytes && !g.known.Load() {
		g.Close()
		return 0, errors.New("the caller has not said who it is")
	}
	return n, err
}

// Listen serves an address: unix:PATH, a socket that only this user can reach, or HOST:PORT.
func Listen(addr string) (*Listener, error) {
	l, err := listen(addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fault.New(fault.NoResources, "listen on", addr, err).
			WithHint("another process serves it: choose another address")
	}
	if err != nil {
		return nil, fault.New(fault.NoResources, "listen on", addr, err)
	}
	return NewListener(l), nil
}

func listen(addr string) (net.Listener, error) {
	if path, ok := SocketPath(addr); ok {
		return listenSocket(path)
	}
	return net.Listen("tcp", addr)
}

// NewListener bounds the connections of a listener.
func NewListener(l net.Listener) *Listener {
	return &Listener{Listener: l, unauthenticated: list.New()}
}

// socketWaits is how much may wait in a socket of this machine until the other process reads it, where the system
// allows as much: what is beyond has both processes wait for one another in turns.
const socketWaits = 1 << 20

// Accept waits for the next connection.
func (d *Listener) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if socket, is := conn.(*net.UnixConn); is {
		_ = socket.SetWriteBuffer(socketWaits) // a smaller one is slower
	}
	g := &boundConn{Conn: conn, d: d}
	if old := d.enter(g); old != nil {
		old.Conn.Close()
	}
	return g, nil
}

// enter notes an unauthenticated connection, and returns one to close for it.
func (d *Listener) enter(g *boundConn) (old *boundConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g.place = d.unauthenticated.PushBack(g)
	if d.unauthenticated.Len() > unauthenticatedMost {
		old = d.unauthenticated.Front().Value.(*boundConn)
		d.forget(old)
	}
	return old
}

// forget removes a connection from the unauthenticated ones; d.mu is held.
func (d *Listener) forget(g *boundConn) {
	if g.place != nil {
		d.unauthenticated.Remove(g.place)
		g.place = nil
	}
}

func (d *Listener) authenticated(g *boundConn) {
	g.known.Store(true)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(g)
}

// Close ends the connection.
func (g *boundConn) Close() error {
	g.d.mu.Lock()
	g.d.forget(g)
	g.d.mu.Unlock()
	return g.Conn.Close()
}
