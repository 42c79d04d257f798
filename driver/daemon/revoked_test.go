package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// hold begins a call of which the driver has only the headers.
func hold(t *testing.T, d *Daemon, by wire.Party, method string) grpc.ClientStream {
	t.Helper()
	conn, err := wire.DialDriver(d.drivers()[0], by)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := wire.NewClusterClient(conn).Jobs(t.Context(), &wire.JobsRequest{}); err != nil {
		t.Fatal(err)
	}
	s, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wire.NewClusterClient(conn).Jobs(t.Context(), &wire.JobsRequest{}); err != nil { // which came after it
		t.Fatal(err)
	}
	return s
}

// finish sends the body of a call that was held, and returns what comes of it.
func finish(s grpc.ClientStream, req proto.Message) error {
	if err := s.SendMsg(req); err != nil {
		return err
	}
	_ = s.CloseSend()
	return s.RecvMsg(&wire.Certified{})
}

func revoke(t *testing.T, d *Daemon, admin wire.Party, which string) {
	t.Helper()
	_, err := client(t, d, admin).RevokeCertificate(t.Context(), &wire.RevokeCertificateRequest{Which: which})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCallsThatWereBegunBeforeARevocation come to nothing after it: by none of them does who is out stay in.
func TestCallsThatWereBegunBeforeARevocation(t *testing.T) {
	d, admin := netDaemon(t)
	mallory := as(t, d, admin, trust.Admin, "mallory")
	request, err := mallory.ID.Request()
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]struct {
		call grpc.ClientStream
		body proto.Message
	}{
		"Renew": {hold(t, d, mallory, wire.Cluster_Renew_FullMethodName), &wire.RenewRequest{Request: request}},
		"CreateToken": {hold(t, d, mallory, wire.Cluster_CreateToken_FullMethodName),
			&wire.CreateTokenRequest{Role: "admin", TtlNs: int64(time.Hour), Uses: 1}},
		"Submit": {hold(t, d, mallory, wire.Cluster_Submit_FullMethodName), &wire.SubmitRequest{Job: "logistic"}},
	}
	revoke(t, d, admin, "admin/mallory")
	for name, h := range held {
		if err := finish(h.call, h.body); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnExpiredCertificateOnAConnectionThatStands is refused as on a new one, and is not renewed.
func TestAnExpiredCertificateOnAConnectionThatStands(t *testing.T) {
	d, admin := netDaemon(t)
	by := issued(t, d, trust.Name{Role: trust.Admin, ID: "short"}, 2*time.Second, time.Now())
	c := client(t, d, by)
	if _, err := c.Tokens(t.Context(), &wire.TokensRequest{}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(bound); status.Code(second(c.Tokens(t.Context(), &wire.TokensRequest{}))) !=
		codes.Unauthenticated; {
		if time.Now().After(end) {
			t.Fatal("an expired certificate is taken")
		}
	}
	if err := wire.Renew(t.Context(), c, by.ID); status.Code(err) != codes.Unauthenticated {
		t.Errorf("an expired certificate is renewed: %v", err)
	}
	token(t, d, admin, &wire.CreateTokenRequest{Role: "read"}) // a record, by which what is old is forgotten
	if _, err := c.Tokens(t.Context(), &wire.TokensRequest{}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("later: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestARevokedExecutorsRunners are out with it, and no runner speaks as its job's process.
func TestARevokedExecutorsRunners(t *testing.T) {
	d, admin := netDaemon(t)
	w := pending(t, d)
	as(t, d, admin, trust.Executor, "a")
	of := func(executor string) wire.Party {
		raw, err := d.admission.ofJob(w.info.Id, executor)
		if err != nil {
			t.Fatal(err)
		}
		b, err := trust.DecodeBundle(raw)
		if err != nil {
			t.Fatal(err)
		}
		return partyOf(t, b)
	}
	runner, other := of("a"), of("b")
	if err := wire.Renew(t.Context(), client(t, d, runner), runner.ID); err != nil {
		t.Fatal(err)
	}
	_, err := client(t, d, runner).End(t.Context(), &wire.EndRequest{Job: w.info.Id, Incarnation: w.info.Id + ".1",
		Code: 1, Why: "a runner says so"})
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("a runner has ended its job: %v", err)
	}
	revoke(t, d, admin, "executor/a")
	if err := wire.Renew(t.Context(), client(t, d, runner), runner.ID); status.Code(err) != codes.Unauthenticated {
		t.Errorf("the runner of an executor that is out is renewed: %v", err)
	}
	if err := wire.Renew(t.Context(), client(t, d, other), other.ID); err != nil {
		t.Errorf("another executor's is not: %v", err)
	}
	as(t, d, admin, trust.Executor, "a") // another machine, under the name
	if err := wire.Renew(t.Context(), client(t, d, runner), runner.ID); status.Code(err) != codes.Unauthenticated {
		t.Errorf("the runner of an executor that is out is renewed since there is another of its name: %v", err)
	}
	if err := trust.OfJobProcess(w.info.Id)(runner.ID.Name()); err == nil {
		t.Error("a runner passes for its job's process")
	}
}

// TestJoinsOfStrangers: neither their bytes nor their number fill anything.
func TestJoinsOfStrangers(t *testing.T) {
	d, _ := netDaemon(t)
	tok := trust.Token{Cluster: "test", Role: trust.Executor, Drivers: d.drivers(),
		Pin: d.admission.authorities.Pin(), Secret: trust.NewSecret()}
	if _, err := wire.Join(t.Context(), tok, strings.Repeat("x", 10<<20)); err == nil {
		t.Error("a name of 10 MiB is read of a caller without a certificate")
	}
	for range 200 {
		if _, err := wire.Join(t.Context(), tok, strings.Repeat("y", 1000)); err == nil {
			t.Fatal("joined by a made up token")
		}
	}
	raw, err := os.ReadFile(filepath.Join(d.cfg.DataDir, auditName))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(raw), "\n"); lines > 120 || len(raw) > 100<<10 {
		t.Errorf("the audit log has %d lines, %d bytes", lines, len(raw))
	}
}

// TestRenewalsAreNotEndless: a certificate that is good for long is not renewed again and again.
func TestRenewalsAreNotEndless(t *testing.T) {
	d, admin := netDaemon(t)
	bob := as(t, d, admin, trust.Read, "bob")
	if err := wire.Renew(t.Context(), client(t, d, bob), bob.ID); status.Code(err) != codes.InvalidArgument {
		t.Errorf("renewed at once: %v", err)
	}
}

// TestAReadTokenIsNoWayIn: who has it looks at REST, and gets no certificate; who may log in by another does not look
// at REST by that.
func TestAReadTokenIsNoWayIn(t *testing.T) {
	d, admin := netDaemon(t)
	_, bearer := token(t, d, admin, &wire.CreateTokenRequest{Role: "read"})
	if err := bearer.Joins(); err == nil {
		t.Error("it says where to join")
	}
	bearer.Cluster, bearer.Drivers, bearer.Pin = "test", d.drivers(), d.admission.authorities.Pin()
	if _, err := wire.Join(t.Context(), bearer, ""); err == nil {
		t.Error("joined by a read token")
	}
	_, login := token(t, d, admin, &wire.CreateTokenRequest{Role: "read", Login: true})
	good := false
	d.admission.read(func(a *Access) {
		k, _ := a.token(login.Secret, time.Now())
		good = k.Bearer
	})
	if good {
		t.Error("a token for logging in opens REST")
	}
}

// TestUnknownCertificatesCanBeRevoked: by their serial numbers, although the journal lacks them.
func TestUnknownCertificatesCanBeRevoked(t *testing.T) {
	d, admin := netDaemon(t)
	by := issued(t, d, trust.Name{Role: trust.Read, ID: "elsewhere"}, time.Hour, time.Now())
	if _, err := client(t, d, by).Jobs(t.Context(), &wire.JobsRequest{}); err != nil {
		t.Fatal(err)
	}
	revoke(t, d, admin, by.ID.Serial())
	if _, err := client(t, d, by).Jobs(t.Context(), &wire.JobsRequest{}); status.Code(err) != codes.Unauthenticated {
		t.Error(err)
	}
}

// TestARetiredAuthorityIsTrustedNoMore: by members that renew their certificates after it, nor by the driver on a
// connection that stands.
func TestARetiredAuthorityIsTrustedNoMore(t *testing.T) {
	d, admin := netDaemon(t)
	bob := as(t, d, admin, trust.Read, "bob")
	standing := client(t, d, bob)
	if _, err := standing.Jobs(t.Context(), &wire.JobsRequest{}); err != nil {
		t.Fatal(err)
	}
	old, err := trust.OpenAuthorities(TrustDir(d.cfg.DataDir))
	if err != nil {
		t.Fatal(err)
	}
	// The certificates of the first second are taken to be of either: they have no finer times.
	for end := time.Now().Add(bound); time.Since(bob.ID.Issued()) < 2500*time.Millisecond; {
		if time.Now().After(end) {
			t.Fatal("time stands still")
		}
	}
	change := func(req *wire.ChangeAuthorityRequest) {
		if _, err := client(t, d, admin).ChangeAuthority(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if err := wire.Renew(t.Context(), client(t, d, admin), admin.ID); err != nil {
			t.Fatal(err)
		}
	}
	change(&wire.ChangeAuthorityRequest{})
	change(&wire.ChangeAuthorityRequest{Retire: true, Force: true})
	if n := admin.ID.Authorities(); n != 1 {
		t.Errorf("an admin that has renewed trusts %d authorities", n)
	}
	if _, err := standing.Jobs(t.Context(), &wire.JobsRequest{}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a certificate of a retired authority on a connection that stands: %v", err)
	}
	forged, err := old.Issue(trust.Name{Cluster: "test", Role: trust.Driver, ID: "9"}, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if why := admin.ID.Trusts(forged.Chain); why == nil {
		t.Error("an admin trusts a driver of the retired authority")
	}
	if why := partyOf(t, forged).ID.Trusts(admin.ID.Chain()); why == nil {
		t.Error("who knows only the retired authority takes an admin's certificate for one of it")
	}
}

// TestTheWayBack: who has the driver's data directory becomes an admin again.
func TestTheWayBack(t *testing.T) {
	d, admin := netDaemon(t)
	revoke(t, d, admin, "admin/"+thisUser())
	b, cluster, _, err := NewAdmin(d.cfg.DataDir)
	if err != nil || cluster != "test" {
		t.Fatal(cluster, err)
	}
	again := partyOf(t, b)
	if _, err := client(t, d, again).Tokens(t.Context(), &wire.TokensRequest{}); err != nil {
		t.Error(err)
	}
	revoke(t, d, again, "admin/"+thisUser()) // by name, although the driver has not been started since
	if _, err := client(t, d, again).Tokens(t.Context(),
		&wire.TokensRequest{}); status.Code(err) != codes.Unauthenticated {
		t.Error(err)
	}
}

// TestADirectoryOfEverybodys is no place for certificates.
func TestADirectoryOfEverybodys(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Init(dir, "test", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(TrustDir(dir), 0o777); err != nil {
		t.Fatal(err)
	}
	if d, err := leading(Config{DataDir: dir, Program: "/bin/false"}); err == nil {
		_ = d.Close()
		t.Error("a driver uses authorities that anybody can replace")
	}
}

// TestALostAddress: a driver of a network does not become one of a user without a word.
func TestALostAddress(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Init(dir, "test", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(TrustDir(dir), addressFile)); err != nil {
		t.Fatal(err)
	}
	if d, err := leading(Config{DataDir: dir, Program: "/bin/false"}); err == nil {
		_ = d.Close()
		t.Errorf("it serves %s", d.Addr())
	}
}
