package trust

import (
	"crypto/tls"
	"crypto/x509"
	"time"

	"github.com/volley-engine/volley/internal/fault"
)

// verify returns whose a chain of certificates is, if an authority that is trusted here has signed it for this
// cluster.
func (p *present) verify(certs []*x509.Certificate, at time.Time) (Name, error) {
	return verify(certs, p.roots, p.name.Cluster, at)
}

func verify(certs []*x509.Certificate, roots *x509.CertPool, cluster string, at time.Time) (Name, error) {
	between := x509.NewCertPool()
	for _, c := range certs[1:] {
		between.AddCert(c)
	}
	_, err := certs[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: at,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if err != nil {
		return Name{}, fault.New(fault.Unauthorized, "trust", certs[0].Subject.CommonName, err)
	}
	name, err := nameOf(certs[0])
	if err == nil && name.Cluster != cluster {
		err = fault.Newf(fault.Unauthorized, "trust", name.String(), "it is of another cluster than %s", cluster)
	}
	return name, err
}

// nameOf returns the name in a certificate.
func nameOf(c *x509.Certificate) (Name, error) {
	if len(c.URIs) != 1 {
		return Name{}, fault.Newf(fault.Unauthorized, "read", "a certificate", "it has %d names, not one", len(c.URIs))
	}
	return ParseName(c.URIs[0])
}

// Peer is who is at the other end of a connection.
type Peer struct {
	Name    Name
	Serial  string // of its certificate
	Issued  time.Time
	Expires time.Time
}

// Over reports whether the certificate is of the past.
func (p Peer) Over(now time.Time) bool { return !p.Expires.IsZero() && now.After(p.Expires) }

// Overdue returns that the certificate was not renewed when it was to be, a third of its life before its end, nor for
// half of that since; empty where it was, or there is none.
func (p Peer) Overdue(now time.Time) string {
	left := p.Expires.Sub(now)
	if p.Expires.IsZero() || left > p.Expires.Sub(p.Issued)/6 {
		return ""
	}
	return "its certificate was not renewed, and ends at " + p.Expires.UTC().Format(time.RFC3339)
}

// PeerOf returns who is at the other end of a connection; false where it has shown no certificate.
func PeerOf(s tls.ConnectionState) (Peer, bool) {
	if len(s.PeerCertificates) == 0 {
		return Peer{}, false
	}
	leaf := s.PeerCertificates[0]
	name, err := nameOf(leaf)
	return Peer{Name: name, Serial: SerialOf(leaf), Issued: leaf.NotBefore.Add(skew), Expires: leaf.NotAfter},
		err == nil
}

// SerialOf returns a certificate's serial number as text.
func SerialOf(c *x509.Certificate) string { return c.SerialNumber.Text(16) }

// base returns what every configuration has: TLS 1.3, and no session that would outlive a change of mind.
func (i *Identity) base(protocols []string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: protocols, SessionTicketsDisabled: true}
}

// Server returns the configuration of a server. A caller shows a certificate of this cluster, or none: who has none
// may ask for its first only, which is the server's to see to, as it is whether a certificate was revoked.
func (i *Identity) Server(protocols []string) *tls.Config {
	cfg := i.base(protocols)
	cfg.ClientAuth = tls.RequestClientCert
	cfg.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return i.present().pair, nil }
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return nil
		}
		_, err := i.present().verify(s.PeerCertificates, time.Now())
		return err
	}
	return cfg
}

// Client returns the configuration of a caller, which speaks only to a server whose name is wanted.
func (i *Identity) Client(protocols []string, wanted func(Name) error) *tls.Config {
	cfg := i.base(protocols)
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return i.present().pair, nil
	}
	cfg.InsecureSkipVerify = true // of host names: VerifyConnection checks authority and name
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		name, err := i.present().verify(s.PeerCertificates, time.Now())
		if err != nil {
			return err
		}
		return wanted(name)
	}
	return cfg
}

// OfRole wants a server of a role.
func OfRole(r Role) func(Name) error {
	return func(n Name) error {
		if n.Role != r {
			return fault.Newf(fault.Unauthorized, "trust", n.String(), "it is no %s", r)
		}
		return nil
	}
}

// OfJob wants a process of a job.
func OfJob(id string) func(Name) error {
	return func(n Name) error {
		if n.Role != Job || n.ID != id {
			return fault.Newf(fault.Unauthorized, "trust", n.String(), "it is not of job %s", id)
		}
		return nil
	}
}

// OfJobProcess wants a job's own process, which none of its runners is.
func OfJobProcess(id string) func(Name) error {
	return func(n Name) error {
		if err := OfJob(id)(n); err != nil || n.Runner == "" {
			return err
		}
		return fault.Newf(fault.Unauthorized, "trust", n.String(), "it is a runner of job %s", id)
	}
}

// Pinned returns the configuration of a caller that has no certificate yet, but the pin of the cluster's authority.
func Pinned(cluster, pin string, protocols []string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: protocols,
		InsecureSkipVerify: true, // VerifyConnection checks the pin and the name
		VerifyConnection: func(s tls.ConnectionState) error {
			roots := x509.NewCertPool()
			found := false
			for _, c := range s.PeerCertificates[1:] {
				if c.IsCA && pinOf(c) == pin {
					roots.AddCert(c)
					found = true
				}
			}
			if !found {
				return fault.Newf(fault.Unauthorized, "trust", s.PeerCertificates[0].Subject.CommonName,
					"its authority is not the one of the token")
			}
			name, err := verify(s.PeerCertificates, roots, cluster, time.Now())
			if err != nil {
				return err
			}
			return OfRole(Driver)(name)
		}}
}
