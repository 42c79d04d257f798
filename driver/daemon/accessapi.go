package daemon

import (
	"cmp"
	"context"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// tokenMost is the longest life of a token.
const tokenMost = 10 * 365 * 24 * time.Hour

// Join gives who has a token its first certificate.
func (d *Daemon) Join(ctx context.Context, req *wire.JoinRequest) (*wire.Certified, error) {
	c, name, err := d.admission.join(ctx, req, time.Now())
	if err != nil {
		return nil, err
	}
	d.audit.did(auditLine{Who: name.String(), From: wire.CallerOf(ctx).Addr, Call: "Join"})
	return c, nil
}

// Renew signs the caller's certificate anew.
func (d *Daemon) Renew(ctx context.Context, req *wire.RenewRequest) (*wire.Certified, error) {
	if err := d.admission.needsCertificates(); err != nil {
		return nil, err
	}
	d.admission.change.Lock()
	defer d.admission.change.Unlock()
	c := wire.CallerOf(ctx)
	if err := d.admission.inForce(c.Peer); err != nil { // which may have changed while this one waited
		return nil, err
	}
	if err := d.admission.renewable(c.Peer, time.Now()); err != nil {
		return nil, err
	}
	signed, err := d.admission.sign(ctx, c.Peer.Name, req.Request, MemberSigned{Replaces: c.Peer.Serial}, time.Now())
	if err == nil && c.Peer.Name.Role == trust.Executor {
		d.members.renewed(c.Peer, signed.Chain)
	}
	return signed, err
}

// Reads reports whether who has shown a token, or a certificate, to an executor may read what that serves.
func (d *Daemon) Reads(_ context.Context, req *wire.ReadsRequest) (*wire.ReadsReply, error) {
	if req.Token != "" {
		return &wire.ReadsReply{May: d.admission.mayRead(req.Token)}, nil
	}
	uri, err := url.Parse(req.Name)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	name, err := trust.ParseName(uri)
	if err != nil || req.Serial == "" {
		return nil, status.Error(codes.InvalidArgument, "it needs a token, or a certificate's name and serial number")
	}
	p := trust.Peer{Name: name, Serial: req.Serial, Issued: time.Unix(0, req.IssuedUnixNs)}
	return &wire.ReadsReply{May: slices.Contains(readers, name.Role) && d.admission.knows(p)}, nil
}

// CreateToken makes a token.
func (d *Daemon) CreateToken(ctx context.Context, req *wire.CreateTokenRequest) (*wire.CreateTokenReply, error) {
	role, err := trust.ParseGranted(req.Role)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	ttl, now := time.Duration(req.TtlNs), time.Now()
	switch {
	case ttl <= 0 || ttl > tokenMost:
		return nil, status.Errorf(codes.InvalidArgument, "a token cannot be good for %v", ttl)
	case req.Uses == 0:
		return nil, status.Error(codes.InvalidArgument, "a token that is good for no use is none")
	case req.Name != "" && !trust.Valid(req.Name):
		return nil, status.Errorf(codes.InvalidArgument,
			"%q is no name: letters, digits, '.', '_' and '-', at most 128", req.Name)
	case role == trust.Driver && req.Name != "":
		return nil, status.Error(codes.InvalidArgument, "drivers are numbered: --name is for others")
	case role != trust.Executor && req.Uses > 1:
		return nil, status.Error(codes.InvalidArgument, "only executors may join more than once by a token: "+
			"people have one each")
	}
	bearer := !req.Login && (role == trust.Read || role == trust.Submit && d.admission.authorities == nil)
	if !bearer {
		if err := d.admission.needsCertificates(); err != nil {
			return nil, err
		}
	}
	t := AccessToken{Role: role, Name: req.Name, Bearer: bearer, Uses: req.Uses, Expires: now.Add(ttl).UnixNano()}
	id, token, err := d.admission.createToken(ctx, d.admission.who(wire.CallerOf(ctx)).String(), t, now)
	if err != nil {
		return nil, err
	}
	return &wire.CreateTokenReply{Id: id, Token: token}, nil
}

// Tokens lists the tokens that are good.
func (d *Daemon) Tokens(context.Context, *wire.TokensRequest) (*wire.TokensReply, error) {
	reply := &wire.TokensReply{}
	now := time.Now().UnixNano()
	d.admission.read(func(a *Access) {
		for _, t := range a.Tokens {
			if t.Expires > now && t.Uses > 0 {
				reply.Tokens = append(reply.Tokens, &wire.TokenInfo{Id: t.ID, Role: string(t.Role), Name: t.Name,
					MadeUnixNs: t.Made, ExpiresUnixNs: t.Expires, Uses: t.Uses, By: t.By})
			}
		}
	})
	slices.SortFunc(reply.Tokens, func(a, b *wire.TokenInfo) int {
		return cmp.Or(cmp.Compare(a.MadeUnixNs, b.MadeUnixNs), strings.Compare(a.Id, b.Id))
	})
	return reply, nil
}

// RevokeToken ends a token. Who has joined by it stays.
func (d *Daemon) RevokeToken(ctx context.Context, req *wire.RevokeTokenRequest) (*wire.RevokeTokenReply, error) {
	d.admission.change.Lock()
	defer d.admission.change.Unlock()
	known := false
	d.admission.read(func(a *Access) { _, known = a.Tokens[req.Id] })
	if !known {
		return nil, status.Errorf(codes.NotFound, "there is no token %q", req.Id)
	}
	return &wire.RevokeTokenReply{}, d.admission.write(ctx, Record{Kind: TokenRevoked, ID: req.Id,
		At: time.Now().UnixNano()})
}

// Certificates lists the certificates of members and people that have not expired.
func (d *Daemon) Certificates(ctx context.Context, _ *wire.CertificatesRequest) (*wire.CertificatesReply, error) {
	reply := &wire.CertificatesReply{}
	if err := d.admission.certificatesOfInit(ctx, d.cfg.DataDir); err != nil {
		return nil, err
	}
	d.admission.read(func(a *Access) {
		for _, m := range a.Members {
			if m.Expires.After(time.Now()) {
				reply.Certificates = append(reply.Certificates, certificateInfo(m))
			}
		}
	})
	slices.SortFunc(reply.Certificates, func(a, b *wire.CertificateInfo) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.ExpiresUnixNs, b.ExpiresUnixNs))
	})
	return reply, nil
}

