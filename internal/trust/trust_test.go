package trust

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/fault"
)

func TestNames(t *testing.T) {
	for _, n := range []Name{{"c", Executor, "a", ""}, {"c", Driver, "1", ""}, {"prod.eu", Job, "job-000001", ""},
		{"c", Job, "job-000001", "host-12"}, {"c", Submit, "alice_b", ""}} {
		u, err := url.Parse(n.String())
		if err != nil {
			t.Fatal(err)
		}
		if back, err := ParseName(u); err != nil || back != n {
			t.Errorf("%v: %v %v", n, back, err)
		}
	}
	for _, s := range []string{"https://c/executor/a", "volley://c/executor", "volley://c/executor/a/b",
		"volley://c/root/a",
		"volley://c/executor/a/runner/b", "volley://c/executor/", "volley:///executor/a", "volley://c/executor/..",
		"volley://c/executor/a?x=1", "volley://c/executor/a#x", "volley://u@c/executor/a", "volley://c:1/executor/a",
		"volley://c/executor/%61", "volley://c/job/j/runner/", "volley://c//executor/a"} {
		if u, err := url.Parse(s); err == nil {
			if n, err := ParseName(u); err == nil {
				t.Errorf("%s is taken for %v", s, n)
			}
		}
	}
}

// FuzzTokens: what is no token is refused, what is one is read as it was written.
func FuzzTokens(f *testing.F) {
	f.Add(Token{Cluster: "c", Role: Submit, Drivers: []string{"h:1"}, Pin: "aa", Secret: "s"}.String())
	f.Add("volley-token-e30")
	f.Add("volley-token-")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		tok, err := ParseToken(s)
		if err != nil {
			if !fault.Is(err, fault.Usage) {
				t.Error(err)
			}
			return
		}
		if back, err := ParseToken(tok.String()); err != nil || back.Secret != tok.Secret || back.Role != tok.Role {
			t.Errorf("%+v: %+v %v", tok, back, err)
		}
	})
}

