package daemon

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
)

// TestTheWaitForTheJournalIsBounded: a record that is not applied in time is an
// error, and not a wait without an end.
func TestTheWaitForTheJournalIsBounded(t *testing.T) {
	r, err := OpenRaft(t.TempDir(), hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	r.fsm.mu.Lock() // as on a disk that hangs: nothing is applied any more
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- r.Append(ctx, Record{Kind: JobSubmitted, Job: "job-000001", Spec: &JobSpec{}}) }()
	select {
	case err := <-done:
		if !fault.Is(err, fault.Timeout) {
			t.Errorf("a record that is not applied: %v", err)
		}
	case <-time.After(bound / 3):
		t.Error("a write to the journal waits longer than it was told to")
	}
	r.fsm.mu.Unlock()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestASlowJournalDoesNotKeepMessages: a step that waits for the journal keeps no
// message of the job from an executor.
func TestASlowJournalDoesNotKeepMessages(t *testing.T) {
	d := scriptedDaemon(t, "exec sleep 600")
	e := asExecutor(t, d, "e1")
	w := submitted(t, d)
	p := asProcess(t, d, w)
	brought := awaitRelay(e)
	d.journal.fsm.mu.Lock()
	defer d.journal.fsm.mu.Unlock()
	for _, m := range []*wire.FromJob{{Body: &wire.FromJob_Commit{Commit: &wire.Commit{Step: 1}}},
		{Body: &wire.FromJob_Relay{Relay: &wire.Relay{Peer: "e1", Data: []byte{1}}}}} {
		if err := p.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-brought:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(bound / 3):
		t.Error("a message waits for a step that waits for the journal")
	}
}

// TestAnEntryThatMayBeAppliedYetIsNotSaidToBeRefused: a client that was told so would find the job
// after the next start.
func TestAnEntryThatMayBeAppliedYetIsNotSaidToBeRefused(t *testing.T) {
	for err, want := range map[error]fault.Kind{
		raft.ErrLeadershipLost: fault.Timeout, raft.ErrRaftShutdown: fault.Timeout,
		raft.ErrNotLeader: fault.NoResources, raft.ErrEnqueueTimeout: fault.NoResources,
	} {
		if got := fault.KindOf(journalFault(err)); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}
