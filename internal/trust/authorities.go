package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
)

// Authorities are those of a cluster, in a driver's directory: usually one, and two while the newer takes over. The
// newest signs; all are trusted.
type Authorities struct {
	dir string

	mu      sync.Mutex
	all     []*Authority // the newest last
	retired time.Time    // when some were, for the last time; zero is never
}

// pattern is that of the files of authorities, by number.
const pattern = "authority-%d"

// OpenAuthorities reads the authorities of a directory.
func OpenAuthorities(dir string) (*Authorities, error) {
	if err := CheckDirectory(dir); err != nil {
		return nil, err
	}
	as := &Authorities{dir: dir}
	if info, err := os.Stat(filepath.Join(dir, retiredFile)); err == nil {
		as.retired = info.ModTime()
	}
	for _, n := range numbersIn(dir) {
		a, err := openAuthority(dir, n)
		if err != nil {
			return nil, fault.New(fault.Corrupt, "read the authority in", filepath.Join(dir, fmt.Sprintf(pattern, n)),
				err)
		}
		as.all = append(as.all, a)
	}
	if len(as.all) == 0 {
		return nil, fault.Newf(fault.Usage, "find the authority in", dir, "there is none").
			WithHint("make one: volley init; another driver of a cluster gets them by volley init --bundle or --join")
	}
	return as, nil
}

