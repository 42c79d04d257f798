package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// admission is the shell around Access: it knows who calls, and makes tokens and certificates.
type admission struct {
	self        wire.Party         // of this driver
	authorities *trust.Authorities // nil where the driver serves one user, over a socket
	drivers     func() []string    // addresses of the cluster's
	journal     func() *Raft
	opened      func() bool               // whether the journal is
	job         func(token string) string // the job that has not ended and has a token
	runs        func(job string) bool     // whether a job has not ended
	leads       func() bool               // whether this driver does

	nextID func() string          // of the driver that joins next
	bundle func() ([]byte, error) // what that is made of

	change sync.Mutex // is held while something is written down
	mu     sync.RWMutex
	access Access
}

// TrustDir returns where a driver's data directory has the authorities of its cluster, and its certificate.
func TrustDir(dataDir string) string { return filepath.Join(dataDir, "trust") }

// openTrust reads the certificates of a driver that serves a network.
func (o *admission) openTrust(dataDir, listen string) (err error) {
	if _, ok := wire.SocketPath(listen); ok {
		return nil
	}
	if err := wire.CheckAddress("listen on", listen); err != nil {
		return err
	}
	dir := TrustDir(dataDir)
	if _, err := os.Stat(dir); err != nil {
		return fault.Newf(fault.Usage, "listen on", listen, "over the network processes speak mutual TLS, and the "+
			"data directory has no certificates").
			WithHint("make the cluster first: volley init --address HOST:PORT --data-dir DIR")
	}
	if o.authorities, err = trust.OpenAuthorities(dir); err != nil {
		return err
	}
	if o.self.ID, err = trust.OpenIdentity(dir); err != nil {
		return err
	}
	if time.Now().Before(o.self.ID.Expires()) {
		if err := o.self.ID.Trusts(o.self.ID.Chain()); err != nil {
			return fault.New(fault.Corrupt, "use the certificate in", dir, err).
				WithHint("its authority has not signed it as it is: restore the files, or make this driver anew")
		}
	}
	if err := o.wholeIssued(dir); err != nil {
		return err
	}
	return o.renewSelf(time.Now())
}

// wholeIssued refuses certificates of volley init that are damaged. Those of an authority that was retired are of no
// use any more.
func (o *admission) wholeIssued(dir string) error {
	for _, f := range disk.Glob(dir, "issued/*.crt") {
		chain, err := os.ReadFile(f)
		if err == nil && o.authorities.LastRetired().IsZero() {
			err = o.self.ID.Trusted(chain)
		}
		if err != nil {
			return fault.New(fault.Corrupt, "read", f, err).WithHint("remove the file, if it cannot be restored")
		}
	}
	return nil
}

// renewSelf signs the driver's own certificate anew where that is due.
func (o *admission) renewSelf(now time.Time) error {
	if o.self.ID == nil || now.Before(o.self.ID.RenewAt()) {
		return nil
	}
	return o.certifySelf(now)
}

// certifySelf signs the driver's own certificate.
func (o *admission) certifySelf(now time.Time) error {
	request, err := o.self.ID.Request()
	if err != nil {
		return err
	}
	chain, err := o.authorities.Sign(o.self.ID.Name(), request, trust.MemberLife, now, o.self.ID.Hosts()...)
	if err != nil {
		return err
	}
	return o.self.ID.Renewed(chain, o.authorities.Roots())
}

// who returns who makes a call; the role of a caller that is not known is empty.
func (o *admission) who(c wire.Caller) trust.Name {
	switch {
	case c.Local && c.Token == "":
		return trust.Name{Cluster: oneUser, Role: trust.Admin, ID: thisUser()}
	case c.Local:
		if job := o.job(c.Token); job != "" {
			return trust.Name{Cluster: oneUser, Role: trust.Job, ID: job}
		}
		return trust.Name{}
	}
	return c.Peer.Name
}

// knows reports whether a certificate is in force.
func (o *admission) knows(p trust.Peer) bool { return o.inForce(p) == nil }

// inForce returns an error where a certificate was revoked, has expired, or is of a job that has ended or of a runner
// whose executor is out.
func (o *admission) inForce(p trust.Peer) error {
	who, why := p.Name, ""
	o.read(func(a *Access) {
		switch {
		case a.revoked(p.Serial):
			why = "was revoked"
		case who.Runner != "" && a.out(trust.Name{Cluster: who.Cluster, Role: trust.Executor, ID: who.Runner},
			p.Issued):
			why = "is of no use: that of its executor was revoked"
		case o.authorities != nil && p.Serial != "" && o.authorities.Retired(p.Issued):
			why = "is of an authority that was retired"
		case p.Over(time.Now()):
			why = "has expired"
		case who.Role == trust.Job && !o.runs(who.ID):
			why = "is of no use: the job has ended"
		}
	})
	if why == "" {
		return nil
	}
	return status.Errorf(codes.Unauthenticated, "the certificate of %s %s", who, why)
}

