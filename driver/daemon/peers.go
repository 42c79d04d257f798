package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/internal/wire"
)

// driversFile says, beside a driver's certificate, which drivers the cluster has, as this one last knew them: a line
// each, with the id and the address.
const driversFile = "drivers"

// who returns this driver as the others know it: over a socket there are none.
func (r *Replica) who() (Peer, error) {
	at, err := r.reachedAt()
	if err != nil || r.admission.self.ID == nil {
		return Peer{}, err
	}
	return Peer{ID: r.admission.self.ID.Name().ID, Address: at}, nil
}

// isAlone reports whether this driver decides alone.
func (r *Replica) isAlone() bool {
	all := r.journal.Peers()
	return r.self.Address == "" || len(all) == 1 && all[0].ID == r.self.ID
}

// hasPeers reports whether the cluster has other drivers.
func (r *Replica) hasPeers() bool { return len(r.journal.Peers()) > 1 }

// first returns the drivers of the cluster, as this one last knew them.
func (r *Replica) first() ([]Peer, error) {
	if r.self.Address == "" {
		return nil, nil
	}
	all, err := readDrivers(TrustDir(r.cfg.DataDir))
	if err != nil || len(all) == 0 {
		return []Peer{r.self}, err
	}
	for n := range all {
		if all[n].ID == r.self.ID {
			all[n].Address = r.self.Address
		}
	}
	return all, nil
}

// readDrivers reads which drivers a cluster has; none where that is not said.
func readDrivers(dir string) (out []Peer, err error) {
	path := filepath.Join(dir, driversFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.NoResources, "read", path, err)
	}
	for n, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		id, address, ok := strings.Cut(line, " ")
		if !ok || !trust.Valid(id) || wire.CheckAddress("use", address) != nil {
			return nil, fault.Newf(fault.Corrupt, "read", path, "line %d is not ID HOST:PORT", n+1).
				WithHint("write the drivers of the cluster into it, as volley init did, or remove it where there is " +
					"one")
		}
		out = append(out, Peer{id, address})
	}
	return out, nil
}

// standing returns what this driver says of the cluster's drivers.
func (r *Replica) standing() wire.Standing {
	d := r.present.Load()
	if !r.opened.Load() {
		return wire.Standing{ID: r.self.ID, Wire: version.Newest, Module: version.Module, Founding: r.founding,
			Why: "it waits for the other drivers of the cluster"}
	}
	s := wire.Standing{ID: r.self.ID, Leads: d != nil, Term: r.journal.Term(), Leader: r.journal.Leader().Address,
		Drivers: r.drivers(), Wire: version.Newest, Module: version.Module, HTTP: r.webReachedAt(),
		Entries: r.journal.raft.LastIndex(), Founding: r.founding, Run: r.runID}
	switch why := r.outside.Load(); {
	case d != nil:
		s.Term = d.term
	case why != nil:
		s.Why = *why
	case r.unable.Load() != nil:
		s.Why = "it cannot lead: " + *r.unable.Load()
	case r.journal.Leads():
		s.Why = "it was elected, and waits until the processes of the driver before are over"
	}
	return s
}

// drivers returns the addresses of the cluster's drivers, this one's first.
func (r *Replica) drivers() []string {
	out := []string{r.self.Address}
	for _, p := range r.journal.Peers() {
		if p.Address != r.self.Address {
			out = append(out, p.Address)
		}
	}
	return out
}

// journalOfJobs refuses a data directory that has jobs and no journal of them: new jobs would
// get the directories of old ones, and the ends of those would be lost.
func journalOfJobs(dir string) error {
	jobs, _ := os.ReadDir(filepath.Join(dir, "jobs"))
	_, err := os.Stat(filepath.Join(dir, "journal"))
	if len(jobs) == 0 || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fault.Newf(fault.Corrupt, "open the data directory", dir,
		"it has jobs (%s and %d more) and no journal of them", jobs[0].Name(), len(jobs)-1).
		WithHint("restore its journal directory, or move jobs away to begin anew")
}

