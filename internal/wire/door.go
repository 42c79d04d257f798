package wire

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/volley-engine/volley/internal/trust"
)

// Protocols that drivers speak beside that of the cluster's services.
const (
	calls     = "h2"             // the cluster's services, of the driver that leads
	WhoLeads  = "volley-who/1"   // which driver leads
	ofJournal = "volley-raft/1"  // the journal's replication
	ofFiles   = "volley-files/1" // the replication of jobs' files
)

// OfJournal returns the protocol of the journal's replication, and OfFiles that of files', between drivers of one
// founding of a cluster: those of before a restoration do not speak with those of after it.
func OfJournal(founding string) string { return ofJournal + "/" + founding }

// OfFiles returns the protocol of the replication of files: see OfJournal.
func OfFiles(founding string) string { return ofFiles + "/" + founding }

// Door takes the connections of a driver's listener, has each prove who it is, and hands it on by the protocol that it
// has chosen. One whose protocol is not served now is closed.
type Door struct {
	l     *Listener
	proof credentials.TransportCredentials

	mu      sync.Mutex
	rooms   map[string]*Room
	proving map[net.Conn]bool // connections that have not been handed on
	closed  bool
	wg      sync.WaitGroup
}

// NewDoor returns the door of a listener, for a driver of a founding.
func (p Party) NewDoor(l *Listener, g Gate, founding string) *Door {
	proof := p.server(g)
	if p.ID != nil { // the server's order decides
		all := []string{WhoLeads, OfJournal(founding), OfFiles(founding), calls}
		proof = marking{credentials.NewTLS(p.ID.Server(all)), g}
	}
	return &Door{l: l, proof: proof, rooms: map[string]*Room{}, proving: map[net.Conn]bool{}}
}

// Serve takes connections until the door is closed.
func (d *Door) Serve() {
	for {
		conn, err := d.l.Accept()
		if err != nil {
			return
		}
		d.mu.Lock()
		closed := d.closed
		if !closed {
			d.proving[conn] = true
			d.wg.Go(func() { d.enter(conn) })
		}
		d.mu.Unlock()
		if closed {
			conn.Close()
		}
	}
}

// Close ends the listener, and the connections that have not been handed on, and waits until these are over.
func (d *Door) Close() error {
	err := d.l.Close()
	d.mu.Lock()
	all := d.rooms
	d.rooms, d.closed = map[string]*Room{}, true
	for conn := range d.proving {
		conn.Close()
	}
	d.mu.Unlock()
	for _, r := range all {
		r.Close()
	}
	d.wg.Wait()
	return err
}

// Addr returns the listener's address.
func (d *Door) Addr() net.Addr { return d.l.Addr() }

// enter has a connection prove who it is.
func (d *Door) enter(raw net.Conn) {
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.proving, raw)
	}()
	_ = raw.SetDeadline(time.Now().Add(handshakeWait)) // a connection without one fails at once
	conn, info, err := d.proof.ServerHandshake(raw)
	if err != nil {
		raw.Close()
		return
	}
	_ = conn.SetDeadline(time.Time{})
	a := &arrived{Conn: conn, info: info}
	if r := d.room(a.protocol()); r == nil || !r.take(a) {
		conn.Close()
	}
}

func (d *Door) room(protocol string) *Room {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rooms[protocol]
}

// Calls returns the connections that speak the cluster's services.
func (d *Door) Calls() *Room { return d.Room(calls) }

// Room returns the connections of a protocol, in the place of one that was there.
func (d *Door) Room(protocol string) *Room {
	r := &Room{door: d, protocol: protocol, in: make(chan net.Conn), closed: make(chan struct{})}
	d.mu.Lock()
	old, closed := d.rooms[protocol], d.closed
	if !closed {
		d.rooms[protocol] = r
	}
	d.mu.Unlock()
	if old != nil {
		old.Close()
	}
	if closed { // there are no more connections
		r.Close()
	}
	return r
}

// Room is a listener for the connections of one protocol.
type Room struct {
	door     *Door
	protocol string
	in       chan net.Conn
	once     sync.Once
	closed   chan struct{}
}

func (r *Room) take(conn net.Conn) bool {
	select {
	case r.in <- conn:
		return true
	case <-r.closed:
		return false
	}
}

// Accept waits for the next connection.
func (r *Room) Accept() (net.Conn, error) {
	select {
	case conn := <-r.in:
		return conn, nil
	case <-r.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the room: connections of its protocol are closed from then on.
func (r *Room) Close() error {
	r.once.Do(func() {
		close(r.closed)
		r.door.mu.Lock()
		defer r.door.mu.Unlock()
		if r.door.rooms[r.protocol] == r {
			delete(r.door.rooms, r.protocol)
		}
	})
	return nil
}

// Addr returns the door's address.
func (r *Room) Addr() net.Addr { return r.door.Addr() }

// arrived is a connection whose caller has proved who it is.
type arrived struct {
	net.Conn
	info credentials.AuthInfo
}

// protocol returns what the caller wants to speak.
func (a *arrived) protocol() string {
	if t, ok := a.info.(credentials.TLSInfo); ok {
		return t.State.NegotiatedProtocol
	}
	return calls
}

// PeerOf returns who is at the other end of a connection that a door has handed on; false where that is not known.
func PeerOf(conn net.Conn) (trust.Peer, bool) {
	a, ok := conn.(*arrived)
	if !ok {
		return trust.Peer{}, false
	}
	t, ok := a.info.(credentials.TLSInfo)
	if !ok {
		return trust.Peer{}, false
	}
	return trust.PeerOf(t.State)
}

// DialProtocol connects to a driver by one of its protocols beside the cluster's services.
func (p Party) DialProtocol(ctx context.Context, addr, protocol string, wanted func(trust.Name) error) (net.Conn,
	error) {
	if p.ID == nil {
		return nil, NoCertificate("dial", addr)
	}
	raw, err := Connect(ctx, addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	conn, _, err := credentials.NewTLS(p.ID.Client([]string{protocol}, wanted)).ClientHandshake(ctx, addr, raw)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		raw.Close()
		return nil, err
	}
	return conn, nil
}