// write writes records down, and takes them over. What may have been written counts, unless it lets a caller in.
func (o *admission) write(ctx context.Context, records ...Record) error {
	err := o.journal().Append(ctx, records...)
	unknown := fault.Is(err, fault.Timeout) || fault.Is(err, fault.Cancelled)
	o.mu.Lock()
	for _, r := range records {
		if err == nil || unknown && r.Kind != TokenMade {
			o.access.apply(r)
		}
	}
	o.mu.Unlock()
	if err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	return nil
}

// serve has the journal decide, and the driver that leads know of jobs.
func (o *admission) serve(r *Replica) {
	o.journal, o.drivers, o.nextID, o.bundle = func() *Raft { return r.journal }, r.drivers, r.nextID, r.bundle
	o.opened = r.opened.Load
	o.leads = func() bool { return r.present.Load() != nil }
	o.job = func(token string) string {
		if d := r.present.Load(); d != nil {
			return d.jobs.byToken(token)
		}
		return ""
	}
	o.runs = func(job string) bool {
		d := r.present.Load()
		return d != nil && d.jobs.runs(job)
	}
}

// takeOver takes over who may do what as the journal has it, when this driver begins to lead.
func (o *admission) takeOver(a Access) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.access = a
}

// mayRead reports whether a token lets its bearer read what daemons show over HTTP.
func (o *admission) mayRead(token string) (good bool) {
	given, err := trust.ParseToken(token)
	if err != nil {
		return false
	}
	o.read(func(a *Access) {
		t, ok := a.token(given.Secret, time.Now())
		good = ok && t.Bearer
	})
	return good
}

// maySubmit reports whether a token lets its bearer do what submitters do, by REST: only a cluster of one user has any.
func (o *admission) maySubmit(token string) (good bool) {
	given, err := trust.ParseToken(token)
	if err != nil || o.authorities != nil {
		return false
	}
	o.read(func(a *Access) {
		t, ok := a.token(given.Secret, time.Now())
		good = ok && t.Bearer && t.Role == trust.Submit
	})
	return good
}

