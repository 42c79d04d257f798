package wire

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/trust"
)

// TestSilenceIsNoRefusal: a driver behind a bad link is asked again, one that refuses is not.
func TestSilenceIsNoRefusal(t *testing.T) {
	t.Parallel()
	ids := identities(t, trust.Admin)
	by := Party{ID: ids[0]}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	const wait = 50 * time.Millisecond
	_, _, err = leader(context.Background(), wait, []string{silent.Addr().String()}, by)
	if !errors.Is(err, errSilent) {
		t.Error(err)
	}
	_, _, err = leader(context.Background(), wait, []string{gone.Addr().String()}, by)
	if err == nil || errors.Is(err, errSilent) || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
	both := []string{silent.Addr().String(), gone.Addr().String()}
	if _, _, err := leader(context.Background(), wait, both, by); !errors.Is(err, errSilent) ||
		!strings.Contains(err.Error(), "others do not answer") {
		t.Error(err)
	}
}

// TestSilenceAfterTheHandshakeIsNoRefusal: the connection's deadline may pass before the context's.
func TestSilenceAfterTheHandshakeIsNoRefusal(t *testing.T) {
	t.Parallel()
	ids := identities(t, trust.Driver, trust.Admin)
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := Party{ID: ids[0]}.NewDoor(l, Gate{Knows: func(trust.Peer) bool { return true }}, "0")
	d.Room(WhoLeads) // takes connections, and does not answer
	go d.Serve()
	defer d.Close()
	for range 20 {
		_, _, err = leader(context.Background(), 30*time.Millisecond, []string{l.Addr().String()}, Party{ID: ids[1]})
		if !errors.Is(err, errSilent) {
			t.Fatal(err)
		}
	}
}

// TestTheEndOfTheWaitHidesNothing: a driver that has said that it knows of none that leads has said so also where the
// last ask of it is cut short.
func TestTheEndOfTheWaitHidesNothing(t *testing.T) {
	t.Parallel()
	ids := identities(t, trust.Driver, trust.Admin)
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	d := Party{ID: ids[0]}.NewDoor(l, Gate{Knows: func(trust.Peer) bool { return true }}, "0")
	var asked atomic.Int32
	go ServeStanding(d.Room(WhoLeads), func() Standing {
		if asked.Add(1) > 1 {
			<-ctx.Done()
		}
		return Standing{Why: "it is alone"}
	})
	go d.Serve()
	defer d.Close()
	_, _, err = patiently(ctx, []string{l.Addr().String()}, Party{ID: ids[1]})
	if !errors.Is(err, errNoneLeads) || !strings.Contains(err.Error(), "it is alone") || asked.Load() < 2 {
		t.Errorf("after %d asks: %v", asked.Load(), err)
	}
}

// identities returns those of the given roles in a cluster of their own.
func identities(t *testing.T, roles ...trust.Role) (ids []*trust.Identity) {
	t.Helper()
	a, err := trust.NewAuthority("test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	certificates, key, err := a.PEM()
	if err != nil {
		t.Fatal(err)
	}
	all := []trust.AuthorityPEM{{Certificates: certificates, Key: key}}
	as, err := trust.ImportAuthorities(filepath.Join(t.TempDir(), "trust"), all)
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range roles {
		b, err := as.Issue(trust.Name{Cluster: "test", Role: role, ID: "ann"}, time.Hour, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		id, err := trust.NewIdentity(b)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}
