package trust

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
)

// Files of an identity's directory, named as Kubernetes names them.
const (
	certFile = "tls.crt"
	keyFile  = "tls.key"
	rootFile = "ca.crt"
)

// Bundle is an identity as it is passed on, PEM: its certificate before those of the authorities that signed it, its
// key, and the authorities that it trusts.
type Bundle struct {
	Chain []byte `json:"chain"`
	Key   []byte `json:"key,omitempty"`
	Roots []byte `json:"roots"`
}

// Identity is the certificate of a process, with its key and the authorities that it trusts. It may be renewed while
// it is in use: connections made from then on have the new one.
type Identity struct {
	dir string // empty where it is not on disk

	mu    sync.Mutex
	now   *present
	stamp time.Time // of the certificate's file
}

// present is what an identity is at a time; it does not change.
type present struct {
	Bundle
	name  Name
	pair  *tls.Certificate
	roots *x509.CertPool
}

// NewIdentity returns the identity of a bundle.
func NewIdentity(b Bundle) (*Identity, error) {
	now, err := parseBundle(b)
	if err != nil {
		return nil, err
	}
	return &Identity{now: now}, nil
}

func parseBundle(b Bundle) (*present, error) {
	pair, err := tls.X509KeyPair(b.Chain, b.Key)
	if err != nil {
		return nil, fault.New(fault.Corrupt, "read", "a certificate", err)
	}
	name, err := nameOf(pair.Leaf)
	if err != nil {
		return nil, err
	}
	roots, err := parseCertificates(b.Roots)
	if err != nil {
		return nil, err
	}
	p := &present{Bundle: b, name: name, pair: &pair, roots: x509.NewCertPool()}
	for _, c := range roots {
		p.roots.AddCert(c)
	}
	return p, nil
}

// OpenIdentity reads the identity of a directory.
func OpenIdentity(dir string) (*Identity, error) {
	i := &Identity{dir: dir}
	return i, i.Reload()
}

// HasIdentity reports whether a directory has an identity.
func HasIdentity(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, certFile))
	return err == nil
}

