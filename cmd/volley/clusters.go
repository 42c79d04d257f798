package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// local stands for this user's own driver.
const local = "local"

// aboutDriver is the help of --driver.
const aboutDriver = "the driver: HOST:PORT, the name of a cluster that volley login has joined, or unix:PATH of a " +
	"socket (default: this user's own driver; without one, the only cluster joined)"

// target is a driver, and how this user is known to it.
type target struct {
	addr string
	by   wire.Party
	home string // where the certificate is, with the list of drivers; empty over a socket
}

// clustersDir returns where a user's certificates are, a directory a cluster.
func clustersDir() string { return filepath.Join(wire.Home(), "clusters") }

// driversFile is, beside a certificate, the list of the cluster's drivers, an address a line.
const driversFile = "drivers"

// findDriver returns the driver that --driver stands for.
func findDriver(flag string) (target, error) {
	joined := joinedClusters()
	switch {
	case flag == "" && len(joined) == 1 && !wire.Served(wire.DefaultDriver()):
		return openCluster(joined[0], "")
	case flag == "" && len(joined) > 1 && !wire.Served(wire.DefaultDriver()):
		return target{}, fault.Newf(fault.Usage, "find", "the driver", "this user has none, and has joined %s",
			strings.Join(joined, ", ")).WithHint("say which: --driver NAME")
	case flag == "" || flag == local:
		return target{addr: wire.DefaultDriver()}, nil
	case slices.Contains(joined, flag):
		return openCluster(flag, "")
	}
	if _, ok := wire.SocketPath(flag); ok {
		return target{addr: flag}, nil
	}
	if err := wire.CheckAddress("use the driver", flag); err != nil {
		return target{}, fault.Newf(fault.Usage, "use the driver", flag,
			"it is neither an address nor a cluster that was "+
				"joined").WithHint("joined are: " + strings.Join(append(joined, "no others"), ", "))
	}
	for _, name := range joined {
		if slices.Contains(driversOf(filepath.Join(clustersDir(), name)), flag) {
			return openCluster(name, flag)
		}
	}
	if len(joined) == 1 {
		return openCluster(joined[0], flag)
	}
	return target{}, wire.NoCertificate("use the driver at", flag)
}

// joinedClusters returns the names of the clusters that this user has certificates of.
func joinedClusters() (out []string) {
	entries, _ := os.ReadDir(clustersDir()) // none is none
	for _, e := range entries {
		if trust.HasIdentity(filepath.Join(clustersDir(), e.Name())) {
			out = append(out, e.Name())
		}
	}
	return out
}

func driversOf(dir string) []string {
	raw, _ := os.ReadFile(filepath.Join(dir, driversFile)) // without it there are none
	return strings.Fields(string(raw))
}

// openCluster returns a driver of a cluster that was joined, at an address, or the first that is known.
func openCluster(name, addr string) (target, error) {
	dir := filepath.Join(clustersDir(), name)
	id, err := trust.OpenIdentity(dir)
	if err != nil {
		return target{}, err
	}
	if time.Now().After(id.Expires()) {
		return target{}, fault.Newf(fault.Unauthorized, "use the certificate in", dir, "it has expired, on %s",
			id.Expires().Format(time.DateTime)).WithHint("get another: volley login, with a token of an admin's")
	}
	if addr == "" {
		all := driversOf(dir)
		if len(all) == 0 {
			return target{}, fault.Newf(fault.Corrupt, "find the drivers of", name, "%s is empty or gone",
				filepath.Join(dir, driversFile)).WithHint("say which: --driver HOST:PORT")
		}
		addr = strings.Join(all, ",")
	}
	return target{addr, wire.Party{ID: id}, dir}, nil
}

// keepIdentity keeps a certificate with the addresses of its cluster's drivers.
func keepIdentity(dir string, b trust.Bundle, drivers []string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.New(fault.NoResources, "keep the certificate in", dir, err)
	}
	if err := trust.WritePrivate(filepath.Join(dir, driversFile), []byte(strings.Join(drivers,
		"\n")+"\n")); err != nil {
		return err
	}
	return b.Save(dir)
}

// dialDriver connects to the driver that --driver stands for.
func dialDriver(flag string) (wire.ClusterClient, func(), error) {
	t, err := findDriver(flag)
	if err != nil {
		return nil, nil, err
	}
	return t.dial()
}

// dial connects to the driver. A certificate of which a third is left is renewed, and while authorities change, so that
// this user learns which are trusted, where the driver lets it.
func (t target) dial() (wire.ClusterClient, func(), error) {
	client, done, err := t.connect()
	if err != nil {
		return nil, nil, err
	}
	if id := t.by.ID; id != nil && (time.Now().After(id.RenewAt()) || id.Authorities() > 1) {
		ctx, cancel := context.WithTimeout(context.Background(), renewWithin)
		defer cancel()
		if err := wire.Renew(ctx, client, id); err != nil && time.Now().After(id.RenewAt()) {
			fmt.Fprintf(os.Stderr, "volley: the certificate, which ends on %s, was not renewed: %v\n",
				id.Expires().Format(time.DateTime), err)
		}
	}
	return client, done, nil
}

// connect connects to the driver, with the certificate as it is.
func (t target) connect() (wire.ClusterClient, func(), error) {
	conn, err := wire.DialDriver(t.addr, t.by)
	if err != nil {
		return nil, nil, err
	}
	return wire.NewClusterClient(conn), func() { conn.Close(); keepLearned(t.home, t.addr) }, nil
}

// keepLearned adds drivers of the cluster that were not known to the list beside a certificate.
func keepLearned(home, list string) {
	if home == "" {
		return
	}
	known := driversOf(home)
	all := slices.Clone(known)
	for _, d := range wire.Learned(list) {
		if !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	if len(all) > len(known) && len(known) > 0 {
		_ = trust.WritePrivate(filepath.Join(home, driversFile), []byte(strings.Join(all, "\n")+"\n")) // the next time
	}
}

// renewWithin bounds how long a command waits for its certificate to be renewed.
const renewWithin = 5 * time.Second