// Addr returns the driver's address.
func (r *Replica) Addr() string { return r.door.Addr().String() }

// reachedAt returns where the others reach the driver.
func (r *Replica) reachedAt() (string, error) {
	if at := r.cfg.Advertise; at != "" {
		host, port, err := net.SplitHostPort(at)
		if _, ours, e := net.SplitHostPort(r.Addr()); err == nil && e == nil && port == "0" {
			at = net.JoinHostPort(host, ours)
		}
		return at, wire.CheckAddress("advertise", at)
	}
	if host, _, err := net.SplitHostPort(r.Addr()); err == nil {
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			return "", fault.Newf(fault.Usage, "listen on", r.cfg.Listen, "executors cannot be told where that is").
				WithHint("give --advertise HOST:PORT, as executors reach this driver")
		}
	}
	return r.Addr(), nil
}

// webReachedAt returns where the others reach REST; empty where it is not served.
func (r *Replica) webReachedAt() string {
	host, port, err := net.SplitHostPort(r.webAddr)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort(r.host(), port)
	}
	return r.webAddr
}

// own returns where a process of this machine reaches the driver.
func (r *Replica) own() string {
	host, port, err := net.SplitHostPort(r.Addr())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return r.Addr()
}

// host returns the name or address of this machine, as the others reach it; empty where no other machine does.
func (r *Replica) host() string {
	host, _, _ := net.SplitHostPort(r.self.Address)
	return host
}

// streams returns the connections by which the drivers replicate the journal.
func (r *Replica) streams() raft.StreamLayer {
	return &streams{Room: r.door.Room(wire.OfJournal(r.founding)), r: r}
}

// streams are the connections between drivers.
type streams struct {
	*wire.Room
	r *Replica
}

// Accept waits for another driver, and refuses all others.
func (s *streams) Accept() (net.Conn, error) {
	for {
		conn, err := s.Room.Accept()
		if err != nil {
			return nil, err
		}
		p, ok := wire.PeerOf(conn)
		if ok && p.Name.Role == trust.Driver && s.r.admission.knows(p) {
			return conn, nil
		}
		conn.Close()
		s.r.refusedConnection(conn.RemoteAddr().String(), fmt.Errorf("%s is no driver of this cluster", p.Name))
	}
}

// Dial connects to another driver.
func (s *streams) Dial(at raft.ServerAddress, wait time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(s.r.ctx, min(wait, dialWait))
	defer cancel()
	return s.r.admission.self.DialProtocol(ctx, string(at), wire.OfJournal(s.r.founding), trust.OfRole(trust.Driver))
}

// dialWait bounds how long a driver waits for a connection to another.
const dialWait = 2 * time.Second

// Standing asks the driver of a data directory how it stands, with its own certificate. It is an error where it takes
// no part in its cluster.
func Standing(ctx context.Context, dataDir string) (s wire.Standing, err error) {
	at, err := addressOf(dataDir)
	if err != nil {
		return s, err
	}
	if at == "" {
		if !wire.Served(wire.DefaultDriver()) {
			return s, fault.Newf(fault.DriverLost, "ask the driver at", wire.DefaultDriver(), "there is none")
		}
		return wire.Standing{Leads: true, Wire: version.Newest, Module: version.Module}, nil
	}
	id, err := trust.OpenIdentity(TrustDir(dataDir))
	if err != nil {
		return s, err
	}
	if s, err = wire.AskStanding(ctx, at, wire.Party{ID: id}); err != nil {
		return s, fault.New(fault.DriverLost, "ask the driver at", at, err)
	}
	why := s.Why
	if why == "" && !s.Leads && s.Leader == "" {
		why = "it knows of no driver that leads"
	}
	if why != "" {
		return s, fault.Newf(fault.DriverLost, "use the driver at", at, "%s", why)
	}
	return s, nil
}
