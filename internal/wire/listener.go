package wire

import (
	"container/list"
	"net"
	"sync"
)

// strangersMost is how many connections on which nobody has shown a token yet a
// listener keeps.
const strangersMost = 256

// Doorkeeper is a listener that bounds how many connections strangers hold: where
// there are too many, the oldest on which nobody has shown a token is closed. Whoever
// has shown one stays.
type Doorkeeper struct {
	net.Listener
	mu        sync.Mutex
	strangers *list.List               // of *guest, the oldest first
	byAddr    map[string]*list.Element // by the caller's address
}

type guest struct {
	net.Conn
	d    *Doorkeeper
	once sync.Once
}

// NewDoorkeeper keeps the door of a listener.
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

// enter notes a stranger, and returns one who has to go for it.
func (d *Doorkeeper) enter(g *guest) (old *guest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.byAddr[g.RemoteAddr().String()] = d.strangers.PushBack(g)
	if d.strangers.Len() > strangersMost {
		return d.strangers.Front().Value.(*guest)
	}
	return nil
}

// Known notes that whoever calls from an address has shown a token.
func (d *Doorkeeper) Known(addr string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.byAddr[addr]; e != nil {
		d.strangers.Remove(e)
		delete(d.byAddr, addr)
	}
}

// Close ends the connection.
func (g *guest) Close() error {
	g.once.Do(func() { g.d.Known(g.RemoteAddr().String()) })
	return g.Conn.Close()
}
