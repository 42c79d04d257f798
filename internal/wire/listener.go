package wire

import (
	"container/list"
	"net"
	"sync"
)

// unauthenticatedMost is how many unauthenticated connections a listener keeps.
const unauthenticatedMost = 256

// Listener bounds the unauthenticated connections: beyond the
// bound the oldest without a token is closed. Authenticated ones stay.
type Listener struct {
	net.Listener
	mu              sync.Mutex
	unauthenticated *list.List               // of *boundConn, the oldest first
	byAddr          map[string]*list.Element // by the caller's address
}

type boundConn struct {
	net.Conn
	d     *Listener
	place *list.Element // it is unauthenticated
}

// NewListener bounds the connections of a listener.
func NewListener(l net.Listener) *Listener {
	return &Listener{Listener: l, unauthenticated: list.New(), byAddr: map[string]*list.Element{}}
}

// Accept waits for the next connection.
func (d *Listener) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := &boundConn{Conn: conn, d: d}
	if old := d.enter(g); old != nil {
		old.Close()
	}
	return g, nil
}

// enter notes an unauthenticated connection, and returns one to close for it.
func (d *Listener) enter(g *boundConn) (old *boundConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g.place = d.unauthenticated.PushBack(g)
	d.byAddr[g.RemoteAddr().String()] = g.place
	if d.unauthenticated.Len() > unauthenticatedMost {
		old = d.unauthenticated.Front().Value.(*boundConn)
		d.forget(old.place)
	}
	return old
}

// forget removes a connection from the unauthenticated ones; d.mu is held. Another caller
// may have its address by now.
func (d *Listener) forget(e *list.Element) {
	addr := e.Value.(*boundConn).RemoteAddr().String()
	d.unauthenticated.Remove(e)
	if d.byAddr[addr] == e {
		delete(d.byAddr, addr)
	}
}

// Authenticated notes that a caller from an address has shown a token.
func (d *Listener) Authenticated(addr string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.byAddr[addr]; e != nil {
		d.forget(e)
	}
}

// Close ends the connection.
func (g *boundConn) Close() error {
	g.d.mu.Lock()
	g.d.forget(g.place)
	g.d.mu.Unlock()
	return g.Conn.Close()
}