// read calls a function that looks at who may do what.
func (o *admission) read(look func(*Access)) {
	if !o.opened() {
		look(&Access{})
		return
	}
	if !o.leads() {
		o.journal().fsm.access(look)
		return
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	look(&o.access)
}

// needsCertificates refuses what a driver that serves a socket cannot do.
func (o *admission) needsCertificates() error {
	if o.authorities == nil {
		return status.Error(codes.FailedPrecondition, "this driver serves its own user over a socket, and has no "+
			"certificates: volley init makes a cluster that has")
	}
	return nil
}

// createToken makes a token, and returns its id and what its bearer is given.
func (o *admission) createToken(ctx context.Context, by string, t AccessToken, now time.Time) (id, token string,
	err error) {
	o.change.Lock()
	defer o.change.Unlock()
	secret := trust.NewSecret()
	t.ID, t.Hash, t.By, t.Made = trust.NewSecret()[:8], trust.HashOf(secret), by, now.UnixNano()
	if t.Name == "" && t.Role != trust.Executor && t.Role != trust.Driver {
		t.Name = fmt.Sprintf("%s-%s", t.Role, t.ID)
	}
	given := trust.Token{Role: t.Role, Secret: secret}
	if !t.Bearer {
		given.Cluster, given.Drivers, given.Pin = o.authorities.Cluster(), o.drivers(), o.authorities.Pin()
	}
	return t.ID, given.String(), o.write(ctx, Record{Kind: TokenMade, Token: &t, At: now.UnixNano()})
}

// join signs the first certificate of who has a token.
func (o *admission) join(ctx context.Context, req *wire.JoinRequest, now time.Time) (*wire.Certified, trust.Name,
	error) {
	if err := o.needsCertificates(); err != nil {
		return nil, trust.Name{}, err
	}
	o.change.Lock()
	defer o.change.Unlock()
	var t AccessToken
	var ok bool
	var name trust.Name
	var why string
	next := o.nextID()
	o.read(func(a *Access) {
		if t, ok = a.token(req.Secret, now); ok {
			wish := req.Name
			if t.Role == trust.Driver {
				wish = next
			}
			name, why = a.joining(t, o.authorities.Cluster(), wish, now)
		}
	})
	switch {
	case !ok:
		return nil, name, status.Error(codes.Unauthenticated,
			"the token is not this cluster's, was revoked, or has expired")
	case why != "":
		return nil, name, status.Error(codes.PermissionDenied, why)
	}
	c, err := o.sign(ctx, name, req.Request, MemberSigned{Token: t.ID}, now)
	if err == nil && t.Role == trust.Driver {
		c.Bundle, err = o.bundle()
	}
	return c, name, err
}

// sign signs a certificate, which is written down first: one that the journal lacks could not be revoked by name.
func (o *admission) sign(ctx context.Context, name trust.Name, request []byte, by MemberSigned,
	now time.Time) (*wire.Certified, error) {
	life := trust.MemberLife
	if name.Role == trust.Job {
		life = trust.JobLife
	}
	chain, err := o.authorities.Sign(name, request, life, now, o.hostsOf(ctx, name)...)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if name.Role != trust.Job { // those are short-lived, and end with their job
		if by.Certificate, err = trust.CertificateOf(chain); err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
		if err := o.write(ctx, Record{Kind: CertificateSigned, Member: &by, At: now.UnixNano()}); err != nil {
			return nil, err
		}
	}
	return &wire.Certified{Chain: chain, Roots: o.authorities.Roots()}, nil
}

// hostsOf returns the names of an executor as a server of metrics: NAME.executor.CLUSTER, and the address from which it
// calls, unless that is a driver's machine, or this one: clients would take the executor for the driver.
func (o *admission) hostsOf(ctx context.Context, name trust.Name) []string {
	if name.Role != trust.Executor {
		return nil
	}
	hosts := []string{executorHost(name.ID, name.Cluster)}
	host, _, err := net.SplitHostPort(wire.CallerOf(ctx).Addr)
	ip := net.ParseIP(host)
	if err != nil || ip == nil || ip.IsLoopback() {
		return hosts
	}
	for _, d := range o.drivers() {
		theirs, _, _ := net.SplitHostPort(d)
		if theirs == host {
			return hosts
		}
	}
	return append(hosts, host)
}

// executorHost returns the name that an executor's certificate is for, wherever it is reached.
func executorHost(id, cluster string) string { return id + ".executor." + cluster }

// ofJob returns a certificate for a process of a job; nil where there are none.
func (o *admission) ofJob(job, runner string) ([]byte, error) {
	if o.authorities == nil {
		return nil, nil
	}
	b, err := o.authorities.Issue(trust.Name{Cluster: o.authorities.Cluster(), Role: trust.Job, ID: job,
		Runner: runner},
		trust.JobLife, time.Now())
	return b.Encode(), err
}

// certificatesOfInit writes down the certificates that were signed when the cluster was made.
func (o *admission) certificatesOfInit(ctx context.Context, dataDir string) error {
	if o.authorities == nil {
		return nil
	}
	for _, f := range disk.Glob(TrustDir(dataDir), "issued/*.crt") {
		chain, err := os.ReadFile(f)
		if err != nil {
			return fault.New(fault.NoResources, "read", f, err)
		}
		c, err := trust.CertificateOf(chain)
		if err != nil {
			return fault.New(fault.Corrupt, "read", f, err)
		}
		known := false
		o.read(func(a *Access) { _, known = a.Members[c.Serial] })
		if !known && c.Expires.After(time.Now()) {
			r := Record{Kind: CertificateSigned, Member: &MemberSigned{Certificate: c}, At: time.Now().UnixNano()}
			if err := o.write(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// renewable returns an error where a certificate is good for long: members do not fill the journal with new ones. One
// of before the last change of authorities is renewed at any time.
func (o *admission) renewable(p trust.Peer, now time.Time) error {
	early := now.Before(p.Issued.Add(p.Expires.Sub(p.Issued) / 2))
	changed := p.Issued.Before(o.authorities.LastRetired())
	o.read(func(a *Access) {
		if m, known := a.Members[p.Serial]; known {
			changed = changed || m.Authority != o.authorities.Pin()
		}
	})
	if early && !changed && p.Name.Role != trust.Job {
		return status.Errorf(codes.InvalidArgument, "the certificate is good until %s, and is renewed in the "+
			"second half of its life", p.Expires.Format(time.DateTime))
	}
	return nil
}

// attested returns a program with a signature that executors can check: its submitter's, or, where an authority was
// retired that had signed for them, this driver's, which has checked it when it was submitted.
func (o *admission) attested(u *wire.UserProgram) (*wire.UserProgram, error) {
	if u == nil || o.self.ID == nil {
		return u, nil
	}
	if _, err := wire.SignerOf(o.self.ID, u); err == nil {
		return u, nil
	}
	own := &wire.UserProgram{Digest: u.Digest, Args: u.Args, Dir: u.Dir}
	return own, wire.SignProgram(o.self, own)
}
