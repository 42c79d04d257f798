package daemon

import (
	"context"
	"net"
	"path/filepath"
	"slices"

	arrowflight "github.com/apache/arrow/go/v15/arrow/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/flight"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// An executor serves Arrow clients the files that the driver's tickets name. Whether a caller's certificate is in force
// the driver knows, and is asked, as it is by who reads metrics.

// serveFlight serves datasets, if they are asked for.
func (d *Daemon) serveFlight() (stop func(), err error) {
	addr := d.cfg.Flight
	if addr == "" {
		return func() {}, nil
	}
	if err := wire.CheckAddress("use --flight", addr); err != nil {
		return nil, err
	}
	path, socket := wire.SocketPath(addr)
	switch {
	case socket && d.cfg.Party.ID != nil:
		return nil, fault.Newf(fault.Usage, "use", "--flight", "%s is a socket, which clients of a cluster with "+
			"certificates do not reach", addr).WithHint("give HOST:PORT")
	case !socket && d.cfg.Party.ID == nil:
		return nil, wire.NoCertificate("use --flight", addr)
	}
	l, err := wire.Listen(addr)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fault.New(fault.NoResources, "use --flight", addr, err)
	}
	d.location = "grpc+unix://" + path
	if !socket {
		d.location = "grpc+tls://" + d.reachedAt(l.Addr().String())
	}
	s := d.cfg.Party.NewServer(wire.Gate{Knows: mayHaveTickets, Admit: admitReader}, flight.Codec())
	arrowflight.RegisterFlightServiceServer(s, &flight.Door{Who: d.whoReads, Key: func() []byte {
		if key := d.ticketKey.Load(); key != nil {
			return *key
		}
		return nil
	}})
	go func() { _ = s.Serve(l) }()
	return s.Stop, nil
}

// FlightLocation returns where datasets are served to Arrow clients, as these have it; empty where they are not.
func (d *Daemon) FlightLocation() string { return d.location }

// reachedAt returns where an address of this machine is reached by others.
func (d *Daemon) reachedAt(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort(d.host(), port)
	}
	return addr
}

// mayHaveTickets reports whether the driver gives tickets to the holder of a certificate.
func mayHaveTickets(p trust.Peer) bool {
	return slices.Contains([]trust.Role{trust.Submit, trust.Admin}, p.Name.Role)
}

// admitReader refuses calls that no ticket is for, and callers that have none.
func admitReader(ctx context.Context, method string) error {
	c := wire.CallerOf(ctx)
	switch {
	case method != flight.DoGet:
		return status.Errorf(codes.Unimplemented, "an executor serves what tickets name: ask the driver for %s", method)
	case !c.Local && !mayHaveTickets(c.Peer):
		return status.Error(codes.PermissionDenied, "this needs a certificate of the role submit")
	}
	return nil
}

// whoReads names a caller as the driver does, whose certificate is in force.
func (d *Daemon) whoReads(ctx context.Context) (string, error) {
	c := wire.CallerOf(ctx)
	if c.Local {
		return flight.ThisUser, nil
	}
	asked := &wire.ReadsRequest{Name: c.Peer.Name.String(), Serial: c.Peer.Serial,
		IssuedUnixNs: c.Peer.Issued.UnixNano()}
	if _, why := d.readers.mayRead(ctx, asked, false); why != "" {
		return "", status.Error(codes.Unauthenticated, why)
	}
	return c.Peer.Name.String(), nil
}