func certificateInfo(m MemberSigned) *wire.CertificateInfo {
	return &wire.CertificateInfo{Serial: m.Serial, Name: m.Name, ExpiresUnixNs: m.Expires.UnixNano(),
		RevokedUnixNs: m.Revoked, Authority: m.Authority}
}

// RevokeCertificate ends a certificate, or all of a name, and the connections of executors that have it.
func (d *Daemon) RevokeCertificate(ctx context.Context,
	req *wire.RevokeCertificateRequest) (*wire.RevokeCertificateReply,
	error) {
	if err := d.admission.needsCertificates(); err != nil {
		return nil, err
	}
	d.admission.change.Lock()
	defer d.admission.change.Unlock()
	if err := d.admission.certificatesOfInit(ctx, d.cfg.DataDir); err != nil {
		return nil, err
	}
	var which []MemberSigned
	now := time.Now()
	d.admission.read(func(a *Access) { which = a.which(d.admission.authorities.Cluster(), req.Which, now) })
	if len(which) == 0 && serial.MatchString(req.Which) {
		which = []MemberSigned{{Certificate: trust.Certificate{Serial: req.Which}}}
	}
	if len(which) == 0 {
		return nil, status.Errorf(codes.NotFound, "no certificate in force has the serial number or name %q", req.Which)
	}
	reply := &wire.RevokeCertificateReply{}
	var records []Record
	for _, m := range which {
		records = append(records, Record{Kind: CertificateRevoked, ID: m.Serial, At: now.UnixNano()})
		m.Revoked = now.UnixNano()
		reply.Revoked = append(reply.Revoked, certificateInfo(m))
	}
	err := d.admission.write(ctx, records...)
	d.dropRevoked()
	return reply, err
}

