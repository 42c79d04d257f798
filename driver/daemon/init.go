package daemon

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/trust"
)

// addressFile says, beside a driver's certificate, where the others reach it.
const addressFile = "address"

// Init makes the authority of a cluster in a driver's data directory, with the driver's certificate, and returns a
// certificate by which its holder is an admin, and the authority's pin.
func Init(dataDir, cluster, address string) (admin trust.Bundle, pin string, err error) {
	dir, now := TrustDir(dataDir), time.Now()
	as, err := trust.MakeAuthorities(dir, cluster, now)
	if err != nil {
		return admin, "", err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return admin, "", fault.New(fault.Usage, "use the address", address, err)
	}
	driver, err := as.Issue(trust.Name{Cluster: cluster, Role: trust.Driver, ID: "1"}, trust.MemberLife, now, host,
		"localhost", "127.0.0.1", "::1")
	if err != nil {
		return admin, "", err
	}
	if admin, err = as.Issue(trust.Name{Cluster: cluster, Role: trust.Admin, ID: thisUser()}, trust.MemberLife,
		now); err != nil {
		return admin, "", err
	}
	if err := trust.WritePrivate(filepath.Join(dir, "issued", "admin.crt"), admin.Chain); err != nil {
		return admin, "", err
	}
	if err := trust.WritePrivate(filepath.Join(dir, addressFile), []byte(address+"\n")); err != nil {
		return admin, "", err
	}
	return admin, as.Pin(), driver.Save(dir)
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
	return strings.TrimSpace(string(raw)), nil
}

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