// cluster is a fresh authority, in a directory.
func cluster(t *testing.T, name string) *Authorities {
	t.Helper()
	as, err := MakeAuthorities(filepath.Join(t.TempDir(), "trust"), name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return as
}

func identity(t *testing.T, as *Authorities, n Name, now time.Time) *Identity {
	t.Helper()
	n.Cluster = as.Cluster()
	b, err := as.Issue(n, time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	id, err := NewIdentity(b)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// meet lets two speak TLS, and returns what each thinks of it.
func meet(server, client *tls.Config) (atServer, atClient error) {
	a, b := net.Pipe()
	done := make(chan error, 1)
	go func() {
		s := tls.Server(a, server)
		err := s.Handshake()
		done <- err
		_, _ = s.Write([]byte("."))
		a.Close()
	}()
	c := tls.Client(b, client)
	if atClient = c.Handshake(); atClient == nil {
		_, atClient = c.Read(make([]byte, 1)) // the server's verdict comes after the client's handshake
	}
	b.Close()
	return <-done, atClient
}

// TestWhoTrustsWhom: two speak to each other if one authority has signed both, in time, and the server is who was
// wanted.
func TestWhoTrustsWhom(t *testing.T) {
	ours, theirs, now := cluster(t, "c"), cluster(t, "c"), time.Now()
	driver := identity(t, ours, Name{Role: Driver, ID: "1"}, now)
	member := identity(t, ours, Name{Role: Executor, ID: "a"}, now)
	for what, m := range map[string]struct {
		server, client *Identity
		wanted         Role
		ok             bool
	}{
		"a member and its driver":   {driver, member, Driver, true},
		"a driver that is a member": {member, member, Driver, false},
		"another cluster's driver": {identity(t, theirs, Name{Role: Driver, ID: "1"}, now), member, Driver,
			false},
		"another cluster's member": {driver, identity(t, theirs, Name{Role: Executor, ID: "a"}, now), Driver,
			false},
		"a member whose time is over": {driver, identity(t, ours, Name{Role: Executor, ID: "a"},
			now.Add(-2*time.Hour)), Driver, false},
		"a driver whose time is over": {identity(t, ours, Name{Role: Driver, ID: "1"}, now.Add(-2*time.Hour)),
			member, Driver, false},
		"a member that is ahead of us": {driver, identity(t, ours, Name{Role: Executor, ID: "a"}, now.Add(skew/2)),
			Driver, true},
		"a member of the authority after":  {driver, next(t, ours, Name{Role: Executor, ID: "b"}), Driver, true},
		"a driver of the authority after":  {next(t, ours, Name{Role: Driver, ID: "2"}), member, Driver, true},
		"a member that wants another role": {driver, member, Job, false},
	} {
		s, c := meet(m.server.Server(nil), m.client.Client(nil, OfRole(m.wanted)))
		if (s == nil && c == nil) != m.ok {
			t.Errorf("%s: server %v, client %v", what, s, c)
		}
	}
}

// next is an identity of an authority that follows others, of which its peers know nothing yet.
func next(t *testing.T, as *Authorities, n Name) *Identity {
	t.Helper()
	a, err := as.newest().Next(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	n.Cluster = as.Cluster()
	b, err := a.Issue(n, time.Hour, append(as.Roots(), a.Roots()...), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	id, err := NewIdentity(b)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestPins: who has nothing but a pin trusts a driver of that authority, after it was followed by another, too, and
// nobody else.
func TestPins(t *testing.T) {
	ours, theirs := cluster(t, "c"), cluster(t, "c")
	pin := ours.Pin()
	check := func(what string, as *Authorities, n Name, ok bool) {
		s, c := meet(identity(t, as, n, time.Now()).Server(nil), Pinned("c", pin, nil))
		if (s == nil && c == nil) != ok {
			t.Errorf("%s: server %v, client %v", what, s, c)
		}
	}
	check("its driver", ours, Name{Role: Driver, ID: "1"}, true)
	check("its member", ours, Name{Role: Executor, ID: "a"}, false)
	check("another's driver", theirs, Name{Role: Driver, ID: "1"}, false)
	if err := ours.Next(time.Now()); err != nil {
		t.Fatal(err)
	}
	check("its driver, signed by the authority after", ours, Name{Role: Driver, ID: "1"}, true)
	if again, err := OpenAuthorities(ours.dir); err != nil || strings.Join(again.Pins(),
		" ") != strings.Join(ours.Pins(), " ") {
		t.Errorf("read again: %v", err)
	}
	if err := ours.Retire(); err != nil {
		t.Fatal(err)
	}
	check("its driver, after it was retired", ours, Name{Role: Driver, ID: "1"}, false)
}

// TestSignatures: who has signed a text is known, and only of that text, in that context.
func TestSignatures(t *testing.T) {
	as := cluster(t, "c")
	alice := identity(t, as, Name{Role: Submit, ID: "alice"}, time.Now())
	reader := identity(t, as, Name{Role: Executor, ID: "a"}, time.Now())
	s, err := alice.Sign("program", "digest")
	if err != nil {
		t.Fatal(err)
	}
	if who, err := reader.Signer(s, "program", "digest"); err != nil || who != alice.Name() {
		t.Errorf("%v %v", who, err)
	}
	for _, other := range [][2]string{{"program", "another"}, {"job", "digest"}} {
		if who, err := reader.Signer(s, other[0], other[1]); err == nil {
			t.Errorf("%v has signed %v", who, other)
		}
	}
	foreign := identity(t, cluster(t, "c"), Name{Role: Executor, ID: "a"}, time.Now())
	if who, err := foreign.Signer(s, "program", "digest"); err == nil {
		t.Errorf("%v is known to another cluster", who)
	}
}

// TestKeysOfOthers: a key that others can read or change is not used.
func TestKeysOfOthers(t *testing.T) {
	for what, spoil := range map[string]func(path string) error{
		"readable by others": func(path string) error { return os.Chmod(path, 0o644) },
		"writable by others": func(path string) error { return os.Chmod(path, 0o622) },
		"of another owner":   func(path string) error { return os.Chown(path, 12345, 12345) },
		"cut off":            func(path string) error { return os.Truncate(path, 10) },
		"empty":              func(path string) error { return os.Truncate(path, 0) },
	} {
		as := cluster(t, "c")
		b, err := as.Issue(Name{"c", Driver, "1", ""}, time.Hour, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Save(as.dir); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenIdentity(as.dir); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{keyFile, "authority-1.key"} {
			if err := spoil(filepath.Join(as.dir, name)); err != nil {
				t.Skipf("only root can try this: %v", err)
			}
		}
		if _, err := OpenIdentity(as.dir); err == nil {
			t.Errorf("an identity whose key is %s is used", what)
		}
		if _, err := OpenAuthorities(as.dir); err == nil {
			t.Errorf("an authority whose key is %s is used", what)
		}
	}
}

// TestDamagedCertificates: any byte changed, or the end cut off, is an error or leaves the certificate what it was.
func TestDamagedCertificates(t *testing.T) {
	as := cluster(t, "c")
	b, err := as.Issue(Name{"c", Executor, "a", ""}, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.Chain {
		bad := b
		bad.Chain = append([]byte(nil), b.Chain...)
		bad.Chain[i] ^= 0x20
		id, err := NewIdentity(bad)
		if err != nil {
			continue
		}
		if _, err := id.present().verify([]*x509.Certificate{id.present().pair.Leaf}, time.Now()); err == nil &&
			id.Name() != (Name{"c", Executor, "a", ""}) {
			t.Errorf("byte %d: it is %v", i, id.Name())
		}
	}
}

// TestACertificateThatWasNotRenewedIsSaid: one that is to be renewed is not late yet, and one that nearly ends is.
func TestACertificateThatWasNotRenewedIsSaid(t *testing.T) {
	issued := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	p := Peer{Issued: issued, Expires: issued.Add(6 * time.Hour)}
	for after, late := range map[time.Duration]bool{0: false, 4*time.Hour + time.Minute: false,
		5*time.Hour + time.Minute: true,
		7 * time.Hour:             true} {
		if says := p.Overdue(issued.Add(after)); (says != "") != late {
			t.Errorf("after %v: %q", after, says)
		}
	}
	if (Peer{}).Overdue(issued) != "" {
		t.Error("who has none is late")
	}
}
