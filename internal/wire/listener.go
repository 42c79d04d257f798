package wire

import (
	"container/list"
	"net"
	"sync"
)

// strangersMost is how many unauthenticated connections a listener keeps.
const strangersMost = 256

// Doorkeeper is a listener that bounds the unauthenticated connections: beyond the
// bound the oldest without a token is closed. Authenticated ones stay.
type Doorkeeper struct {
	net.Listener
	mu        sync.Mutex
	strangers *list.List               // of *guest, the oldest first
	byAddr    map[string]*list.Element // by the caller's address
}

type guest struct {
	net.Conn
	d     *Doorkeeper
	place *list.Element // it is unauthenticated
}

// NewDoorkeeper bounds the connections of a listener.
func NewDoorkeeper(l net.Listener) *Doorkeeper {
	return &Doorkeeper{Listener: l, strangers: list.New(), byAddr: map[string]*list.Element{}}
}

// Accept waits for the next connection.
func (d *Doorkeeper) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := &guest{Conn: conn, d: d}
	if old := d.enter(g); old != nil {
		old.Close()
	}
	return g, nil
}

// enter notes an unauthenticated connection, and returns one to close for it.
func (d *Doorkeeper) enter(g *guest) (old *guest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g.place = d.strangers.PushBack(g)
	d.byAddr[g.RemoteAddr().String()] = g.place
	if d.strangers.Len() > strangersMost {
		old = d.strangers.Front().Value.(*guest)
		d.forget(old.place)
	}
	return old
}

// forget removes a connection from the unauthenticated ones; d.mu is held. Another caller
// may have its address by now.
func (d *Doorkeeper) forget(e *list.Element) {
	addr := e.Value.(*guest).RemoteAddr().String()
	d.strangers.Remove(e)
	if d.byAddr[addr] == e {
		delete(d.byAddr, addr)
	}
}

// Known notes that a caller from an address has shown a token.
func (d *Doorkeeper) Known(addr string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.byAddr[addr]; e != nil {
		d.forget(e)
	}
}

// Close ends the connection.
func (g *guest) Close() error {
	g.d.mu.Lock()
	g.d.forget(g.place)
	g.d.mu.Unlock()
	return g.Conn.Close()
}
