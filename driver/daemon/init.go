package daemon

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/trust"
)

// addressFile says, beside a driver's certificate, where the others reach it.
const addressFile = "address"

// Init makes the authority of a cluster in a driver's data directory, with the driver's certificate, and returns a
// certificate by which its holder is an admin, and the authority's pin. Of more drivers than this one, by their
// addresses, the others are made of the bundle that WriteBundle writes.
func Init(dataDir, cluster, address string, others ...string) (admin trust.Bundle, pin string, err error) {
	dir, now := TrustDir(dataDir), time.Now()
	as, err := trust.MakeAuthorities(dir, cluster, now)
	if err != nil {
		return admin, "", err
	}
	drivers := []Peer{{"1", address}}
	for n, at := range others {
		drivers = append(drivers, Peer{strconv.Itoa(n + 2), at})
	}
	if admin, err = as.Issue(trust.Name{Cluster: cluster, Role: trust.Admin, ID: thisUser()}, trust.MemberLife,
		now); err != nil {
		return admin, "", err
	}
	if err := trust.WritePrivate(filepath.Join(dir, "issued", "admin.crt"), admin.Chain); err != nil {
		return admin, "", err
	}
	if err := trust.WritePrivate(filepath.Join(dir, foundingFile), []byte(trust.NewSecret()[:16]+"\n")); err != nil {
		return admin, "", err
	}
	return admin, as.Pin(), makeDriver(dir, as, drivers[0], drivers)
}

// makeDriver makes the files of a driver, its certificate last.
func makeDriver(dir string, as *trust.Authorities, self Peer, all []Peer) error {
	host, _, err := net.SplitHostPort(self.Address)
	if err != nil {
		return fault.New(fault.Usage, "use the address", self.Address, err)
	}
	if err := writeDrivers(dir, all); err != nil {
		return err
	}
	if err := trust.WritePrivate(filepath.Join(dir, addressFile), []byte(self.Address+"\n")); err != nil {
		return err
	}
	b, err := as.Issue(trust.Name{Cluster: as.Cluster(), Role: trust.Driver, ID: self.ID}, trust.MemberLife, time.Now(),
		host, "localhost", "127.0.0.1", "::1")
	if err != nil {
		return err
	}
	return b.Save(dir)
}

// writeDrivers writes the list of a cluster's drivers.
func writeDrivers(dir string, all []Peer) error {
	var list strings.Builder
	for _, p := range all {
		fmt.Fprintln(&list, p.ID, p.Address)
	}
	return trust.WritePrivate(filepath.Join(dir, driversFile), []byte(list.String()))
}

// driverBundle is what another driver of a cluster is made of.
type driverBundle struct {
	Authorities []trust.AuthorityPEM `json:"authorities"`
	Drivers     []Peer               `json:"drivers"`
	Founding    string               `json:"founding"`
	Issued      [][]byte             `json:"issued,omitempty"` // certificates that were signed when it was made
}

// WriteBundle writes what the other drivers of a cluster are made of: who has it can make any process a member.
func WriteBundle(dataDir, file string) error {
	as, err := trust.OpenAuthorities(TrustDir(dataDir))
	if err != nil {
		return err
	}
	b := driverBundle{Founding: foundingOf(dataDir)}
	for _, f := range disk.Glob(TrustDir(dataDir), "issued/*.crt") {
		chain, err := os.ReadFile(f)
		if err != nil {
			return fault.New(fault.NoResources, "read", f, err)
		}
		b.Issued = append(b.Issued, chain)
	}
	if b.Authorities, err = as.Export(); err != nil {
		return err
	}
	if b.Drivers, err = readDrivers(TrustDir(dataDir)); err != nil {
		return err
	}
	raw, err := json.Marshal(b)
	if err != nil {
		return fault.New(fault.Internal, "write", file, err)
	}
	return trust.WritePrivate(file, append(raw, '\n'))
}

// Made reports whether a data directory is that of a driver with certificates.
func Made(dataDir string) bool { return trust.HasIdentity(TrustDir(dataDir)) }

// readBundle reads a bundle from a file that only this user can read, or, of env:NAME, from the environment.
func readBundle(from string) ([]byte, error) {
	if name, env := strings.CutPrefix(from, "env:"); env {
		text, there := os.LookupEnv(name)
		if !there {
			return nil, fault.Newf(fault.Usage, "read the bundle", from, "the environment has no %s", name)
		}
		return []byte(text), nil
	}
	raw, err := trust.ReadPrivate(from)
	if err != nil {
		return nil, fault.New(fault.KindOf(err), "read the bundle", from, err)
	}
	return raw, nil
}

