package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/internal/wire"
)

// clientTLS is how a caller speaks to any server.
func clientTLS(by wire.Party) credentials.TransportCredentials {
	return credentials.NewTLS(by.ID.Client([]string{"h2"}, func(trust.Name) error { return nil }))
}

// netDaemon starts a driver that serves a network, and returns its admin.
func netDaemon(t *testing.T) (*Daemon, wire.Party) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("VOLLEY_HOME", filepath.Join(dir, "home"))
	admin, _, err := Init(filepath.Join(dir, "driver"), "test", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := leading(Config{DataDir: filepath.Join(dir, "driver"), HTTP: "127.0.0.1:0", Program: program})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, partyOf(t, admin)
}

func partyOf(t *testing.T, b trust.Bundle) wire.Party {
	t.Helper()
	id, err := trust.NewIdentity(b)
	if err != nil {
		t.Fatal(err)
	}
	return wire.Party{ID: id}
}

// client calls the driver as a party.
func client(t *testing.T, d *Daemon, by wire.Party) wire.ClusterClient {
	t.Helper()
	conn, err := wire.DialDriver(d.drivers()[0], by)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return wire.NewClusterClient(conn)
}

// token makes a token.
func token(t *testing.T, d *Daemon, by wire.Party, req *wire.CreateTokenRequest) (string, trust.Token) {
	t.Helper()
	if req.TtlNs == 0 {
		req.TtlNs = int64(time.Hour)
	}
	req.Uses = max(1, req.Uses)
	reply, err := client(t, d, by).CreateToken(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := trust.ParseToken(reply.Token)
	if err != nil {
		t.Fatal(err)
	}
	return reply.Id, tok
}

// as joins the cluster in a role.
func as(t *testing.T, d *Daemon, admin wire.Party, role trust.Role, name string) wire.Party {
	t.Helper()
	_, tok := token(t, d, admin, &wire.CreateTokenRequest{Role: string(role), Name: name, Login: role == trust.Read})
	b, err := wire.Join(t.Context(), tok, name)
	if err != nil {
		t.Fatal(err)
	}
	return partyOf(t, b)
}

// issued is a certificate that the cluster's authority has signed without the driver's knowledge.
func issued(t *testing.T, d *Daemon, n trust.Name, life time.Duration, now time.Time) wire.Party {
	t.Helper()
	n.Cluster = "test"
	b, err := d.admission.authorities.Issue(n, life, now)
	if err != nil {
		t.Fatal(err)
	}
	return partyOf(t, b)
}

// TestWhoMayCallWhat: every role gets at the calls of its own, and at no other, and who is none at nothing. Where a
// caller is let in, what it says is bad; what counts is that it is not turned away.
func TestWhoMayCallWhat(t *testing.T) {
	d, admin := netDaemon(t)
	parties := map[trust.Role]wire.Party{trust.Admin: admin}
	for _, r := range []trust.Role{trust.Executor, trust.Submit, trust.Read} {
		parties[r] = as(t, d, admin, r, "x-"+string(r))
	}
	w := pending(t, d)
	parties[trust.Job] = issued(t, d, trust.Name{Role: trust.Job, ID: w.info.Id}, time.Hour, time.Now())
	changing := []string{wire.Cluster_ChangeAuthority_FullMethodName, wire.Cluster_Renew_FullMethodName}
	for role, by := range parties {
		conn := plain(t, d.Addr(), by, &atomic.Int64{})
		for _, method := range methods() {
			if slices.Contains(may[method], role) && slices.Contains(changing, method) {
				continue // it would
			}
			code := status.Code(call(conn, method, 0, "volley-version", version.Oldest))
			refused := code == codes.Unauthenticated || code == codes.PermissionDenied
			lets := slices.Contains(may[method], role)
			if method == wire.Cluster_Join_FullMethodName {
				lets = false // it has no token
			}
			if refused == lets && !(lets && slices.Contains(may[method], trust.Job)) {
				t.Errorf("%s as %s: %v", method, role, code)
			}
		}
	}
}

// pending is a job of a driver whose process does nothing.
func pending(t *testing.T, d *Daemon) *jobHandle {
	t.Helper()
	id, err := d.jobs.submit(&wire.SubmitRequest{Job: "logistic"}, "alice")
	if err != nil {
		t.Fatal(err)
	}
	w, err := d.jobs.find(id)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestAttacks is the table of those who are to be turned away before anything that they send is read, with the calls
// that each tries.
func TestAttacks(t *testing.T) {
	d, admin := netDaemon(t)
	other, _, err := Init(filepath.Join(t.TempDir(), "other"), "test", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	revoked := as(t, d, admin, trust.Admin, "eve")
	if _, err := client(t, d, admin).RevokeCertificate(t.Context(),
		&wire.RevokeCertificateRequest{Which: "admin/eve"}); err != nil {
		t.Fatal(err)
	}
	year := 365 * 24 * time.Hour
	for who, by := range map[string]wire.Party{
		"no certificate, in the clear": {},
		"an expired one": issued(t, d, trust.Name{Role: trust.Admin, ID: "old"}, time.Hour,
			time.Now().Add(-year)),
		"one that is not good yet": issued(t, d, trust.Name{Role: trust.Admin, ID: "new"}, year,
			time.Now().Add(year)),
		"a revoked one":     revoked,
		"another cluster's": partyOf(t, other),
		"a job's that has ended": issued(t, d, trust.Name{Role: trust.Job, ID: "job-000099"}, time.Hour,
			time.Now()),
		"a driver's own": issued(t, d, trust.Name{Role: trust.Driver, ID: "2"}, time.Hour, time.Now()),
	} {
		const body, most = 64 << 20, 16 << 20
		for _, method := range methods() {
			if method == wire.Cluster_Join_FullMethodName ||
				method == wire.Cluster_Enrol_FullMethodName && who == "a driver's own" {
				continue
			}
			var sent atomic.Int64
			conn := plain(t, d.Addr(), by, &sent)
			err := call(conn, method, body, "volley-version", version.Oldest)
			conn.Close()
			switch status.Code(err) {
			case codes.Unauthenticated, codes.PermissionDenied, codes.Unavailable:
			default:
				t.Errorf("%s with %s: %v", method, who, err)
			}
			if n := sent.Load(); n > most {
				t.Errorf("%s with %s: the driver has read %d MiB of %d before it refused", method, who, n>>20, body>>20)
			}
		}
	}
	if _, err := client(t, d, admin).Jobs(t.Context(), &wire.JobsRequest{}); err != nil {
		t.Errorf("others are not served: %v", err)
	}
}

// TestTokensOnce: a token lets in as many as it says, as long as it says, and what it says.
func TestTokensOnce(t *testing.T) {
	d, admin := netDaemon(t)
	join := func(tok trust.Token, name string) error {
		_, err := wire.Join(t.Context(), tok, name)
		return err
	}
	_, once := token(t, d, admin, &wire.CreateTokenRequest{Role: "submit", Name: "alice"})
	if err := join(once, ""); err != nil {
		t.Fatal(err)
	}
	if err := join(once, ""); err == nil {
		t.Error("a token was used twice")
	}
	_, two := token(t, d, admin, &wire.CreateTokenRequest{Role: "executor", Uses: 2})
	for name, want := range map[string]bool{"a": true, "../../b": false} {
		if err := join(two, name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := join(two, "a"); err == nil {
		t.Error("a name was given twice")
	}
	if err := join(two, "b"); err != nil {
		t.Error(err)
	}
	if err := join(two, "c"); err == nil {
		t.Error("a token for two has let three in")
	}
	id, gone := token(t, d, admin, &wire.CreateTokenRequest{Role: "executor"})
	if _, err := client(t, d, admin).RevokeToken(t.Context(), &wire.RevokeTokenRequest{Id: id}); err != nil {
		t.Fatal(err)
	}
	if err := join(gone, "d"); err == nil {
		t.Error("a revoked token lets in")
	}
	_, short := token(t, d, admin, &wire.CreateTokenRequest{Role: "executor", TtlNs: 1})
	if err := join(short, "e"); err == nil {
		t.Error("an expired token lets in")
	}
	_, pinned := token(t, d, admin, &wire.CreateTokenRequest{Role: "executor"})
	pinned.Pin = strings.Repeat("0", len(pinned.Pin))
	if err := join(pinned, "f"); err == nil {
		t.Error("a driver of another authority was told the token")
	}
	reply, err := client(t, d, admin).Tokens(t.Context(), &wire.TokensRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range reply.Tokens {
		if k.By != "volley://test/admin/"+thisUser() {
			t.Errorf("%v", k)
		}
	}
}

// TestMembersOutliveAuthorities: while the authority is replaced members go on, and who has not got a certificate of
// the new one is out once the old one is retired.
func TestMembersOutliveAuthorities(t *testing.T) {
	d, admin := netDaemon(t)
	early := as(t, d, admin, trust.Read, "early")
	late := as(t, d, admin, trust.Read, "late")
	change := func(retire, force bool) error {
		_, err := client(t, d, admin).ChangeAuthority(t.Context(), &wire.ChangeAuthorityRequest{Retire: retire,
			Force: force})
		return err
	}
	looks := func(by wire.Party) error {
		_, err := client(t, d, by).Jobs(t.Context(), &wire.JobsRequest{})
		return err
	}
	if err := change(true, false); err == nil {
		t.Error("the only authority was retired")
	}
	if err := change(false, false); err != nil {
		t.Fatal(err)
	}
	for who, by := range map[string]wire.Party{"early": early, "late": late, "admin": admin} {
		if err := looks(by); err != nil {
			t.Errorf("%s, after the new authority has begun: %v", who, err)
		}
	}
	fresh := as(t, d, admin, trust.Read, "fresh")
	for _, by := range []wire.Party{early, admin} {
		if err := wire.Renew(t.Context(), client(t, d, by), by.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := change(true, false); err == nil || !strings.Contains(err.Error(), "late") {
		t.Errorf("the old authority was retired although late is known by it: %v", err)
	}
	if err := change(true, true); err != nil {
		t.Fatal(err)
	}
	for who, by := range map[string]wire.Party{"early": early, "fresh": fresh, "admin": admin} {
		if err := looks(by); err != nil {
			t.Errorf("%s, after the old authority was retired: %v", who, err)
		}
	}
	if err := looks(late); err == nil {
		t.Error("who is known by a retired authority is let in")
	}
}

// TestRenewal: a certificate of which less than a third is left is renewed, and not before; who it is stays, and the
// new one is in use at once.
func TestRenewal(t *testing.T) {
	d, admin := netDaemon(t)
	for age, renewed := range map[time.Duration]bool{50 * time.Minute: true, 10 * time.Minute: false} {
		by := issued(t, d, trust.Name{Role: trust.Executor, ID: fmt.Sprint("e-", age)}, time.Hour, time.Now().Add(-age))
		before := by.ID.Expires()
		ctx, cancel := context.WithCancel(t.Context())
		once := make(chan struct{})
		c := client(t, d, by)
		go func() {
			defer close(once)
			wire.KeepRenewed(ctx, by, func() wire.ClusterClient {
				return countingRenewals{c, cancel}
			}, func(err error) { t.Error(err) })
		}()
		if !renewed {
			cancel()
		}
		<-once
		if got := by.ID.Expires().After(before); got != renewed {
			t.Errorf("after %v: renewed is %v", age, got)
		}
	}
	list, err := client(t, d, admin).Certificates(t.Context(), &wire.CertificatesRequest{})
	if err != nil || !strings.Contains(fmt.Sprint(list), "e-50m0s") {
		t.Errorf("%v %v", list, err)
	}
}

// countingRenewals ends a test once a certificate was renewed.
type countingRenewals struct {
	wire.ClusterClient
	done func()
}

func (c countingRenewals) Renew(ctx context.Context, req *wire.RenewRequest, o ...grpc.CallOption) (*wire.Certified,
	error) {
	defer c.done()
	return c.ClusterClient.Renew(context.WithoutCancel(ctx), req, o...)
}

// TestAccessSurvives a driver's end: tokens, revocations and authorities are what they were.
func TestAccessSurvives(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("VOLLEY_HOME", filepath.Join(dir, "home"))
	b, _, err := Init(dir+"/driver", "test", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	admin := partyOf(t, b)
	start := func() *Daemon {
		d, err := leading(Config{DataDir: filepath.Join(dir, "driver"), Program: "/bin/false"})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := start()
	bob := as(t, d, admin, trust.Read, "bob")
	_, tok := token(t, d, admin, &wire.CreateTokenRequest{Role: "executor"})
	if _, err := client(t, d, admin).RevokeCertificate(t.Context(),
		&wire.RevokeCertificateRequest{Which: "read/bob"}); err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, d, admin).ChangeAuthority(t.Context(), &wire.ChangeAuthorityRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = start()
	defer d.Close()
	tok.Drivers = d.drivers()
	if _, err := wire.Join(t.Context(), tok, "a"); err != nil {
		t.Errorf("a token is forgotten: %v", err)
	}
	if _, err := client(t, d, bob).Jobs(t.Context(), &wire.JobsRequest{}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a revocation is forgotten: %v", err)
	}
	list, err := client(t, d, admin).Certificates(t.Context(), &wire.CertificatesRequest{})
	if err != nil || len(list.Certificates) != 3 { // admin, bob, a
		t.Errorf("%v %v", list, err)
	}
}

// TestWhoDidWhat: the audit log has it.
func TestWhoDidWhat(t *testing.T) {
	d, admin := netDaemon(t)
	alice := as(t, d, admin, trust.Submit, "alice")
	bob := as(t, d, admin, trust.Submit, "bob")
	reply, err := client(t, d, alice).Submit(t.Context(), &wire.SubmitRequest{Job: "logistic"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, d, bob).Cancel(t.Context(), &wire.CancelRequest{Id: reply.Id}); status.Code(err) !=
		codes.PermissionDenied {
		t.Errorf("bob has cancelled alice's job: %v", err)
	}
	if _, err := client(t, d, bob).Drain(t.Context(), &wire.DrainRequest{Name: "e"}); status.Code(err) !=
		codes.PermissionDenied {
		t.Errorf("bob has drained an executor: %v", err)
	}
	raw, err := os.ReadFile(filepath.Join(d.cfg.DataDir, auditName))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"who":"volley://test/submit/alice"`, `"call":"Submit","subject":"` + reply.Id + `"`,
		`"call":"Cancel","subject":"` + reply.Id + `","failed":"` + reply.Id + ` is submit/alice's`,
		`"call":"Drain","refused":"the role submit may not call Drain"`,
	} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("the audit log lacks %s:\n%s", want, raw)
		}
	}
	if strings.Contains(string(raw), "secret") {
		t.Error("the audit log has secrets")
	}
}

// TestNoDowngrade: nothing below TLS 1.3 is spoken, at either listener.
func TestNoDowngrade(t *testing.T) {
	d, _ := netDaemon(t)
	for _, addr := range []string{d.Addr(), d.HTTPAddr()} {
		c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
		if err == nil {
			c.Close()
			t.Errorf("%s speaks TLS 1.2", addr)
		}
	}
}

// TestIdleStrangers: ten thousand connections that say nothing take no more than a bounded number of descriptors and
// some memory, and keep nobody out.
func TestIdleStrangers(t *testing.T) {
	d, admin := netDaemon(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const callers = 10_000
	files := openFiles(t)
	held := 0
	for range callers {
		c, err := net.Dial("tcp", d.Addr())
		if err != nil {
			break // as many as this machine lets a process have
		}
		held++
		t.Cleanup(func() { c.Close() })
	}
	if _, err := client(t, d, admin).Jobs(t.Context(), &wire.JobsRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Errorf("an admin is kept out by %d unauthenticated: %v", held, err)
	}
	if theirs := openFiles(t) - files - held; theirs > 1024 {
		t.Errorf("the driver holds %d connections of unauthenticated", theirs)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 50<<20 {
		t.Errorf("%d unauthenticated take %d MiB", held, grown>>20)
	}
}

// openFiles is how many files this process has open.
func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(all)
}

// TestRefusalsDoNotFillTheDisk: unauthenticated who are turned away again and again are counted, not written down each.
func TestRefusalsDoNotFillTheDisk(t *testing.T) {
	d, _ := netDaemon(t)
	conn := plain(t, d.Addr(), issued(t, d, trust.Name{Role: trust.Driver, ID: "2"}, time.Hour, time.Now()),
		&atomic.Int64{})
	for range 500 {
		_ = call(conn, wire.Cluster_Jobs_FullMethodName, 0, "volley-version", version.Oldest)
	}
	raw, err := os.ReadFile(filepath.Join(d.cfg.DataDir, auditName))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(raw), "\n"); lines == 0 || lines > 300 {
		t.Errorf("%d lines of 500 refusals", lines)
	}
}

// TestAJobsCertificateIsForThatJob: of another it gets neither connection nor blocks nor end.
func TestAJobsCertificateIsForThatJob(t *testing.T) {
	d, _ := netDaemon(t)
	ours, theirs := pending(t, d), pending(t, d)
	c := client(t, d, issued(t, d, trust.Name{Role: trust.Job, ID: ours.info.Id}, time.Hour, time.Now()))
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	for what, try := range map[string]func() error{
		"end": func() error {
			_, err := c.End(ctx, &wire.EndRequest{Job: theirs.info.Id})
			return err
		},
		"connect": func() error {
			s, err := c.Work(ctx)
			if err != nil {
				return err
			}
			_ = s.Send(&wire.FromJob{Body: &wire.FromJob_Hello{Hello: &wire.Hello{Version: version.Oldest,
				Name: theirs.info.Id}}})
			_, err = s.Recv()
			return err
		},
		"answer for another": func() error {
			ticket, _ := d.inspections.begin(theirs.info.Id, 1)
			_, err := c.Inspected(ctx, &wire.Inspection{Ticket: ticket})
			return err
		},
		"answer unasked": func() error {
			_, err := c.Inspected(ctx, &wire.Inspection{Ticket: "made up"})
			return err
		},
		"submit": func() error {
			_, err := c.Submit(ctx, &wire.SubmitRequest{Job: "logistic"})
			return err
		},
	} {
		if err := try(); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v", what, err)
		}
	}
	executor := client(t, d, issued(t, d, trust.Name{Role: trust.Executor, ID: "a"}, time.Hour, time.Now()))
	s, err := executor.Serve(ctx)
	if err == nil {
		_ = s.Send(&wire.FromExecutor{Body: &wire.FromExecutor_Hello{Hello: &wire.Hello{Version: version.Oldest,
			Name: "b"}}})
		_, err = s.Recv()
	}
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(fmt.Sprint(err), "executor a's") {
		t.Errorf("executor a calls itself b: %v", err)
	}
}
