package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/volley-engine/volley/internal/fault"
)

// CallerToken returns the token that a call carries.
func CallerToken(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	return strings.TrimPrefix(strings.Join(md.Get("authorization"), ""), "Bearer ")
}

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

// Dial prepares a connection to a server of this protocol on this machine; it is made
// at the first call. The token is sent unencrypted.
func Dial(addr, token string) (*grpc.ClientConn, error) {
	if err := OnlyLoopback("dial", addr); err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		withCredentials(token),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: dialBackoff, MinConnectTimeout: connectTimeout}),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
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

// ServerOptions returns the gRPC options of a server of this protocol. Admit is
// called when only the headers of a call have been read; it must not block. Callers
// that it admits are known to the server's listener from then on.
func ServerOptions(l *Listener, admit func(ctx context.Context, method string) error) []grpc.ServerOption {
	door := func(ctx context.Context, call *tap.Info) (context.Context, error) {
		if err := admit(metadata.NewIncomingContext(ctx, call.Header), call.FullMethodName); err != nil {
			return nil, err
		}
		if who, ok := peer.FromContext(ctx); ok {
			l.Authenticated(who.Addr.String())
		}
		return ctx, nil
	}
	return []grpc.ServerOption{grpc.InTapHandle(door), grpc.ConnectionTimeout(handshakeWait),
		grpc.MaxHeaderListSize(headersMost),
		grpc.MaxConcurrentStreams(streamsMost), grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window), grpc.ReadBufferSize(socketBuffer),
		grpc.WriteBufferSize(socketBuffer),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: aliveEvery, Timeout: aliveWait,
			MaxConnectionIdle: idleMost}),
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
	case codes.NotFound, codes.InvalidArgument:
		kind = fault.Usage
	case codes.Canceled:
		kind = fault.Cancelled
	case codes.DeadlineExceeded:
		kind = fault.Timeout
	}
	return fault.Newf(kind, op, addr, "%s", s.Message()).WithHint(hint)
}

// Home returns where a user's commands find the tokens of drivers.
func Home() string {
	if dir := os.Getenv("VOLLEY_HOME"); dir != "" {
		return dir
	}
	if dir, err := os.UserHomeDir(); err == nil {
		return filepath.Join(dir, ".volley")
	}
	return ".volley"
}

// TokenFile returns where the token of the driver at an address is kept for its
// user.
func TokenFile(addr string) string {
	return filepath.Join(Home(), "tokens", strings.NewReplacer(":", "_", "/", "_").Replace(addr))
}

// ReadToken finds the token of the driver at an address.
func ReadToken(addr string) (string, error) {
	if port, ok := strings.CutPrefix(addr, "localhost:"); ok {
		addr = "127.0.0.1:" + port
	}
	token, err := ReadPrivate(TokenFile(addr))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fault.New(fault.Unauthorized, "find the token of", addr,
			fmt.Errorf("%s: %w", TokenFile(addr), fs.ErrNotExist)).
			WithHint("is a driver running there? start it as this user, or set VOLLEY_HOME as it had it")
	}
	return token, err
}

// ReadPrivate reads a file that only this user can read or write; another is
// refused.
func ReadPrivate(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return "", fault.New(fault.Unauthorized, "read the token in", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fault.New(fault.Unauthorized, "read the token in", path, err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() || !info.Mode().IsRegular() ||
		info.Mode()&0o077 != 0 {
		return "", fault.Newf(fault.Unauthorized, "read the token in", path,
			"others than this user can read or write it (mode %v)", info.Mode()).
			WithHint("anyone who knows the token can run programs here: remove the file, and start the driver again")
	}
	raw, err := io.ReadAll(io.LimitReader(f, 4096))
	return strings.TrimSpace(string(raw)), err
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

// OnlyLoopback refuses addresses that are not of this machine alone.
func OnlyLoopback(op, addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fault.New(fault.Usage, op, addr, err).WithHint("want HOST:PORT")
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fault.Newf(fault.Usage, op, addr,
		"without mutual TLS processes speak over loopback only, and there is no mutual TLS yet").
		WithHint("use 127.0.0.1:PORT, and an SSH tunnel for other machines")
}
