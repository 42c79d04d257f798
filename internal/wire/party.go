package wire

import (
	"context"
	"crypto/tls"
	"net"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/trust"
)

// Party is what a process shows to those it speaks with.
type Party struct {
	// ID is its certificate; nil where all processes are one user's on one machine, and know each other by that.
	ID *trust.Identity
	// Token is that of the job it is a process of, over sockets.
	Token string
}

// protocols are what is spoken over TLS.
var protocols = []string{calls}

// NoCertificate returns the error of an address off this user's sockets without a certificate.
func NoCertificate(op, addr string) error {
	return fault.Newf(fault.Unauthorized, op, addr, "over the network processes speak mutual TLS, and there is no "+
		"certificate for it").WithHint("get one: volley login TOKEN, or volley executor --join TOKEN")
}

// caller returns how the party proves itself to servers at an address, and which of these it takes.
func (p Party) caller(addr string, wanted func(trust.Name) error) (credentials.TransportCredentials, error) {
	if _, ok := SocketPath(addr); ok {
		return byUser{}, nil
	}
	if err := CheckAddress("dial", addr); err != nil {
		return nil, err
	}
	if p.ID == nil {
		return nil, NoCertificate("dial", addr)
	}
	return credentials.NewTLS(p.ID.Client(protocols, wanted)), nil
}

// CheckAddress refuses what is no address of a process.
func CheckAddress(op, addr string) error {
	if path, ok := SocketPath(addr); ok && path != "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return fault.New(fault.Usage, op, addr, err).WithHint("want HOST:PORT, or unix:PATH of a socket")
	}
	return nil
}

// server returns how the party's server knows its callers.
func (p Party) server(g Gate) credentials.TransportCredentials {
	if p.ID == nil {
		return marking{byUser{}, g}
	}
	return marking{credentials.NewTLS(p.ID.Server(protocols)), g}
}

// Gate decides about the callers of a server. None of its functions may block.
type Gate struct {
	// Knows reports whether a certificate is in force: its connections are kept whatever others do.
	Knows func(trust.Peer) bool
	// Admit refuses a call, of which only the headers have been read.
	Admit func(ctx context.Context, method string) error
	// Refused is told of connections that have come to nothing, if it is there.
	Refused func(addr string, err error)
}

// byUser lets processes of one user on one machine know each other, as the kernel vouches for it.
type byUser struct{}

// SameUser is what a server knows of the other end of a socket: that it is a process of the same user, or of root.
type SameUser struct{ credentials.CommonAuthInfo }

// AuthType returns how the other end is known.
func (SameUser) AuthType() string { return "user" }

func (byUser) handshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if err := sameUser(conn); err != nil {
		return nil, nil, err
	}
	return conn, SameUser{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
}

func (b byUser) ClientHandshake(_ context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return b.handshake(conn)
}

func (b byUser) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return b.handshake(conn)
}

func (byUser) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "user"}
}

func (b byUser) Clone() credentials.TransportCredentials { return b }

func (byUser) OverrideServerName(string) error { return nil }

// marking notes which connections of a listener are of callers that have proved who they are.
type marking struct {
	credentials.TransportCredentials
	gate Gate
}

func (m marking) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if a, ok := raw.(*arrived); ok { // a door has seen to it
		return a.Conn, a.info, nil
	}
	conn, info, err := m.TransportCredentials.ServerHandshake(raw)
	switch {
	case err != nil && m.gate.Refused != nil:
		m.gate.Refused(raw.RemoteAddr().String(), err)
	case err == nil && m.proved(info):
		Authenticated(raw)
	}
	return conn, info, err
}

func (m marking) Clone() credentials.TransportCredentials {
	return marking{m.TransportCredentials.Clone(), m.gate}
}

// proved reports whether the other end is known.
func (m marking) proved(info credentials.AuthInfo) bool {
	t, ok := info.(credentials.TLSInfo)
	if !ok {
		return true // over a socket
	}
	p, ok := trust.PeerOf(t.State)
	return ok && m.gate.Knows(p)
}

// Authenticated notes that the caller on a connection has proved who it is: it is not closed for others' sake.
func Authenticated(conn net.Conn) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if b, ok := conn.(*boundConn); ok {
		b.d.authenticated(b)
	}
}

// Caller is who makes a call.
type Caller struct {
	Local bool       // over a socket: this user
	Peer  trust.Peer // over TLS; without a name where no certificate was shown
	Token string     // of a job, over a socket
	Addr  string
}

// CallerOf returns who makes a call.
func CallerOf(ctx context.Context) Caller {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return Caller{}
	}
	c := Caller{Addr: p.Addr.String()}
	switch info := p.AuthInfo.(type) {
	case SameUser:
		md, _ := metadata.FromIncomingContext(ctx)
		c.Local, c.Token = true, strings.TrimPrefix(strings.Join(md.Get("authorization"), ""), "Bearer ")
	case credentials.TLSInfo:
		c.Peer, _ = trust.PeerOf(info.State)
	}
	return c
}
