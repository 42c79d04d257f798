package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/internal/wire"
)

// Drivers lists the cluster's drivers.
func (d *Daemon) Drivers(ctx context.Context, _ *wire.DriversRequest) (*wire.DriversReply, error) {
	reply := &wire.DriversReply{}
	var all sync.WaitGroup
	for _, s := range d.journal.servers() {
		i := &wire.DriverInfo{Id: string(s.ID), Address: string(s.Address), State: "follows"}
		if s.Suffrage != raft.Voter {
			i.State = "catches up"
		}
		reply.Drivers = append(reply.Drivers, i)
		if i.Id == d.self.ID || d.self.Address == "" {
			i.State, i.Version = "leads", shownVersion(version.Module, version.Newest)
			continue
		}
		all.Go(func() {
			ask, cancel := context.WithTimeout(ctx, standingWait)
			defer cancel()
			standing, err := wire.AskStanding(ask, i.Address, d.admission.self)
			if err != nil {
				i.State, i.Why = "silent", err.Error()
				return
			}
			i.Version = shownVersion(standing.Module, standing.Wire)
			i.Why = cmp.Or(standing.Why, d.behind(standing.Wire), d.lacking(i.Id))
		})
	}
	all.Wait()
	slices.SortFunc(reply.Drivers, func(a, b *wire.DriverInfo) int { return strings.Compare(a.Id, b.Id) })
	return reply, nil
}

// standingWait bounds how long another driver is waited for that is to say how it stands.
const standingWait = 2 * time.Second

// servers returns the drivers that keep the journal, as raft has them.
func (r *Raft) servers() []raft.Server {
	f := r.raft.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return f.Configuration().Servers
}

// RemoveDriver takes a driver out of the cluster.
func (d *Daemon) RemoveDriver(ctx context.Context, req *wire.RemoveDriverRequest) (*wire.RemoveDriverReply, error) {
	all := d.journal.servers()
	switch {
	case !slices.ContainsFunc(all, func(s raft.Server) bool { return string(s.ID) == req.Id }):
		return nil, status.Errorf(codes.NotFound, "there is no driver %q", req.Id)
	case req.Id == d.self.ID && len(all) == 1:
		return nil, status.Error(codes.InvalidArgument, "it is the only driver")
	case req.Id == d.self.ID:
		return nil, status.Errorf(codes.InvalidArgument, "driver %s leads: stop it, so that another does, and remove "+
			"it then", req.Id)
	}
	d.admission.change.Lock()
	defer d.admission.change.Unlock()
	if err := d.admission.write(ctx, Record{Kind: DriverRemoved, ID: req.Id, At: time.Now().UnixNano()}); err != nil {
		return nil, err
	}
	if err := d.journal.raft.RemoveServer(raft.ServerID(req.Id), 0, raftWait).Error(); err != nil {
		return nil, status.Errorf(codes.Unavailable, "driver %s was not removed: %v", req.Id, err)
	}
	return &wire.RemoveDriverReply{}, nil
}

// Enrol takes a driver in that has joined, or again, where it is reached otherwise or has lost its journal: that has no
// vote until it has all that the others have.
func (d *Daemon) Enrol(ctx context.Context, req *wire.EnrolRequest) (*wire.EnrolReply, error) {
	if err := wire.CheckAddress("enrol", req.Address); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	id, removed := wire.CallerOf(ctx).Peer.Name.ID, false
	d.admission.read(func(a *Access) { removed = slices.Contains(a.Removed, id) })
	if removed {
		return nil, status.Errorf(codes.PermissionDenied, "driver %s was removed from the cluster: its place is taken "+
			"by another, of volley token create --role driver", id)
	}
	if why := d.behind(wire.SideOf(ctx).Newest); why != "" {
		return nil, status.Errorf(codes.FailedPrecondition, "driver %s was not taken in: %s", id, why)
	}
	if err := d.enrol(ctx, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(req.Address)},
		req.Anew); err != nil {
		return nil, status.Errorf(codes.Unavailable, "driver %s was not taken in: %v", id, err)
	}
	d.log.Info("a driver was taken in", "driver", id, "address", req.Address, "with an empty journal", req.Anew)
	return &wire.EnrolReply{}, nil
}

// enrol makes a driver a voter once it answers at its address and has caught up.
func (d *Daemon) enrol(ctx context.Context, s raft.Server, anew bool) error {
	if _, err := d.standingAt(ctx, s); err != nil {
		return err
	}
	known := slices.ContainsFunc(d.journal.servers(), func(o raft.Server) bool {
		return o.ID == s.ID && o.Suffrage == raft.Voter
	})
	var err error
	if anew && known {
		err = d.journal.raft.RemoveServer(s.ID, 0, raftWait).Error()
	}
	if err == nil && (anew || !known) {
		err = d.journal.raft.AddNonvoter(s.ID, s.Address, 0, raftWait).Error()
	}
	if err == nil {
		err = d.awaitCaughtUp(ctx, s)
	}
	if err == nil {
		err = d.journal.raft.AddVoter(s.ID, s.Address, 0, raftWait).Error()
	}
	return err
}

