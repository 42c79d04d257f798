package daemon

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// until waits for something.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(bound); !is(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// TestADriverWithoutItsJournalVotesForNone, however often it is started: it has confirmed what it does not have.
func TestADriverWithoutItsJournalVotesForNone(t *testing.T) {
	t.Parallel()
	c := newThree(t, "exit 1")
	n := (c.leader() + 1) % 3
	if _, err := c.client().Submit(context.Background(), &wire.SubmitRequest{Job: "logistic"}); err != nil {
		t.Fatal(err)
	}
	for k := range 3 {
		c.stop(k)
	}
	if err := os.RemoveAll(filepath.Join(c.data(n), "journal")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c.start(n)
		until(t, "it does not say why it is outside", func() bool { return c.all[n].outside.Load() != nil })
		if c.all[n].journal.votes.Load() || len(c.all[n].journal.servers()) > 0 {
			t.Fatal("it votes, or has begun a cluster")
		}
		c.stop(n)
	}
	c.start(n)
	c.start((n + 1) % 3)
	until(t, "it says nothing", func() bool { return c.all[n].outside.Load() != nil })
	if c.all[(n+1)%3].journal.Leads() {
		t.Error("another leads with its vote")
	}
	c.start((n + 2) % 3)
	c.state(n, "it has not got the job back", func(s State) bool { return s.Last == 1 })
	until(t, "it does not vote again", c.all[n].journal.votes.Load)
	if hasFile(c.all[n].trustFile(incompleteFile)) {
		t.Error("it is marked still")
	}
}

// TestANewDriverGetsWhatJobsHaveMade, though nothing happens to these any more.
func TestANewDriverGetsWhatJobsHaveMade(t *testing.T) {
	t.Parallel()
	c := newThree(t, "echo said >&2; exit 1")
	n := c.leader()
	client := c.client()
	reply, err := client.Submit(context.Background(), &wire.SubmitRequest{Job: "logistic"})
	if err != nil {
		t.Fatal(err)
	}
	c.jobIs(client, reply.Id, JobFailed)
	other := (n + 1) % 3
	c.stop(other)
	if err := os.RemoveAll(filepath.Join(c.data(other), "jobs")); err != nil {
		t.Fatal(err)
	}
	c.start(other)
	until(t, "it has not got the job's log", func() bool {
		return hasFile(filepath.Join(c.data(other), "jobs", reply.Id, "log.0"))
	})
}

// TestDriversOfBeforeDoNotUndoARestoration: they do not speak with those of after it.
func TestDriversOfBeforeDoNotUndoARestoration(t *testing.T) {
	t.Parallel()
	c := newThree(t, "exec sleep 600")
	n := c.leader()
	client := c.client()
	if _, err := client.Submit(context.Background(), &wire.SubmitRequest{Job: "logistic"}); err != nil {
		t.Fatal(err)
	}
	snap := filepath.Join(c.dir, "snapshot")
	if err := os.WriteFile(snap, snapshotOf(t, client), 0o600); err != nil {
		t.Fatal(err)
	}
	term := c.all[n].present.Load().term
	for k := range 3 {
		c.stop(k)
	}
	if err := os.Rename(filepath.Join(c.data(0), "journal"), filepath.Join(c.data(0), "before")); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(c.data(1), snap); err == nil {
		t.Error("over a journal")
	}
	if jobs, err := Restore(c.data(0), snap); err != nil || jobs != 1 {
		t.Fatalf("%d jobs: %v", jobs, err)
	}
	c.start(0)
	d := c.all[0].present.Load()
	if d == nil || d.term <= term {
		t.Fatalf("it leads in %+v, and another led in %d", d, term)
	}
	c.start(1)
	c.start(2)
	until(t, "those of before do not lead by themselves", func() bool {
		return c.all[1].present.Load() != nil || c.all[2].present.Load() != nil
	})
	if _, err := d.jobs.submit(&wire.SubmitRequest{Job: "logistic"}, "me"); err != nil {
		t.Error(err)
	}
	if !c.all[0].journal.Leads() || c.all[0].present.Load() != d {
		t.Error("the driver that was restored does not lead any more")
	}
}

// snapshotOf brings a snapshot of the journal.
func snapshotOf(t *testing.T, client wire.ClusterClient) (raw []byte) {
	t.Helper()
	stream, err := client.Snapshot(context.Background(), &wire.SnapshotRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		part, err := stream.Recv()
		if err != nil {
			return raw
		}
		raw = append(raw, part.Data...)
	}
}

// TestADriverThatWasRemovedStaysOut, its number is not used again, and one that is not reached is not taken in.
func TestADriverThatWasRemovedStaysOut(t *testing.T) {
	t.Parallel()
	c := newThree(t, "exit 1")
	n := c.leader()
	out := (n + 1) % 3
	d, client := c.all[n].present.Load(), c.client()
	if _, err := client.RemoveDriver(context.Background(),
		&wire.RemoveDriverRequest{Id: c.all[out].self.ID}); err != nil {
		t.Fatal(err)
	}
	by := c.all[out].admission.self
	conn, err := wire.DialDriver(c.all[n].self.Address, by)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = wire.NewClusterClient(conn).Enrol(context.Background(), &wire.EnrolRequest{
		Address: c.all[out].self.Address})
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("it is taken in again: %v", err)
	}
	if id := d.nextID(); id != "4" {
		t.Errorf("the next is %s", id)
	}
	strange := issued(t, d, trust.Name{Role: trust.Driver, ID: "4"}, time.Hour, time.Now())
	conn4, err := wire.DialDriver(c.all[n].self.Address, strange)
	if err != nil {
		t.Fatal(err)
	}
	defer conn4.Close()
	_, err = wire.NewClusterClient(conn4).Enrol(context.Background(), &wire.EnrolRequest{Address: "127.0.0.1:1"})
	if status.Code(err) != codes.Unavailable || len(d.journal.servers()) != 2 {
		t.Errorf("one that is not reached: %v, and there are %v", err, d.journal.servers())
	}
}