// InitFrom makes another driver of a cluster, of a bundle, and returns the cluster's name.
func InitFrom(dataDir, file, address string) (cluster string, err error) {
	raw, err := readBundle(file)
	if err != nil {
		return "", err
	}
	b, err := parseBundle(raw, file)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(b.Drivers, func(p Peer) bool { return p.Address == address })
	if at < 0 {
		var all []string
		for _, p := range b.Drivers {
			all = append(all, p.Address)
		}
		return "", fault.Newf(fault.Usage, "use", "--address", "%q is none of the cluster's drivers: %s", address,
			strings.Join(all, ", "))
	}
	as, err := trust.ImportAuthorities(TrustDir(dataDir), b.Authorities)
	if err != nil {
		return "", err
	}
	return as.Cluster(), b.make(dataDir, as, b.Drivers[at])
}

// make makes the files of a driver of the bundle's cluster.
func (b driverBundle) make(dataDir string, as *trust.Authorities, self Peer) error {
	dir := TrustDir(dataDir)
	if err := trust.WritePrivate(filepath.Join(dir, foundingFile), []byte(b.Founding+"\n")); err != nil {
		return err
	}
	for n, chain := range b.Issued {
		if err := trust.WritePrivate(filepath.Join(dir, "issued", fmt.Sprintf("%d.crt", n)), chain); err != nil {
			return err
		}
	}
	return makeDriver(dir, as, self, b.Drivers)
}

func parseBundle(raw []byte, file string) (b driverBundle, err error) {
	if err := json.Unmarshal(raw, &b); err != nil || len(b.Authorities) == 0 || len(b.Drivers) == 0 {
		return b, fault.Newf(fault.BadInput, "read the bundle", file, "it is none, or not whole").
			WithHint("volley init --peers writes one")
	}
	return b, nil
}

// InitJoined makes a driver that a running cluster takes in, of what it was sent when it joined, and returns its id.
// It is no driver of the cluster before it has been started.
func InitJoined(dataDir string, own trust.Bundle, raw []byte, address string) (id string, err error) {
	b, err := parseBundle(raw, "of the cluster")
	if err != nil {
		return "", err
	}
	i, err := trust.NewIdentity(own)
	if err != nil {
		return "", err
	}
	as, err := trust.ImportAuthorities(TrustDir(dataDir), b.Authorities)
	if err != nil {
		return "", err
	}
	id = i.Name().ID
	if err := trust.WritePrivate(filepath.Join(TrustDir(dataDir), incompleteFile), nil); err != nil {
		return "", err
	}
	return id, b.make(dataDir, as, Peer{id, address})
}

// addressOf returns where the driver of a data directory is reached, as Init was told; empty where there was none.
func addressOf(dataDir string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(TrustDir(dataDir), addressFile))
	if _, gone := os.Stat(TrustDir(dataDir)); os.IsNotExist(gone) {
		return "", nil
	}
	if os.IsNotExist(err) {
		return "", fault.Newf(fault.Corrupt, "find", filepath.Join(TrustDir(dataDir), addressFile), "it is gone").
			WithHint("write HOST:PORT into it, by which the others reach this driver")
	}
	if err != nil {
		return "", fault.New(fault.NoResources, "read the address in", TrustDir(dataDir), err)
	}
	at := strings.TrimSpace(string(raw))
	host, port, err := net.SplitHostPort(at)
	_, bad := strconv.ParseUint(port, 10, 16)
	if err != nil || bad != nil || net.ParseIP(host) == nil && !hostName.MatchString(host) {
		return "", fault.Newf(fault.Corrupt, "read", filepath.Join(TrustDir(dataDir), addressFile),
			"%q is not HOST:PORT", at).WithHint("write HOST:PORT into it, by which the others reach this driver")
	}
	return at, nil
}

// hostName is what a machine may be called.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,252}[A-Za-z0-9])?$`)

// NewAdmin makes a certificate of an admin from the authority in a driver's data directory, and returns it with the
// cluster's address: the way back in for who has that directory.
func NewAdmin(dataDir string) (admin trust.Bundle, cluster, address string, err error) {
	dir, now := TrustDir(dataDir), time.Now()
	as, err := trust.OpenAuthorities(dir)
	if err != nil {
		return admin, "", "", err
	}
	if address, err = addressOf(dataDir); err != nil {
		return admin, "", "", err
	}
	admin, err = as.Issue(trust.Name{Cluster: as.Cluster(), Role: trust.Admin, ID: thisUser()}, trust.MemberLife, now)
	if err != nil {
		return admin, "", "", err
	}
	file := filepath.Join(dir, "issued", fmt.Sprintf("admin-%d.crt", now.UnixNano()))
	return admin, as.Cluster(), address, trust.WritePrivate(file, admin.Chain)
}
