package web

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"sync"
	"time"
)

// Sessions are those of browsers that were let in, by a link that works once or by a token that is pasted.
type Sessions struct {
	cookie string // its name: cookies of a host are shared by its ports
	take   func(token string) (Grant, bool)

	mu   sync.Mutex
	once map[[32]byte]Grant // of links that were not opened yet
	open map[[32]byte]Session
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

// How long a session lasts, and how many there are: of more the one that ends first is ended.
const (
	sessionLife  = 12 * time.Hour
	mostSessions = 1000
)

// NewSessions returns those of cookies of a name. take returns what a token that is pasted opens; nil takes none.
func NewSessions(cookie string, take func(token string) (Grant, bool)) *Sessions {
	return &Sessions{cookie: cookie, take: take, once: map[[32]byte]Grant{}, open: map[[32]byte]Session{}}
}

// EnterPath is where links that work once lead.
const EnterPath = "/enter"

// Link returns the path of a link that lets the first browser in that opens it.
func (s *Sessions) Link(g Grant) string {
	secret := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.once[sha256.Sum256([]byte(secret))] = g
	return EnterPath + "?token=" + secret
}

// Of returns the session of a request.
func (s *Sessions) Of(r *http.Request) (Session, bool) {
	c, err := r.Cookie(s.cookie)
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

// Enter lets a browser in that has a link's secret or a token, and reports whether it has.
func (s *Sessions) Enter(w http.ResponseWriter, r *http.Request, token string) bool {
	key := sha256.Sum256([]byte(token))
	s.mu.Lock()
	g, ok := s.once[key]
	delete(s.once, key)
	s.mu.Unlock()
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
	if len(s.open) >= mostSessions {
		first := ends
		var which [32]byte
		for key, o := range s.open {
			if o.ends.Before(first) {
				first, which = o.ends, key
			}
		}
		delete(s.open, which)
	}
	s.open[sha256.Sum256([]byte(secret))] = Session{Grant: g, Form: rand.Text(), ends: ends}
	http.SetCookie(w, &http.Cookie{Name: s.cookie, Value: secret, Path: "/", HttpOnly: true, Secure: r.TLS != nil,
		SameSite: http.SameSiteStrictMode, MaxAge: int(sessionLife.Seconds())})
}
