package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/volley-engine/volley/internal/fault"
)

// socketPrefix begins the address of a socket of this machine.
const socketPrefix = "unix:"

// DefaultDriver returns the address of a user's own driver.
func DefaultDriver() string { return socketPrefix + filepath.Join(Home(), "driver.sock") }

// SocketAddress returns the address of a socket.
func SocketAddress(path string) string { return socketPrefix + path }

// SocketPath returns the path of an address that is a socket's, and reports whether it is one.
func SocketPath(addr string) (path string, ok bool) { return strings.CutPrefix(addr, socketPrefix) }

// Gone reports whether the socket of an address was removed, as its server does at its end.
func Gone(addr string) bool {
	path, ok := SocketPath(addr)
	if !ok {
		return false
	}
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// short returns a path of a socket by which its directory's descriptor is used: the kernel takes no path of more than
// 107 bytes.
func short(dir *os.File, path string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
}

// listenSocket serves a socket in a directory of this user's. One that no process serves any more is replaced.
func listenSocket(path string) (net.Listener, error) {
	dir, err := ownDirectory(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil { // of two at once, one removes what is stale
		return nil, err
	}
	name := short(dir, path)
	if err := removeStale(name); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", name)
	if err != nil {
		return nil, fmt.Errorf("serve a socket: %w", errors.Unwrap(err)) // the name it has is a descriptor's
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	info, err := os.Lstat(name)
	if err == nil {
		err = os.Chmod(name, 0o600)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return &socketListener{l, path, info}, nil
}

// removeStale removes a socket that no process serves any more, and nothing else.
func removeStale(name string) error {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("there is a file of that name, which is no socket")
	}
	conn, err := net.Dial("unix", name)
	if err == nil {
		conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return syscall.EADDRINUSE
	}
	return os.Remove(name)
}

// ownDirectory opens a directory, made if it is not there, in which no other user can put or replace anything.
func ownDirectory(path string) (*os.File, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := dir.Stat()
	if err != nil {
		dir.Close()
		return nil, err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() || info.Mode()&0o022 != 0 {
		dir.Close()
		return nil, fault.Newf(fault.Unauthorized, "use the directory", path,
			"others than this user can write to it (mode %v)", info.Mode()).WithHint("chmod 700 it, or choose another")
	}
	return dir, nil
}

// socketListener removes its socket when it is closed.
type socketListener struct {
	net.Listener
	path string
	own  fs.FileInfo
}

func (l *socketListener) Close() error {
	now, err := os.Lstat(l.path)
	if err == nil && os.SameFile(now, l.own) && now.ModTime().Equal(l.own.ModTime()) { // else another has its place
		os.Remove(l.path)
	}
	return l.Listener.Close()
}

// Abandon stops serving as a process does that is killed: the socket's file stays.
func (l *socketListener) Abandon() { l.Listener.Close() }

// Addr returns the socket's address.
func (l *socketListener) Addr() net.Addr { return socketAddr(l.path) }

type socketAddr string

func (socketAddr) Network() string  { return "unix" }
func (a socketAddr) String() string { return SocketAddress(string(a)) }

// dialSocket connects to a socket.
func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	if strings.HasPrefix(path, "@") { // one without a file
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no socket %s", path)
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := ownSocket(short(dir, path), path); err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", short(dir, path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("there is no socket %s", path)
	case errors.Is(err, syscall.ECONNREFUSED):
		err = fmt.Errorf("no process serves %s", path)
	case err != nil:
		err = fmt.Errorf("connect to %s: %w", path, errors.Unwrap(err))
	}
	return conn, err
}

// notTrusted begins the error of a socket of another user, which no retry mends.
const notTrusted = "trust the socket: it is "

// ownSocket refuses a socket that another user has made: who serves it is asked only once it is connected to, and a
// stranger's may be gone by then.
func ownSocket(name, path string) error {
	info, err := os.Lstat(name)
	if err != nil {
		return nil // which the connection says
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() && owner.Uid != 0 {
		return fmt.Errorf(notTrusted+"user %d's, not user %d's: %s", owner.Uid, os.Geteuid(), path)
	}
	return nil
}

// Served reports whether a process serves the socket of an address.
func Served(addr string) bool {
	path, ok := SocketPath(addr)
	if !ok {
		return false
	}
	conn, err := dialSocket(context.Background(), path)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// userOf returns the user whose process is at the other end of a socket.
func userOf(conn net.Conn) (uid int, err error) {
	if b, ok := conn.(*boundConn); ok {
		conn = b.Conn
	}
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, fault.Newf(fault.Internal, "ask for the user of", "a connection", "%T is no socket's", conn)
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if failed != nil {
		return 0, failed
	}
	return int(cred.Uid), nil
}

// sameUser returns an error unless the other end of a socket is a process of this user, or of root.
func sameUser(conn net.Conn) error {
	uid, err := userOf(conn)
	if err != nil {
		return err
	}
	if uid != os.Geteuid() && uid != 0 {
		return fmt.Errorf(notTrusted+"user %d's, not user %d's", uid, os.Geteuid())
	}
	return nil
}
