package web

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Sessions are those of browsers that were let in, by a link that works once or by a token that is pasted.
type Sessions struct {
	cookie string // its name, which the port is added to: a host's ports share their cookies
	take   func(token string) (Grant, bool)

	mu   sync.Mutex
	once map[[32]byte]pending // of links that were not opened yet
	open map[[32]byte]Session
}

// pending is a link that was not opened yet.
type pending struct {
	Grant
	made time.Time
}

// Grant is what a browser may.
type Grant struct {
	Change bool        // cancel jobs and the like, beside reading
	Holds  func() bool // whether it still does; nil is as long as the session
}

// Session is what was opened by a grant.
type Session struct {
	Grant
	Form string // what forms have, so that no other site can send them
	ends time.Time
}

// How long a session lasts, and how many there are, and links that were not opened: of more the oldest is ended.
const (
	sessionLife  = 12 * time.Hour
	mostSessions = 1000
	mostLinks    = 100
)

// NewSessions returns those of cookies of a name. take returns what a token that is pasted opens; nil takes none.
func NewSessions(cookie string, take func(token string) (Grant, bool)) *Sessions {
	return &Sessions{cookie: cookie, take: take, once: map[[32]byte]pending{}, open: map[[32]byte]Session{}}
}

// EnterPath is where links that work once lead.
const EnterPath = "/enter"

// Link returns the path of a link that lets the first browser in that opens it.
func (s *Sessions) Link(g Grant) string {
	secret := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	makeRoom(s.once, mostLinks, func(p pending) time.Time { return p.made })
	s.once[sha256.Sum256([]byte(secret))] = pending{g, time.Now()}
	return EnterPath + "?token=" + secret
}

// makeRoom removes the oldest where there are as many as may be.
func makeRoom[V any](all map[[32]byte]V, most int, at func(V) time.Time) {
	if len(all) < most {
		return
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b [32]byte) int { return at(all[a]).Compare(at(all[b])) })
	delete(all, keys[0])
}

// name returns that of the cookie of a request.
func (s *Sessions) name(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host) // without one it is that of the scheme
	return s.cookie + port
}

// Tokens reports whether a token that is pasted may open a session.
func (s *Sessions) Tokens() bool { return s.take != nil }

// Of returns the session of a request.
func (s *Sessions) Of(r *http.Request) (Session, bool) {
	c, err := r.Cookie(s.name(r))
	if err != nil {
		return Session{}, false
	}
	key := sha256.Sum256([]byte(c.Value))
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.open[key]
	if ok && (time.Now().After(found.ends) || found.Holds != nil && !found.Holds()) {
		delete(s.open, key)
		return Session{}, false
	}
	return found, ok
}

// Sent reports whether a form was sent by a page of its session, which may change something.
func (s *Sessions) Sent(r *http.Request) bool {
	found, ok := s.Of(r)
	return ok && found.Change && subtle.ConstantTimeCompare([]byte(r.PostFormValue("form")), []byte(found.Form)) == 1
}

// Enter lets a browser in that has a link's secret or a token, and reports whether it has. Who only asks what is there
// (HEAD), as previews of links do, uses nothing up.
func (s *Sessions) Enter(w http.ResponseWriter, r *http.Request, token string) bool {
	if r.Method == http.MethodHead {
		return false
	}
	key := sha256.Sum256([]byte(token))
	s.mu.Lock()
	p, ok := s.once[key]
	delete(s.once, key)
	s.mu.Unlock()
	g := p.Grant
	if !ok && s.take != nil {
		g, ok = s.take(token)
	}
	if ok {
		s.Begin(w, r, g)
	}
	return ok
}

// Begin opens a session, which the browser's cookie stands for.
func (s *Sessions) Begin(w http.ResponseWriter, r *http.Request, g Grant) {
	secret, ends := rand.Text(), time.Now().Add(sessionLife)
	s.mu.Lock()
	defer s.mu.Unlock()
	makeRoom(s.open, mostSessions, func(o Session) time.Time { return o.ends })
	s.open[sha256.Sum256([]byte(secret))] = Session{Grant: g, Form: rand.Text(), ends: ends}
	http.SetCookie(w, &http.Cookie{Name: s.name(r), Value: secret, Path: "/", HttpOnly: true, Secure: r.TLS != nil,
		SameSite: http.SameSiteStrictMode, MaxAge: int(sessionLife.Seconds())})
}

// Opened leads a browser on that was let in. One that comes from a page of another site does not show its cookie while
// it is led: it goes on from a page of this one.
func Opened(w http.ResponseWriter, r *http.Request, to string) {
	if site := r.Header.Get("Sec-Fetch-Site"); site == "" || site == "none" || site == "same-origin" {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	_, _ = fmt.Fprintf(w, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Volley</title><meta "+
		"http-equiv=\"refresh\" content=\"0;url=%s\"><p><a href=\"%s\">go on</a></p></html>\n", to, to)
}
