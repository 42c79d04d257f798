package wire

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/version"
)

// MaxMessage bounds a message of a cluster's services, in bytes.
const MaxMessage = maxFrame

// MostRelayed bounds a message of a job's own protocol that the driver relays, in bytes:
// with its envelope it is within MaxMessage.
const MostRelayed = MaxMessage - 4096

// TooLarge returns why a message of its size is not relayed.
func TooLarge(bytes int) string {
	return fmt.Sprintf("a message of %d MiB is more than the %d MiB that the driver relays", bytes>>20,
		MostRelayed>>20)
}

// Dial prepares a connection to the server at an address, unix:PATH or HOST:PORT; it is made at the first call. A
// server over the network must have a name that is wanted.
func Dial(addr string, by Party, wanted func(trust.Name) error) (*grpc.ClientConn, error) {
	return dial(addr, by, wanted, Connect)
}

func dial(addr string, by Party, wanted func(trust.Name) error,
	connect func(context.Context, string) (net.Conn, error)) (*grpc.ClientConn, error) {
	proof, err := by.caller(addr, wanted)
	if err != nil {
		return nil, err
	}
	return dialBy(addr, by, proof, connect)
}

func dialBy(addr string, by Party, proof credentials.TransportCredentials,
	connect func(context.Context, string) (net.Conn, error)) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(proof),
		grpc.WithContextDialer(connect), withCredentials(by.Token), grpc.WithAuthority("volley"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: dialBackoff, MinConnectTimeout: connectTimeout + electWait}),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
		grpc.WithReadBufferSize(socketBuffer), grpc.WithWriteBufferSize(socketBuffer),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: aliveEvery, Timeout: aliveWait}))
	if err != nil {
		return nil, fault.New(fault.Usage, "dial", addr, err)
	}
	return conn, nil
}

// Connect connects to an address, unix:PATH or HOST:PORT.
func Connect(ctx context.Context, addr string) (net.Conn, error) {
	if path, ok := SocketPath(addr); ok {
		return dialSocket(ctx, path)
	}
	return (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, "tcp", addr)
}

// connectTimeout bounds an attempt to connect, and dialBackoff the time between
// two.
const connectTimeout = 5 * time.Second

var dialBackoff = backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
	MaxDelay: 3 * time.Second}

// socketBuffer is how much is read or written at once.
const socketBuffer = 256 << 10

// A connection that is silent for aliveEvery is probed, and given up after
// aliveWait: a block that is never sent to its end is not waited for.
const (
	aliveEvery = 10 * time.Second
	aliveWait  = 10 * time.Second
)

// window is how much of a stream may be in flight.
const window = 4 << 20

// What a server of this protocol takes from those that connect: how long a connection may
// take to be made, and be idle, how large a call's headers may be, and how many
// calls a connection may have open.
const (
	handshakeWait = 5 * time.Second
	idleMost      = 5 * time.Minute
	headersMost   = 16 << 10
	streamsMost   = 1024
)

// connectionAge is how old a connection over TLS becomes: who has renewed its certificate comes back with that.
// Streams go on for as long as they last.
const connectionAge = 10 * time.Minute

// NewServer returns a server of this protocol.
func (p Party) NewServer(g Gate, more ...grpc.ServerOption) *grpc.Server {
	door := func(ctx context.Context, call *tap.Info) (context.Context, error) {
		return ctx, g.Admit(metadata.NewIncomingContext(ctx, call.Header), call.FullMethodName)
	}
	limits := append(p.serverLimits(), grpc.Creds(p.server(g)), grpc.InTapHandle(door))
	return grpc.NewServer(append(limits, more...)...)
}

// serverLimits returns what a server takes of its callers.
func (p Party) serverLimits() []grpc.ServerOption {
	alive := keepalive.ServerParameters{Time: aliveEvery, Timeout: aliveWait, MaxConnectionIdle: idleMost}
	if p.ID != nil {
		alive.MaxConnectionAge = connectionAge
	}
	return []grpc.ServerOption{grpc.ConnectionTimeout(handshakeWait),
		grpc.MaxHeaderListSize(headersMost),
		grpc.MaxConcurrentStreams(streamsMost), grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window), grpc.ReadBufferSize(socketBuffer),
		grpc.WriteBufferSize(socketBuffer),
		grpc.KeepaliveParams(alive),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: aliveEvery / 2,
			PermitWithoutStream: true})}
}

