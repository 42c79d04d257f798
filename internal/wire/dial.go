package wire

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/fault"
)

// CallerToken is the token that a call carries.
func CallerToken(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	return strings.TrimPrefix(strings.Join(md.Get("authorization"), ""), "Bearer ")
}

// MaxMessage bounds a message of a cluster's services, in bytes.
const MaxMessage = maxFrame

// Dial prepares a connection to a server of this protocol; it is made at the
// first call.
func Dial(addr, token string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()), withCredentials(token),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: dialBackoff, MinConnectTimeout: connectTimeout}), grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
		grpc.WithReadBufferSize(socketBuffer), grpc.WithWriteBufferSize(socketBuffer),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: aliveEvery, Timeout: aliveWait}))
	if err != nil {
		return nil, fault.New(fault.Usage, "dial", addr, err)
	}
	return conn, nil
}

// connectTimeout bounds an attempt to connect, and dialBackoff the time between
// two.
const connectTimeout = 5 * time.Second

var dialBackoff = backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second}

// socketBuffer is how much is read or written at once.
const socketBuffer = 256 << 10

// A connection whose other end says nothing for aliveEvery is asked whether it
// lives, and given up after aliveWait: a block that is never sent to its end is
// not waited for.
const (
	aliveEvery = 10 * time.Second
	aliveWait  = 10 * time.Second
)

// window is how much of a stream may be on its way.
const window = 4 << 20

// ServerOptions are those of a server of this protocol.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window), grpc.ReadBufferSize(socketBuffer), grpc.WriteBufferSize(socketBuffer),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: aliveEvery, Timeout: aliveWait}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: aliveEvery / 2, PermitWithoutStream: true})}
}

// CallError is the error of a call in the engine's own terms.
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
		kind, hint = fault.FetchFailed, "is a driver running there? start one with volley driver"
	case codes.NotFound, codes.InvalidArgument:
		kind = fault.Usage
	case codes.Canceled:
		kind = fault.Cancelled
	case codes.DeadlineExceeded:
		kind = fault.Timeout
	}
	return fault.Newf(kind, op, addr, "%s", s.Message()).WithHint(hint)
}

// Home is where a user's commands find the tokens of drivers.
func Home() string {
	if dir := os.Getenv("VOLLEY_HOME"); dir != "" {
		return dir
	}
	if dir, err := os.UserHomeDir(); err == nil {
		return filepath.Join(dir, ".volley")
	}
	return ".volley"
}

// TokenFile is where the token of the driver at an address is kept for its
// user.
func TokenFile(addr string) string {
	return filepath.Join(Home(), "tokens", strings.NewReplacer(":", "_", "/", "_").Replace(addr))
}

// ReadToken finds the token of the driver at an address.
func ReadToken(addr string) (string, error) {
	if port, ok := strings.CutPrefix(addr, "localhost:"); ok {
		addr = "127.0.0.1:" + port
	}
	raw, err := os.ReadFile(TokenFile(addr))
	if err != nil {
		return "", fault.New(fault.Unauthorized, "find the token of", addr, err).
			WithHint("is a driver running there? start it as this user, or set VOLLEY_HOME as it had it")
	}
	return strings.TrimSpace(string(raw)), nil
}

// credentials are what a caller sends with every call.
type credentials struct{ token string }

// withCredentials makes every call of a connection carry a token and the
// protocol's version.
func withCredentials(token string) grpc.DialOption {
	return grpc.WithPerRPCCredentials(credentials{token})
}

func (c credentials) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + c.token, "volley-version": Version}, nil
}

func (credentials) RequireTransportSecurity() bool { return false } // loopback only: others are refused at the start
