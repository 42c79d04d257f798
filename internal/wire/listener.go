package wire

import (
	"container/list"
	"net"
	"sync"

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
}

// Listen serves an address: unix:PATH, a socket that only this user can reach, or HOST:PORT.
func Listen(addr string) (*Listener, error) {
	l, err := listen(addr)
	if err != nil {
		return nil, fault.New(fault.NoResources, "listen on", addr, err).
			WithHint("is another process serving it? choose another address")
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

// Accept waits for the next connection.
func (d *Listener) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil {
		return nil, err
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
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(g)
}

// Close ends the connection.
func (g *boundConn) Close() error {
	g.d.authenticated(g) // there is nothing to bound any more
	return g.Conn.Close()
}