// CallError returns the error of a call in the engine's own terms.
func CallError(op, addr string, err error) error {
	if err == nil {
		return nil
	}
	s, _ := status.FromError(err)
	kind, hint := fault.Internal, ""
	switch s.Code() {
	case codes.Unauthenticated, codes.FailedPrecondition, codes.PermissionDenied:
		kind = fault.Unauthorized
	case codes.Unavailable:
		kind, hint = fault.DriverLost, "is a driver running there? start one with volley driver"
		if Untrusted(err) {
			kind, hint = fault.Unauthorized, "the two do not know each other: get a certificate of that cluster "+
				"anew, with a token of an admin's"
		}
	case codes.NotFound, codes.InvalidArgument:
		kind = fault.Usage
	case codes.Canceled:
		kind = fault.Cancelled
	case codes.DeadlineExceeded:
		kind = fault.Timeout
	}
	return fault.Newf(kind, op, addr, "%s", plain(s.Message())).WithHint(hint)
}

// Untrusted reports whether a call has failed because the two ends do not trust each other: a retry does not mend it.
func Untrusted(err error) bool {
	m := status.Convert(err).Message()
	if status.Code(err) != codes.Unavailable {
		return false
	}
	tls := strings.Contains(m, "handshake failed") && (strings.Contains(m, "tls:") || strings.Contains(m, "x509:") ||
		strings.Contains(m, "failed: trust "))
	return tls || strings.Contains(m, notTrusted)
}

// transport is what gRPC says around the reason why there is no connection.
var transport = regexp.MustCompile(`^connection error: desc = "(?:transport: )?(?:Error while dialing: )?(.*)"$`)

// plain returns the reason in a message of gRPC's.
func plain(message string) string {
	if m := transport.FindStringSubmatch(message); m != nil {
		return strings.ReplaceAll(m[1], `\"`, `"`)
	}
	return message
}

// Home returns where a user's commands keep what they know of clusters.
func Home() string {
	if dir := os.Getenv("VOLLEY_HOME"); dir != "" {
		if abs, err := filepath.Abs(dir); err == nil { // processes of jobs have directories of their own
			return abs
		}
		return dir
	}
	if dir, err := os.UserHomeDir(); err == nil {
		return filepath.Join(dir, ".volley")
	}
	return ".volley"
}

// headers are what a caller sends with every call.
type headers struct{ token string }

// What a call says of its caller's versions. The first has the oldest of the protocol, as all versions expect it.
const (
	versionHeader = "volley-version"
	newestHeader  = "volley-newest"
	moduleHeader  = "volley-module"
)

// SideOf returns what a call says of its caller's versions.
func SideOf(ctx context.Context) version.Side {
	md, _ := metadata.FromIncomingContext(ctx)
	return version.Side{Oldest: strings.Join(md.Get(versionHeader), ","),
		Newest: strings.Join(md.Get(newestHeader), ","), Module: strings.Join(md.Get(moduleHeader), ",")}
}

// Greeting returns the Hello of this process, which is to be filled in.
func Greeting() *Hello {
	own := version.Own()
	return &Hello{Version: own.Oldest, Newest: own.Newest, Module: own.Module}
}

// Side returns what a process says of its versions.
func (x *Hello) Side() version.Side {
	return version.Side{Oldest: x.Version, Newest: x.Newest, Module: x.Module}
}

// Side returns what a runner says of its versions.
func (x *Register) Side() version.Side {
	return version.Side{Oldest: x.Version, Newest: x.Newest, Module: x.Module}
}

// withCredentials makes every call of a connection carry the protocol's version and, over a socket, a job's token.
func withCredentials(token string) grpc.DialOption {
	return grpc.WithPerRPCCredentials(headers{token})
}

func (h headers) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	own := version.Own()
	m := map[string]string{versionHeader: own.Oldest, newestHeader: own.Newest, moduleHeader: own.Module}
	if h.token != "" {
		m["authorization"] = "Bearer " + h.token
	}
	return m, nil
}

func (headers) RequireTransportSecurity() bool { return true }

// OnlyLoopback refuses addresses that are not of this machine alone.
func OnlyLoopback(op, addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fault.New(fault.Usage, op, addr, err).WithHint("want HOST:PORT")
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fault.Newf(fault.Usage, op, addr, "without TLS this is for loopback only").
		WithHint("use 127.0.0.1:PORT, or make a cluster with certificates: volley init")
}