// standingAt asks a driver how it stands, at the address by which it says that it is reached.
func (d *Daemon) standingAt(ctx context.Context, s raft.Server) (wire.Standing, error) {
	ask, cancel := context.WithTimeout(ctx, standingWait)
	defer cancel()
	standing, err := wire.AskStanding(ask, string(s.Address), d.admission.self)
	if err == nil && standing.ID != string(s.ID) {
		err = fmt.Errorf("at %s there is driver %s", s.Address, standing.ID)
	}
	if err != nil {
		return standing, fmt.Errorf("it is not reached at %s: %w", s.Address, err)
	}
	return standing, nil
}

// awaitCaughtUp waits until a driver has what this one has now.
func (d *Daemon) awaitCaughtUp(ctx context.Context, s raft.Server) error {
	want := d.journal.raft.LastIndex()
	for end := time.Now().Add(catchUpWait); ; {
		standing, err := d.standingAt(ctx, s)
		switch {
		case err == nil && standing.Entries >= want:
			return nil
		case time.Now().After(end):
			return errors.Join(err, fmt.Errorf("its journal has %d of %d entries after %v", standing.Entries, want,
				catchUpWait))
		}
		select {
		case <-time.After(enrolAgain / 10):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// catchUpWait bounds how long a driver that is taken in may take to get the journal.
const catchUpWait = 30 * time.Second

// kept is what a snapshot keeps.
type kept struct {
	State   State  `json:"state"`
	Term    uint64 `json:"term"`              // of the journal
	Cluster string `json:"cluster,omitempty"` // empty is one user's
}

// Snapshot sends what the journal has.
func (d *Daemon) Snapshot(_ *wire.SnapshotRequest, stream wire.Cluster_SnapshotServer) error {
	kept := kept{State: d.journal.State(), Term: d.term}
	if d.self.Address != "" {
		kept.Cluster = d.admission.authorities.Cluster()
	}
	raw, err := json.Marshal(kept)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	raw = disk.Seal(append(raw, '\n'))
	for len(raw) > 0 {
		n := min(len(raw), 256<<10)
		if err := stream.Send(&wire.FilePart{Data: raw[:n]}); err != nil {
			return err
		}
		raw = raw[n:]
	}
	return nil
}

// nextID returns the id of the driver that joins next: ids are never used again as long as it is known that they were.
func (r *Replica) nextID() string {
	most := 0
	note := func(id string) {
		if n, err := strconv.Atoi(id); err == nil {
			most = max(most, n)
		}
	}
	for _, p := range r.journal.servers() {
		note(string(p.ID))
	}
	prefix := trust.Name{Cluster: r.admission.authorities.Cluster(), Role: trust.Driver}.String()
	r.admission.read(func(a *Access) {
		for _, id := range a.Removed {
			note(id)
		}
		for _, m := range a.Members {
			if id, ok := strings.CutPrefix(m.Name, prefix); ok {
				note(id)
			}
		}
	})
	return strconv.Itoa(most + 1)
}

// bundle returns what a driver is made of that joins.
func (r *Replica) bundle() ([]byte, error) {
	all, err := r.admission.authorities.Export()
	if err != nil {
		return nil, err
	}
	return json.Marshal(driverBundle{Authorities: all, Drivers: r.journal.Peers(), Founding: r.founding})
}

// enrol has this driver taken in by the others, until it is.
func (r *Replica) enrol(anew bool) {
	for why := ""; ; {
		err := r.enrolOnce(anew)
		if err == nil && anew {
			err = r.complete()
		}
		if err == nil {
			r.journal.votes.Store(true)
			r.log.Info("this driver is one of the cluster's", "id", r.self.ID, "address", r.self.Address)
			return
		}
		if text := err.Error(); text != why {
			why = text
			r.outside.Store(&why)
			r.log.Warn("this driver is not taken in yet; it tries again", "error", err)
		}
		select {
		case <-time.After(enrolAgain):
		case <-r.ctx.Done():
			return
		}
	}
}

// enrolAgain is the time between two attempts to be taken in.
const enrolAgain = time.Second

func (r *Replica) enrolOnce(anew bool) error {
	all, err := r.first()
	if err != nil {
		return err
	}
	var list []string
	for _, p := range all {
		if p.ID != r.self.ID {
			list = append(list, p.Address)
		}
	}
	conn, err := wire.DialDriver(strings.Join(list, ","), r.admission.self)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(r.ctx, 4*raftWait)
	defer cancel()
	_, err = wire.NewClusterClient(conn).Enrol(ctx, &wire.EnrolRequest{Address: r.self.Address, Anew: anew})
	if err != nil {
		return wire.CallError("be taken in by", strings.Join(list, ","), err)
	}
	for end := time.Now().Add(raftWait); !r.isVoter(); {
		if time.Now().After(end) {
			return errors.New("the journal has not come yet")
		}
		select {
		case <-time.After(enrolAgain / 10):
		case <-r.ctx.Done():
			return r.ctx.Err()
		}
	}
	r.outside.Store(nil)
	return nil
}

// isVoter reports whether this driver is one of those that the journal names, as far as this driver has it.
func (r *Replica) isVoter() bool {
	return slices.ContainsFunc(r.journal.servers(), func(s raft.Server) bool {
		return string(s.ID) == r.self.ID && s.Suffrage == raft.Voter
	})
}