// numbersIn returns the numbers of a directory's authorities, in order.
func numbersIn(dir string) (out []int) {
	for _, f := range disk.Glob(dir, "authority-*.key") {
		var n int
		if _, err := fmt.Sscanf(filepath.Base(f), pattern+".key", &n); err == nil {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

func openAuthority(dir string, n int) (*Authority, error) {
	base := filepath.Join(dir, fmt.Sprintf(pattern, n))
	key, err := ReadPrivate(base + ".key")
	if err != nil {
		return nil, err
	}
	certs, err := os.ReadFile(base + ".crt")
	if err != nil {
		return nil, err
	}
	return ParseAuthority(certs, key)
}

// MakeAuthorities makes the first authority of a cluster, in a directory that has none.
func MakeAuthorities(dir, cluster string, now time.Time) (*Authorities, error) {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Newf(fault.Usage, "make an authority in", dir, "it is there already").
			WithHint("it has the keys of a cluster: remove it only if that cluster is to end")
	}
	a, err := NewAuthority(cluster, now)
	if err != nil {
		return nil, err
	}
	as := &Authorities{dir: dir}
	return as, as.add(a)
}

// AuthorityPEM is an authority as it is passed to another driver: its certificates and its key.
type AuthorityPEM struct {
	Certificates []byte `json:"certificates"`
	Key          []byte `json:"key"`
}

// Export returns the authorities, for another driver of the cluster.
func (as *Authorities) Export() (out []AuthorityPEM, err error) {
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, a := range as.all {
		certs, key, err := a.PEM()
		if err != nil {
			return nil, err
		}
		out = append(out, AuthorityPEM{certs, key})
	}
	return out, nil
}

// ImportAuthorities keeps the authorities of another driver in a directory that has none.
func ImportAuthorities(dir string, from []AuthorityPEM) (*Authorities, error) {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Newf(fault.Usage, "keep the authorities in", dir, "it is there already").
			WithHint("it has the keys of a cluster: remove it only if this is to be a driver of another")
	}
	as := &Authorities{dir: dir}
	for _, f := range from {
		a, err := ParseAuthority(f.Certificates, f.Key)
		if err != nil {
			return nil, err
		}
		if err := as.add(a); err != nil {
			return nil, err
		}
	}
	return as, nil
}

// Adopt takes over the authorities of another driver where they are newer: there is one that follows those here, or
// some were retired. It reports whether it has.
func (as *Authorities) Adopt(from []AuthorityPEM) (changed bool, err error) {
	var all []*Authority
	for _, f := range from {
		a, err := ParseAuthority(f.Certificates, f.Key)
		if err != nil {
			return false, err
		}
		all = append(all, a)
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	if len(all) == 0 || all[0].Cluster() != as.all[0].Cluster() {
		return false, fault.Newf(fault.Unauthorized, "take over", "authorities", "they are of another cluster")
	}
	ours, theirs := as.all[len(as.all)-1], all[len(all)-1]
	later := theirs.cert.NotBefore.After(ours.cert.NotBefore)
	if !later && (theirs.Pin() != ours.Pin() || len(all) >= len(as.all)) {
		return false, nil
	}
	old, had := numbersIn(as.dir), as.all
	for _, a := range all {
		if err := as.add(a); err != nil {
			as.all = had // as before: those that were written are not used, and are replaced the next time
			return false, err
		}
	}
	as.all = all
	for _, n := range old {
		if err := errors.Join(disk.Remove(as.file(n, "key")), disk.Remove(as.file(n, "crt"))); err != nil {
			return true, fault.New(fault.NoResources, "remove the authority in", as.dir, err)
		}
	}
	if len(all) == 1 {
		as.retired = time.Now()
		return true, WritePrivate(filepath.Join(as.dir, retiredFile), nil)
	}
	return true, nil
}

// add keeps an authority, its key first: without that the certificate is of no use.
func (as *Authorities) add(a *Authority) error {
	certs, key, err := a.PEM()
	if err != nil {
		return err
	}
	number := 1
	if had := numbersIn(as.dir); len(had) > 0 {
		number = had[len(had)-1] + 1
	}
	if err := WritePrivate(as.file(number, "crt"), certs); err != nil {
		return err
	}
	if err := WritePrivate(as.file(number, "key"), key); err != nil {
		return err
	}
	as.all = append(as.all, a)
	return nil
}

func (as *Authorities) file(number int, kind string) string {
	return filepath.Join(as.dir, fmt.Sprintf(pattern, number)+"."+kind)
}

// Cluster returns the cluster's name.
func (as *Authorities) Cluster() string { return as.newest().Cluster() }

func (as *Authorities) newest() *Authority {
	as.mu.Lock()
	defer as.mu.Unlock()
	return as.all[len(as.all)-1]
}

// Pin returns that of the authority that signs.
func (as *Authorities) Pin() string { return as.newest().Pin() }

// Pins returns those of all, the newest last.
func (as *Authorities) Pins() (out []string) {
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, a := range as.all {
		out = append(out, a.Pin())
	}
	return out
}

// Since returns from when on the authority signs that does so now.
func (as *Authorities) Since() time.Time { return as.newest().cert.NotBefore.Add(skew) }

// Roots returns what is to be trusted, PEM.
func (as *Authorities) Roots() (out []byte) {
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, a := range as.all {
		out = append(out, a.Roots()...)
	}
	return out
}

// Sign signs a request.
func (as *Authorities) Sign(n Name, request []byte, life time.Duration, now time.Time,
	hosts ...string) (chain []byte, err error) {
	public, err := PublicKeyOf(request)
	if err != nil {
		return nil, err
	}
	return as.shown(as.newest().Sign(n, public, life, now, hosts...))
}

// shown appends the earlier authorities to a chain: who has the pin of one of them only sees by it whom to trust.
func (as *Authorities) shown(chain []byte, err error) ([]byte, error) {
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, a := range as.all[:len(as.all)-1] {
		chain = append(chain, a.Roots()...)
	}
	return chain, err
}

// Issue makes an identity, its key too.
func (as *Authorities) Issue(n Name, life time.Duration, now time.Time, hosts ...string) (Bundle, error) {
	b, err := as.newest().Issue(n, life, as.Roots(), now, hosts...)
	if err == nil {
		b.Chain, err = as.shown(b.Chain, nil)
	}
	return b, err
}

// Next makes an authority that signs from then on. Those before it stay trusted.
func (as *Authorities) Next(now time.Time) error {
	next, err := as.newest().Next(now)
	if err != nil {
		return err
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	return as.add(next)
}

// Retire ends all authorities but the newest: what they have signed is not trusted any more.
func (as *Authorities) Retire() error {
	as.mu.Lock()
	defer as.mu.Unlock()
	last := as.all[len(as.all)-1]
	numbers := numbersIn(as.dir)
	for _, n := range numbers[:len(numbers)-1] {
		if err := errors.Join(disk.Remove(as.file(n, "key")), disk.Remove(as.file(n, "crt"))); err != nil {
			return fault.New(fault.NoResources, "remove the authority in", as.dir, err)
		}
	}
	last.by = nil // what they have signed for it is worth nothing any more
	certs, _, err := last.PEM()
	if err != nil {
		return err
	}
	if err := WritePrivate(as.file(numbers[len(numbers)-1], "crt"), certs); err != nil {
		return err
	}
	as.all, as.retired = []*Authority{last}, time.Now()
	return WritePrivate(filepath.Join(as.dir, retiredFile), nil)
}

// retiredFile says by its time when authorities were last retired.
const retiredFile = "retired"

// LastRetired returns when authorities were last retired; zero is never.
func (as *Authorities) LastRetired() time.Time {
	as.mu.Lock()
	defer as.mu.Unlock()
	return as.retired
}

// Retired reports whether a certificate of a time was signed by an authority that is trusted no more.
func (as *Authorities) Retired(issued time.Time) bool {
	as.mu.Lock()
	one, ever := len(as.all) == 1, !as.retired.IsZero()
	as.mu.Unlock()
	return one && ever && issued.Add(time.Second).Before(as.Since()) // certificates have seconds
}

// Certificate is what is kept of a certificate that was signed.
type Certificate struct {
	Serial    string    `json:"serial"`
	Name      string    `json:"name"` // a Name
	Expires   time.Time `json:"expires"`
	Authority string    `json:"authority"` // its pin
}

// CertificateOf returns what is kept of the first certificate of a chain.
func CertificateOf(chain []byte) (Certificate, error) {
	certs, err := parseCertificates(chain)
	if err != nil {
		return Certificate{}, err
	}
	c := Certificate{Serial: SerialOf(certs[0]), Expires: certs[0].NotAfter}
	for _, by := range certs[1:] {
		if certs[0].CheckSignatureFrom(by) == nil {
			c.Authority = pinOf(by)
		}
	}
	name, err := nameOf(certs[0])
	c.Name = name.String()
	return c, err
}
