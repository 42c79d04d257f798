package trust

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"time"

	"github.com/volley-engine/volley/internal/fault"
)

// How long certificates are good for: of an authority, of a daemon or a person, and of a job's processes. They
// are renewed when a third of it is left.
const (
	AuthorityLife = 10 * 365 * 24 * time.Hour
	MemberLife    = 30 * 24 * time.Hour
	JobLife       = time.Hour
)

// skew is how far behind another machine's clock may be.
const skew = 5 * time.Minute

// Authority signs the certificates of a cluster.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// by are certificates of this authority that earlier ones have signed: who trusts only those trusts it, too.
	by []*x509.Certificate
}

// NewAuthority makes an authority of a cluster.
func NewAuthority(cluster string, now time.Time) (*Authority, error) {
	if !Valid(cluster) {
		return nil, fault.Newf(fault.Usage, "name the cluster", cluster,
			"want letters, digits, '.', '_' and '-', at most 128, and no '.' or '-' first")
	}
	a := &Authority{key: newKey()}
	t := template(now, AuthorityLife)
	t.Subject = pkix.Name{CommonName: cluster, Organization: []string{"Volley"}}
	t.IsCA, t.BasicConstraintsValid = true, true
	t.MaxPathLen = 1 // of the next authority, which this one signs
	t.KeyUsage = x509.KeyUsageCertSign
	var err error
	a.cert, err = issue(t, t, &a.key.PublicKey, a.key)
	return a, err
}

// Cluster returns the name of the authority's cluster.
func (a *Authority) Cluster() string { return a.cert.Subject.CommonName }

// Pin returns by what its authority is known before it is trusted: the SHA-256 of its public key.
func (a *Authority) Pin() string { return pinOf(a.cert) }

func pinOf(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// Next makes the authority that follows this one. Both are valid from then on; the certificates that the new one
// signs are trusted by those, too, who know only the old one.
func (a *Authority) Next(now time.Time) (*Authority, error) {
	next, err := NewAuthority(a.Cluster(), now)
	if err != nil {
		return nil, err
	}
	t := template(now, a.cert.NotAfter.Sub(now))
	t.Subject, t.IsCA, t.BasicConstraintsValid, t.MaxPathLenZero = next.cert.Subject, true, true, true
	t.KeyUsage = x509.KeyUsageCertSign
	crossed, err := issue(t, a.cert, &next.key.PublicKey, a.key)
	next.by = []*x509.Certificate{crossed}
	return next, err
}

// Sign makes a certificate of a name for a public key, good for its life, with those of this authority behind it. Hosts
// are where a server is reached: Volley's own processes go by names, browsers and curl by these.
func (a *Authority) Sign(n Name, public crypto.PublicKey, life time.Duration, now time.Time,
	hosts ...string) (chain []byte, err error) {
	t := template(now, life)
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	uri, err := url.Parse(n.String())
	if err != nil {
		return nil, fault.New(fault.Usage, "name", n.String(), err)
	}
	if _, err := ParseName(uri); err != nil {
		return nil, err
	}
	if t.NotAfter.After(a.cert.NotAfter) {
		t.NotAfter = a.cert.NotAfter
	}
	t.Subject = pkix.Name{CommonName: n.ID, Organization: []string{"Volley"}}
	t.URIs = []*url.URL{uri}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if n.Role == Driver || n.Role == Job || n.Role == Executor {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	leaf, err := issue(t, a.cert, public, a.key)
	if err != nil {
		return nil, err
	}
	return pemOf(append(append([]*x509.Certificate{leaf}, a.by...), a.cert)...), nil
}

// Roots returns the authority's certificate, PEM.
func (a *Authority) Roots() []byte { return pemOf(a.cert) }

// PEM returns the authority with its key: the key can make any process a member of the cluster.
func (a *Authority) PEM() (certificates, key []byte, err error) {
	key, err = keyPEM(a.key)
	return pemOf(append([]*x509.Certificate{a.cert}, a.by...)...), key, err
}

// ParseAuthority reads what PEM returns.
func ParseAuthority(certificates, key []byte) (*Authority, error) {
	certs, err := parseCertificates(certificates)
	if err != nil {
		return nil, err
	}
	k, err := parseKey(key)
	if err != nil {
		return nil, err
	}
	for _, c := range certs {
		if !c.IsCA || !k.PublicKey.Equal(c.PublicKey) {
			return nil, fault.Newf(fault.Corrupt, "read", "the authority", "its key is not that of its certificate")
		}
	}
	return &Authority{cert: certs[0], key: k, by: certs[1:]}, nil
}

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // the system gives no random numbers
	}
	return key
}

// template returns what all certificates have.
func template(now time.Time, life time.Duration) *x509.Certificate {
	var serial [16]byte
	_, _ = rand.Read(serial[:]) // never fails
	serial[0] &= 0x7f
	return &x509.Certificate{SerialNumber: new(big.Int).SetBytes(serial[:]), NotBefore: now.Add(-skew).UTC(),
		NotAfter: now.Add(life).UTC()}
}

func issue(t, parent *x509.Certificate, public crypto.PublicKey, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, t, parent, public, key)
	if err != nil {
		return nil, fault.New(fault.Internal, "sign", "a certificate", err)
	}
	return x509.ParseCertificate(der)
}

func pemOf(certs ...*x509.Certificate) (out []byte) {
	for _, c := range certs {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return out
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fault.New(fault.Internal, "encode", "a key", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// parseCertificates reads at least one certificate.
func parseCertificates(raw []byte) (out []*x509.Certificate, err error) {
	for {
		var b *pem.Block
		if b, raw = pem.Decode(raw); b == nil {
			break
		}
		c, err := x509.ParseCertificate(b.Bytes)
		if b.Type != "CERTIFICATE" || err != nil {
			return nil, fault.New(fault.Corrupt, "read", "a certificate", err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, fault.Newf(fault.Corrupt, "read", "a certificate", "there is none")
	}
	return out, nil
}

func parseKey(raw []byte) (*ecdsa.PrivateKey, error) {
	b, _ := pem.Decode(raw)
	if b == nil {
		return nil, fault.Newf(fault.Corrupt, "read", "a key", "there is none")
	}
	k, err := x509.ParsePKCS8PrivateKey(b.Bytes)
	key, ok := k.(*ecdsa.PrivateKey)
	if err != nil || !ok {
		return nil, fault.Newf(fault.Corrupt, "read", "a key", "it is not an ECDSA key in PKCS #8: %v", err)
	}
	return key, nil
}
