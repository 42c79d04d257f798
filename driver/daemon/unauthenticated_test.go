package daemon

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/flight"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/internal/wire"
)

// bound is the longest that a test waits for something.
const bound = 30 * time.Second

// countedConn counts what is written to it.
type countedConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

// methods are all calls of a driver, of Arrow's protocol those that it serves.
func methods() (out []string) {
	out = []string{flight.ListFlights, flight.GetFlightInfo, flight.GetSchema, flight.DoGet, flight.DoPut}
	for _, service := range []grpc.ServiceDesc{wire.Cluster_ServiceDesc, wire.Blocks_ServiceDesc} {
		for _, m := range service.Methods {
			out = append(out, "/"+service.ServiceName+"/"+m.MethodName)
		}
		for _, s := range service.Streams {
			out = append(out, "/"+service.ServiceName+"/"+s.StreamName)
		}
	}
	return out
}

// call makes a call with a body of some size, and returns what comes of it.
func call(conn *grpc.ClientConn, method string, body int, headers ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	stream, err := conn.NewStream(metadata.AppendToOutgoingContext(ctx, headers...),
		&grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	_ = stream.SendMsg(&wire.SubmitRequest{Args: []string{strings.Repeat("x", body)}})
	_ = stream.CloseSend()
	return stream.RecvMsg(&wire.JobsReply{})
}

// TestEveryCallHasItsRoles: a method that the table lacks would be nobody's; one that it has and the services do not
// is a slip.
func TestEveryCallHasItsRoles(t *testing.T) {
	known := map[string]bool{}
	for _, m := range methods() {
		if known[m] = true; may[m] == nil && m != wire.Cluster_Join_FullMethodName {
			t.Errorf("%s: nobody may call it", m)
		}
	}
	for m := range may {
		if !known[m] {
			t.Errorf("%s is no call", m)
		}
	}
}

// TestOfAnotherVersion: no call of another version is taken.
func TestOfAnotherVersion(t *testing.T) {
	d := testDaemon(t)
	conn := plain(t, d.Addr(), wire.Party{}, &atomic.Int64{})
	for _, method := range methods() {
		if flight.Is(method) {
			continue // its clients have no version of this protocol
		}
		if err := call(conn, method, 0, "volley-version", "volley/0"); status.Code(err) == codes.OK {
			t.Errorf("%s: taken", method)
		}
	}
	if err := call(conn, wire.Cluster_Jobs_FullMethodName, 0, "volley-version", "volley/0"); status.Code(err) !=
		codes.FailedPrecondition {
		t.Error(err)
	}
}

// plain connects to an address without the engine's own client, and counts what it gets rid of.
func plain(t *testing.T, addr string, by wire.Party, sent *atomic.Int64) *grpc.ClientConn {
	t.Helper()
	proof := grpc.WithTransportCredentials(insecure.NewCredentials())
	if by.ID != nil {
		proof = grpc.WithTransportCredentials(clientTLS(by))
	}
	dial := func(ctx context.Context, addr string) (net.Conn, error) {
		network := "tcp"
		if path, ok := wire.SocketPath(addr); ok {
			network, addr = "unix", path
		}
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return countedConn{c, sent}, err
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, proof, grpc.WithContextDialer(dial),
		grpc.WithAuthority("volley"),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(wire.MaxMessage)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestAnotherUserGetsNothing: at the socket of a user's driver a process of another user is turned away, whatever it
// says, and so is a token's bearer at one that another user has put there.
func TestAnotherUserGetsNothing(t *testing.T) {
	if os.Getenv("VOLLEY_TEST_STRANGER") != "" {
		return // the other user's process: see below
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can be two users")
	}
	d := testDaemon(t)
	path, _ := wire.SocketPath(d.Addr())
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) { // as one who has opened it to others
		_ = os.Chmod(dir, 0o755)
	}
	_ = os.Chmod(path, 0o666)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join("/tmp", filepath.Base(t.TempDir())+"-stranger")
	raw, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(copied, raw, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(copied) })
	cmd := exec.Command(copied, "-test.run", "^TestStranger$", "-test.v")
	planted := "@volley-" + trust.NewSecret()
	cmd.Env = append(os.Environ(), "VOLLEY_TEST_STRANGER="+d.Addr(), "VOLLEY_TEST_PLANTED="+planted)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := &strings.Builder{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if lines.Text() == "planted" {
			conn, err := wire.DialDriver(wire.SocketAddress(planted), wire.Party{Token: "secret"})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := call(conn, wire.Cluster_Jobs_FullMethodName, 0); !strings.Contains(err.Error(), "user 65534's") {
				t.Errorf("a caller trusts another user's socket: %v", err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

// TestStranger is what another user's process tries.
func TestStranger(t *testing.T) {
	addr := os.Getenv("VOLLEY_TEST_STRANGER")
	if addr == "" {
		t.Skip("TestAnotherUserGetsNothing starts it")
	}
	conn := plain(t, addr, wire.Party{}, &atomic.Int64{})
	for _, method := range methods() {
		if err := call(conn, method, 0, "volley-version", version.Oldest); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", method, err)
		}
	}
	l, err := net.Listen("unix", os.Getenv("VOLLEY_TEST_PLANTED")) // what it plants, and waits for a caller at
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("planted")
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(c)
	if fmt.Println("heard", len(got)); strings.Contains(string(got), "secret") {
		t.Error("a caller has told another user's socket its token")
	}
}

// TestASocketThatIsServed is not taken over, one that nobody serves any more is.
func TestASocketThatIsServed(t *testing.T) {
	d := testDaemon(t)
	if l, err := wire.Listen(d.Addr()); err == nil {
		l.Close()
		t.Error("a socket that a driver serves was taken over")
	}
	path := filepath.Join(t.TempDir(), strings.Repeat("a long name ", 12))
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(path, "stale.sock")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := wire.Listen(wire.SocketAddress(path)); err == nil {
		l.Close()
		t.Error("a file was taken for a socket")
	}
	if err := os.Remove(path); err != nil {
		t.Error("it is gone", err)
	}
	stale, err := wire.Listen(wire.SocketAddress(path))
	if err != nil {
		t.Fatal(err)
	}
	stale.Listener.(interface{ Abandon() }).Abandon()
	l, err := wire.Listen(wire.SocketAddress(path))
	if err != nil {
		t.Fatal(err)
	}
	if stale.Close(); wire.Gone(wire.SocketAddress(path)) {
		t.Error("who was served before has removed the socket of who is served now")
	}
	if l.Close(); !wire.Gone(wire.SocketAddress(path)) {
		t.Error("its socket is left")
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if l, err := wire.Listen(wire.SocketAddress(filepath.Join(open, "s"))); err == nil {
		l.Close()
		t.Error("a socket is served in a directory of everybody's")
	}
}

// TestTheRESTServerGivesUpOnTheIdle: of clients that say nothing, take nothing or
// never end their request.
func TestTheRESTServerGivesUpOnTheIdle(t *testing.T) {
	d := testDaemon(t)
	if d.web.IdleTimeout <= 0 && d.web.ReadTimeout <= 0 {
		t.Error("a connection that has made a request and says nothing more is kept for ever")
	}
	if d.web.WriteTimeout <= 0 {
		t.Error("who takes no answer is waited for without an end")
	}
}

// TestAReadTokenOpensNothingElse: it is no way into the cluster's other calls, and no other token is one into REST.
func TestAReadTokenOpensNothingElse(t *testing.T) {
	d := testDaemon(t)
	conn, err := wire.DialDriver(d.Addr(), wire.Party{Token: readToken(d)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := call(conn, wire.Cluster_Jobs_FullMethodName, 0); status.Code(err) != codes.Unauthenticated {
		t.Error(err)
	}
	var secret string
	d.admission.read(func(a *Access) {
		for _, k := range a.Tokens {
			secret = k.Hash
		}
	})
	if _, err := trust.ParseToken(secret); err == nil {
		t.Error("the hash of a token is one")
	}
}
