package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/fault"
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

// stranger connects to an address without the engine's own client, and counts
// what it can get rid of.
func stranger(t *testing.T, addr string, sent *atomic.Int64) *grpc.ClientConn {
	t.Helper()
	dial := func(ctx context.Context, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		return countedConn{c, sent}, err
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(dial),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(wire.MaxMessage)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// unaryMethods are the driver's calls of one message each way.
func unaryMethods() (out []string) {
	for _, m := range wire.Cluster_ServiceDesc.Methods {
		out = append(out, "/"+wire.Cluster_ServiceDesc.ServiceName+"/"+m.MethodName)
	}
	return out
}

// TestABodyWithoutATokenIsNotRead: a client with no token, or a wrong one, can make
// the driver take in no more than what is on its way when it refuses.
func TestABodyWithoutATokenIsNotRead(t *testing.T) {
	d := testDaemon(t)
	const body, most = 64 << 20, 16 << 20
	args := []string{strings.Repeat("x", body)}
	for _, method := range unaryMethods() {
		for who, headers := range map[string][]string{"no token": nil,
			"a wrong token": {"authorization", "Bearer " + newToken(), "volley-version", wire.Version}} {
			var sent atomic.Int64
			conn := stranger(t, d.Addr(), &sent)
			ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(context.Background(), headers...),
				bound)
			err := conn.Invoke(ctx, method, &wire.SubmitRequest{Args: args}, &wire.SubmitReply{})
			cancel()
			conn.Close()
			if status.Code(err) != codes.Unauthenticated {
				t.Errorf("%s with %s: %v", method, who, err)
			}
			if n := sent.Load(); n > most {
				t.Errorf("%s with %s: the driver has read %d MiB of %d before it refused", method, who, n>>20, body>>20)
			}
		}
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

// TestUnauthenticatedCallersDoNotUseUpDescriptors: connections on which no caller ever shows a
// token are bounded, and do not keep out who has one.
func TestUnauthenticatedCallersDoNotUseUpDescriptors(t *testing.T) {
	d := testDaemon(t)
	before := openFiles(t)
	const callers, most = 2000, 1024
	for range callers {
		c, err := net.Dial("tcp", d.Addr())
		if err != nil {
			t.Skipf("this machine does not let a process have that many: %v", err)
		}
		t.Cleanup(func() { c.Close() })
	}
	conn, err := wire.Dial(d.Addr(), d.token)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if _, err := wire.NewClusterClient(conn).Jobs(ctx, &wire.JobsRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Errorf("a caller with the token is kept out: %v", err)
	}
	if held := openFiles(t) - before - callers; held > most {
		t.Errorf("the driver holds %d unauthenticated connections, at most %d", held, most)
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

// TestATokenThatOthersCanReadIsRefused: by the driver in its data directory, and
// by a client that looks for a driver's token.
func TestATokenThatOthersCanReadIsRefused(t *testing.T) {
	t.Setenv("VOLLEY_HOME", t.TempDir())
	const addr = "127.0.0.1:7077"
	spoil := map[string]func(path string) error{
		"readable by others": func(path string) error { return os.Chmod(path, 0o644) },
		"writable by others": func(path string) error { return os.Chmod(path, 0o622) },
		"of another owner":   func(path string) error { return os.Chown(path, 12345, 12345) },
	}
	for what, change := range spoil {
		dir := t.TempDir()
		for _, path := range []string{filepath.Join(dir, "token"), wire.TokenFile(addr)} {
			if err := writePrivate(path, newToken()); err != nil {
				t.Fatal(err)
			}
			if err := change(path); err != nil {
				t.Skipf("only root can try this: %v", err)
			}
		}
		if _, err := ownToken(dir); err == nil {
			t.Errorf("a driver takes a token file that is %s", what)
		}
		if _, err := wire.ReadToken(addr); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("a caller takes a token file that is %s: %v", what, err)
		}
	}
}

// TestNobodySendsItsTokenBeyondLoopback: an address that is not of this machine is
// refused where a connection is made, as it is where one is waited for.
func TestNobodySendsItsTokenBeyondLoopback(t *testing.T) {
	for _, addr := range []string{"192.0.2.1:7077", "example.org:7077", "0.0.0.0:7077", "[2001:db8::1]:7077", ":7077",
		"localhost.example.org:7077"} {
		conn, err := wire.Dial(addr, newToken())
		if err == nil {
			conn.Close()
		}
		if !fault.Is(err, fault.Usage) {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, addr := range []string{"127.0.0.1:7077", "localhost:7077", "[::1]:7077", "127.8.8.8:1"} {
		conn, err := wire.Dial(addr, newToken())
		if err != nil {
			t.Errorf("%s: %v", addr, err)
			continue
		}
		conn.Close()
	}
}

// TestEveryListenerIsOfThisMachine: what a driver listens on.
func TestEveryListenerIsOfThisMachine(t *testing.T) {
	d := testDaemon(t)
	for _, addr := range []string{d.Addr(), d.HTTPAddr()} {
		if err := wire.OnlyLoopback("listen on", addr); err != nil {
			t.Error(err)
		}
	}
	for _, addr := range []string{"0.0.0.0:1", ":1", "[::]:1", "192.0.2.1:1"} {
		if err := wire.OnlyLoopback("listen on", addr); !fault.Is(err, fault.Usage) {
			t.Error(fmt.Sprint(addr, ": ", err))
		}
	}
}
