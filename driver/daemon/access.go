package daemon

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/trust"
)

// Access is who may do what in a cluster, as the journal's records make it: tokens, and certificates that were
// signed. It reads no clock: times are those of records.
type Access struct {
	Tokens  map[string]AccessToken  `json:"tokens,omitempty"`  // by id
	Members map[string]MemberSigned `json:"members,omitempty"` // by serial number of their certificates
	// Removed are the ids of drivers that were taken out: they are not used again.
	Removed []string `json:"removed,omitempty"`
}

// AccessToken is a token, without its secret.
type AccessToken struct {
	ID      string     `json:"id"`
	Hash    string     `json:"hash"` // of its secret
	Role    trust.Role `json:"role"`
	Name    string     `json:"name,omitempty"` // of who joins by it; executors name themselves
	Uses    uint32     `json:"uses"`           // for joining, left
	Made    int64      `json:"made"`           // Unix nanoseconds
	Expires int64      `json:"expires"`
	By      string     `json:"by"` // who made it
	// Bearer says that it opens REST, metrics and the page, and nothing else: no user joins by it.
	Bearer bool `json:"bearer,omitempty"`
}

// MemberSigned is a certificate of a member or a person.
type MemberSigned struct {
	trust.Certificate
	Token    string `json:"token,omitempty"`    // that it was got by
	Replaces string `json:"replaces,omitempty"` // the serial number of the one before it
	Replaced bool   `json:"replaced,omitempty"` // there is one after it
	Revoked  int64  `json:"revoked,omitempty"`  // Unix nanoseconds; zero is not
}

// apply applies a record of tokens or certificates.
func (a *Access) apply(r Record) {
	switch {
	case r.Kind == TokenMade && r.Token != nil:
		put(&a.Tokens, r.Token.ID, *r.Token)
	case r.Kind == TokenRevoked:
		delete(a.Tokens, r.ID)
	case r.Kind == CertificateSigned && r.Member != nil:
		if t, ok := a.Tokens[r.Member.Token]; ok && t.Uses > 0 {
			t.Uses--
			a.Tokens[t.ID] = t
		}
		if m, ok := a.Members[r.Member.Replaces]; ok {
			m.Replaced = true
			a.Members[m.Serial] = m
		}
		put(&a.Members, r.Member.Serial, *r.Member)
	case r.Kind == DriverRemoved && !slices.Contains(a.Removed, r.ID):
		a.Removed = append(a.Removed, r.ID)
	case r.Kind == CertificateRevoked:
		m, known := a.Members[r.ID]
		if !known { // signed by other means, or before the journal was lost
			m.Certificate = trust.Certificate{Serial: r.ID, Expires: time.Unix(0, r.At).Add(trust.AuthorityLife)}
		}
		if m.Revoked == 0 {
			m.Revoked = r.At
			put(&a.Members, r.ID, m)
		}
	}
	a.forget(r.At)
}

func put[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = v
}

// forget drops what has expired: it is refused anyway.
func (a *Access) forget(now int64) {
	for id, t := range a.Tokens {
		if t.Expires < now {
			delete(a.Tokens, id)
		}
	}
	for serial, m := range a.Members {
		if m.Expires.UnixNano() < now && (m.Revoked == 0 || m.Expires.Add(trust.MemberLife).UnixNano() < now) {
			delete(a.Members, serial)
		}
	}
}

func (a *Access) clone() Access {
	out := Access{Tokens: make(map[string]AccessToken, len(a.Tokens)),
		Members: make(map[string]MemberSigned, len(a.Members)), Removed: slices.Clone(a.Removed)}
	for id, t := range a.Tokens {
		out.Tokens[id] = t
	}
	for serial, m := range a.Members {
		out.Members[serial] = m
	}
	return out
}

// token returns the token of a secret, if it is good.
func (a *Access) token(secret string, now time.Time) (AccessToken, bool) {
	hash := trust.HashOf(secret)
	for _, t := range a.Tokens {
		if t.Hash == hash {
			return t, t.Expires > now.UnixNano()
		}
	}
	return AccessToken{}, false
}

// joining returns the name that a caller gets by a token, or why it gets none.
func (a *Access) joining(t AccessToken, cluster, wish string, now time.Time) (n trust.Name, why string) {
	n = trust.Name{Cluster: cluster, Role: t.Role, ID: t.Name}
	if (t.Role == trust.Executor || t.Role == trust.Driver) && n.ID == "" {
		n.ID = wish
	}
	switch {
	case t.Bearer:
		return n, "the token is for REST, metrics and the page, and opens nothing else"
	case t.Uses == 0:
		return n, "the token was used before, and is good for no more"
	case !trust.Valid(n.ID):
		return n, fmt.Sprintf("%q is no name: letters, digits, '.', '_' and '-', at most 128", n.ID)
	}
	for _, m := range a.good(n.String(), now) {
		return n, fmt.Sprintf("%s/%s has a certificate already (serial %s): choose another name, or revoke that first",
			n.Role, n.ID, m.Serial)
	}
	return n, ""
}

// good returns the certificates of a name that are in force.
func (a *Access) good(name string, now time.Time) (out []MemberSigned) {
	for _, m := range a.Members {
		if m.Name == name && m.Revoked == 0 && m.Expires.After(now) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(x, y MemberSigned) int { return cmp.Compare(x.Serial, y.Serial) })
	return out
}

// revoked reports whether a certificate was revoked.
func (a *Access) revoked(serial string) bool { return a.Members[serial].Revoked != 0 }

// out reports whether a member has been let out since a time: one that joins again under its name has no part in what
// was of the other.
func (a *Access) out(n trust.Name, since time.Time) bool {
	name := n.String()
	for _, m := range a.Members {
		if m.Name == name && m.Revoked != 0 && since.Before(time.Unix(0, m.Revoked)) {
			return true
		}
	}
	return false
}

// which returns the certificates that a serial number, or a name such as executor/a, stands for.
func (a *Access) which(cluster, s string, now time.Time) []MemberSigned {
	if m, ok := a.Members[s]; ok {
		return []MemberSigned{m}
	}
	if !strings.Contains(s, "://") {
		s = "volley://" + cluster + "/" + s
	}
	return a.good(s, now)
}

// ofDriverRole reports whether a certificate's name is a driver's.
func ofDriverRole(name string) bool {
	u, err := url.Parse(name)
	if err != nil {
		return false
	}
	n, err := trust.ParseName(u)
	return err == nil && n.Role == trust.Driver
}

// under returns the certificates in use that another authority than the one of a pin has signed.
func (a *Access) under(pin string, now time.Time) (out []MemberSigned) {
	for _, m := range a.Members {
		if ofDriverRole(m.Name) { // who signs their own
			continue
		}
		if m.Authority != pin && !m.Replaced && m.Revoked == 0 && m.Expires.After(now) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(x, y MemberSigned) int { return strings.Compare(x.Name+x.Serial, y.Name+y.Serial) })
	return out
}