// serial is what a certificate's serial number looks like.
var serial = regexp.MustCompile(`^[0-9a-f]{8,40}$`)

// dropRevoked ends the connections of executors whose certificates are not in force any more.
func (d *Daemon) dropRevoked() {
	for _, m := range d.members.all() {
		if p, local := m.party(); !local {
			if err := d.admission.inForce(p); err != nil {
				m.drop(status.Convert(err).Message())
			}
		}
	}
}

// keepRenewed renews the driver's own certificate whenever that is due.
func (r *Replica) keepRenewed() {
	look := time.NewTicker(selfLook)
	defer look.Stop()
	var again time.Time
	for {
		select {
		case now := <-look.C:
			if now.Before(again) {
				continue
			}
			if err := r.admission.renewSelf(now); err != nil {
				r.log.Error("cannot renew the driver's own certificate; it is tried again", "after", selfAgain,
					"error", err)
				again = now.Add(selfAgain)
			}
		case <-r.ctx.Done():
			return
		}
	}
}

// selfLook is the time between two looks at whether a driver's certificate is to be renewed.
const selfLook = time.Second

// selfAgain is the time between two attempts of a driver at its own certificate.
const selfAgain = time.Minute

// ChangeAuthority makes the authority that follows, or retires those before the newest.
func (d *Daemon) ChangeAuthority(ctx context.Context, req *wire.ChangeAuthorityRequest) (*wire.ChangeAuthorityReply,
	error) {
	if err := d.admission.needsCertificates(); err != nil {
		return nil, err
	}
	d.admission.change.Lock()
	defer d.admission.change.Unlock()
	if err := d.admission.certificatesOfInit(ctx, d.cfg.DataDir); err != nil {
		return nil, err
	}
	if err := d.agree(ctx); err != nil && !req.Force { // one that has not heard of it would refuse the others
		return nil, status.Errorf(codes.Unavailable, "%s; volley drivers rm takes out one that is lost",
			status.Convert(err).Message())
	}
	change := func() error { return d.admission.authorities.Next(time.Now()) }
	if !req.Retire && len(d.admission.authorities.Pins()) > 1 {
		return nil, status.Error(codes.InvalidArgument, "two authorities are trusted already: volley certs retire "+
			"ends the older one first")
	}
	if req.Retire {
		if err := d.retirable(req.Force); err != nil {
			return nil, err
		}
		change = d.admission.authorities.Retire
	}
	if err := change(); err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	if err := d.admission.certifySelf(time.Now()); err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	if err := d.agree(ctx); err != nil {
		d.log.Warn("a driver is told of the change as soon as it answers", "error", err)
	}
	d.renewAll()
	return &wire.ChangeAuthorityReply{Authorities: d.admission.authorities.Pins()}, nil
}

// retirable refuses to retire authorities by which members or users are still known.
func (d *Daemon) retirable(force bool) error {
	if len(d.admission.authorities.Pins()) < 2 {
		return status.Error(codes.InvalidArgument, "there is one authority only: volley certs rotate makes the next")
	}
	if force {
		return nil
	}
	until := d.admission.authorities.Since().Add(trust.JobLife)
	if len(d.jobs.running()) > 0 && time.Now().Before(until) {
		return status.Errorf(codes.InvalidArgument, "the processes of jobs that run have certificates of the earlier "+
			"authority until %s: retire it then, or when no job runs; --force ends them", until.Format(time.DateTime))
	}
	var left []MemberSigned
	d.admission.read(func(a *Access) { left = a.under(d.admission.authorities.Pin(), time.Now()) })
	if len(left) == 0 {
		return nil
	}
	return status.Errorf(codes.InvalidArgument, "%s has a certificate of an earlier authority until %s, and %d "+
		"more have: they renew them in time, or at once by volley certs renew; --force lets them out", left[0].Name,
		left[0].Expires.Format(time.DateTime), len(left)-1)
}

// renewAll has the executors renew their certificates.
func (d *Daemon) renewAll() {
	for _, m := range d.members.all() {
		_ = m.out.Put(&wire.ForExecutor{Body: &wire.ForExecutor_Renew{Renew: &wire.Renewal{}}})
	}
}
