package daemon

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/internal/wire"
)

// TestVersionsThatDoNotFitAreRefused by name, of executors, callers and programs.
func TestVersionsThatDoNotFitAreRefused(t *testing.T) {
	d := testDaemon(t)
	ctx, conn := connected(t, d, "")
	for n, c := range []struct {
		side version.Side
		why  string
	}{
		{version.Side{Oldest: "volley/5", Newest: "volley/6", Module: "0.9.9"}, "it is of volley 0.9.9"},
		{version.Side{Oldest: "volley/4"}, "it speaks volley/4"},
		{version.Side{Oldest: "volley/9", Newest: "volley/12", Module: "0.3.0"}, "it speaks volley/9 to volley/12"},
		{version.Side{Oldest: "volley/5"}, ""},
		{version.Side{Oldest: "volley/5", Newest: "volley/7", Module: "0.3.1"}, ""},
	} {
		s, err := wire.NewClusterClient(conn).Serve(ctx)
		if err == nil {
			err = s.Send(&wire.FromExecutor{Body: &wire.FromExecutor_Hello{Hello: &wire.Hello{Version: c.side.Oldest,
				Newest: c.side.Newest, Module: c.side.Module, Name: fmt.Sprint("e", n),
				Incarnation: trust.NewSecret(), Slots: 1}}})
		}
		if err == nil {
			_, err = s.Recv()
		}
		switch {
		case c.why == "" && err != nil:
			t.Errorf("%+v: %v", c.side, err)
		case c.why != "" && (status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), c.why)):
			t.Errorf("%+v: %v, want %q", c.side, err, c.why)
		}
	}
	other := plain(t, d.Addr(), wire.Party{}, &atomic.Int64{})
	err := call(other, wire.Cluster_Jobs_FullMethodName, 0, "volley-version", "volley/5", "volley-newest", "volley/6",
		"volley-module", "0.9.9")
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "0.9.9") {
		t.Errorf("a caller of 0.9.9: %v", err)
	}
}

// TestTheLevelOfAJournal never falls, survives a snapshot, and keeps drivers out that do not read it.
func TestTheLevelOfAJournal(t *testing.T) {
	m := &machine{}
	raise := func(level string) {
		raw, err := json.Marshal([]Record{{Kind: LevelRaised, Level: level}})
		if err != nil {
			t.Fatal(err)
		}
		if err, failed := m.Apply(&raft.Log{Data: raw}).(error); failed {
			t.Fatal(err)
		}
	}
	if got := m.level(); got != version.Oldest {
		t.Errorf("at first %s", got)
	}
	raise(version.Newest)
	raise(version.Oldest)
	if got := m.level(); got != version.Newest || m.unread() != nil {
		t.Errorf("%s, %v", got, m.unread())
	}
	if s := m.copy(); s.Level != version.Newest {
		t.Errorf("a snapshot has %q", s.Level)
	}
	raise("volley/999")
	if err := m.unread(); err == nil || !strings.Contains(err.Error(), "it is of volley/999") {
		t.Errorf("a driver that is too old: %v", err)
	}
}

// TestADriverRaisesTheLevelOnItsOwn where it is alone, and takes no driver in that is behind.
func TestADriverRaisesTheLevelOnItsOwn(t *testing.T) {
	d := testDaemon(t)
	until(t, "the level", func() bool { return d.journal.fsm.level() == version.Newest })
	if err := d.needs("this", version.Newest); err != nil {
		t.Error(err)
	}
	if why := d.behind(version.Oldest); why == "" || d.behind(version.Newest) != "" || d.behind("") == "" {
		t.Errorf("%q, %q, %q", why, d.behind(version.Newest), d.behind(""))
	}
	if err := d.needs("that", "volley/999"); status.Code(err) != codes.FailedPrecondition {
		t.Error(err)
	}
}

// TestWhoCannotLeadHandsOverLater each time: drivers that all cannot would elect each other without end.
func TestWhoCannotLeadHandsOverLater(t *testing.T) {
	last := time.Duration(-1)
	for n := range 40 {
		wait := ascendWait(n)
		if wait < last || wait > 30*time.Second || n == 0 && wait != 0 || n > 8 && wait != 30*time.Second {
			t.Errorf("after %d times: %v, and %v before", n, wait, last)
		}
		last = wait
	}
}