// Reload reads the identity's files again, if another process has changed them.
func (i *Identity) Reload() error {
	if i.dir == "" {
		return nil
	}
	info, err := os.Stat(filepath.Join(i.dir, certFile))
	if err != nil {
		return fault.New(fault.Unauthorized, "read the certificate in", i.dir, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.now != nil && info.ModTime().Equal(i.stamp) {
		return nil
	}
	b, err := readBundle(i.dir)
	if err != nil {
		return err
	}
	now, err := parseBundle(b)
	if err != nil {
		return fault.New(fault.KindOf(err), "use the certificate in", i.dir, err)
	}
	i.now, i.stamp = now, info.ModTime()
	return nil
}

func readBundle(dir string) (b Bundle, err error) {
	if err := CheckDirectory(dir); err != nil {
		return b, err
	}
	if b.Key, err = ReadPrivate(filepath.Join(dir, keyFile)); err != nil {
		return b, err
	}
	if b.Chain, err = os.ReadFile(filepath.Join(dir, certFile)); err == nil {
		b.Roots, err = os.ReadFile(filepath.Join(dir, rootFile))
	}
	if err != nil {
		err = fault.New(fault.Unauthorized, "read the certificate in", dir, err)
	}
	return b, err
}

// Save writes a bundle into a directory, the certificate last: without that there is no identity.
func (b Bundle) Save(dir string) error {
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		return fault.New(fault.NoResources, "keep the certificate in", dir, err)
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{keyFile, b.Key}, {rootFile, b.Roots}, {certFile, b.Chain}} {
		if err := WritePrivate(filepath.Join(dir, f.name), f.data); err != nil {
			return err
		}
	}
	return nil
}

func (i *Identity) present() *present {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.now
}

// Name returns whose the identity is.
func (i *Identity) Name() Name { return i.present().name }

// Hosts returns where the certificate says that its server is reached.
func (i *Identity) Hosts() []string {
	leaf := i.present().pair.Leaf
	hosts := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	return hosts
}

// Roots returns the authorities that the identity trusts, PEM.
func (i *Identity) Roots() []byte { return i.present().Roots }

// Authorities returns how many authorities the identity trusts.
func (i *Identity) Authorities() int { return bytes.Count(i.Roots(), []byte("BEGIN CERTIFICATE")) }

// Chain returns the certificate before those of the authorities that signed it, PEM.
func (i *Identity) Chain() []byte { return i.present().Chain }

// Issued returns when the certificate was signed.
func (i *Identity) Issued() time.Time { return i.present().pair.Leaf.NotBefore.Add(skew) }

// Trusts returns why the identity does not trust a chain of certificates; nil is that it does.
func (i *Identity) Trusts(chain []byte) error {
	certs, err := parseCertificates(chain)
	if err == nil {
		_, err = i.present().verify(certs, time.Now())
	}
	return err
}

// Trusted returns why the identity would not have trusted a chain of certificates when it was signed.
func (i *Identity) Trusted(chain []byte) error {
	certs, err := parseCertificates(chain)
	if err == nil {
		_, err = i.present().verify(certs, certs[0].NotBefore.Add(skew))
	}
	return err
}

// Serial returns the certificate's serial number.
func (i *Identity) Serial() string { return SerialOf(i.present().pair.Leaf) }

// Expires returns when the certificate ends.
func (i *Identity) Expires() time.Time { return i.present().pair.Leaf.NotAfter }

// Serves reports whether clients take the certificate for that of a server: those of executors before 0.2.0 are not.
func (i *Identity) Serves() bool {
	return slices.Contains(i.present().pair.Leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
}

// RenewAt returns when the certificate is to be renewed: when a third of its life is left.
func (i *Identity) RenewAt() time.Time {
	leaf := i.present().pair.Leaf
	return leaf.NotAfter.Add(-leaf.NotAfter.Sub(leaf.NotBefore.Add(skew)) / 3)
}

// Renewed takes over a new certificate for the identity's key, and on disk first where it is kept there.
func (i *Identity) Renewed(chain, roots []byte) error {
	b := Bundle{Chain: chain, Key: i.present().Key, Roots: roots}
	now, err := parseBundle(b)
	if err != nil {
		return err
	}
	if i.dir != "" {
		if err := b.Save(i.dir); err != nil {
			return err
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.now = now; i.dir != "" {
		if info, err := os.Stat(filepath.Join(i.dir, certFile)); err == nil {
			i.stamp = info.ModTime()
		}
	}
	return nil
}

// Request returns a request to sign the identity's key anew (PKCS #10, DER).
func (i *Identity) Request() ([]byte, error) {
	key, ok := i.present().pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fault.Newf(fault.Internal, "sign", "a request", "the key cannot sign")
	}
	return requestOf(key)
}

// NewRequest makes a key, and a request to sign it (PKCS #10, DER).
func NewRequest() (key, request []byte, err error) {
	k := newKey()
	if key, err = keyPEM(k); err != nil {
		return nil, nil, err
	}
	request, err = requestOf(k)
	return key, request, err
}

func requestOf(key crypto.Signer) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, fault.New(fault.Internal, "sign", "a request", err)
	}
	return der, nil
}

// PublicKeyOf returns the key that a request is to sign, which its sender has shown to have.
func PublicKeyOf(request []byte) (crypto.PublicKey, error) {
	r, err := x509.ParseCertificateRequest(request)
	if err == nil {
		err = r.CheckSignature()
	}
	if err != nil {
		return nil, fault.New(fault.Usage, "read", "a request for a certificate", err)
	}
	if _, ok := r.PublicKey.(*ecdsa.PublicKey); !ok {
		return nil, fault.Newf(fault.Usage, "read", "a request for a certificate", "its key is %T, want ECDSA",
			r.PublicKey)
	}
	return r.PublicKey, nil
}

// Issue makes an identity of a name, with a key of its own.
func (a *Authority) Issue(n Name, life time.Duration, roots []byte, now time.Time, hosts ...string) (Bundle, error) {
	k := newKey()
	key, err := keyPEM(k)
	if err != nil {
		return Bundle{}, err
	}
	chain, err := a.Sign(n, &k.PublicKey, life, now, hosts...)
	return Bundle{Chain: chain, Key: key, Roots: roots}, err
}

// Encode returns the bundle as text, for a process's environment.
func (b Bundle) Encode() []byte {
	raw, _ := json.Marshal(b) // plain fields
	return raw
}

// DecodeBundle reads what Encode returns.
func DecodeBundle(raw []byte) (b Bundle, err error) {
	if err := json.Unmarshal(raw, &b); err != nil {
		return b, fault.New(fault.Corrupt, "read", "a certificate", err)
	}
	return b, nil
}

// Signed is a signature, with the certificate of who made it.
type Signed struct {
	Chain     []byte `json:"chain"`
	Signature []byte `json:"signature"`
}

// Sign signs a text, in a context that tells it apart from other uses of the key.
func (i *Identity) Sign(context, text string) (Signed, error) {
	p := i.present()
	key, ok := p.pair.PrivateKey.(crypto.Signer)
	if !ok {
		return Signed{}, fault.Newf(fault.Internal, "sign", context, "the key cannot sign")
	}
	sum := sha256.Sum256([]byte("volley " + context + "\n" + text))
	sig, err := key.Sign(rand.Reader, sum[:], crypto.SHA256)
	return Signed{Chain: p.Chain, Signature: sig}, err
}

// Signer returns who has signed a text. Their certificate may have expired since.
func (i *Identity) Signer(s Signed, context, text string) (Name, error) {
	certs, err := parseCertificates(s.Chain)
	if err != nil {
		return Name{}, err
	}
	name, err := i.present().verify(certs, certs[0].NotBefore.Add(skew))
	if err != nil {
		return Name{}, err
	}
	sum := sha256.Sum256([]byte("volley " + context + "\n" + text))
	key, ok := certs[0].PublicKey.(*ecdsa.PublicKey)
	if !ok || !ecdsa.VerifyASN1(key, sum[:], s.Signature) {
		return Name{}, fault.Newf(fault.Unauthorized, "check", context, "the signature is not that of %v", name)
	}
	return name, nil
}
