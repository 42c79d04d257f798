package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// Route is an address, which is served by GET, and where something is done by POST.
type Route struct {
	Path  string
	Serve http.HandlerFunc // nil where something is done only
	Do    http.HandlerFunc // nil where it only shows
	Page  bool             // it is for browsers: programs that have gone wrong are not told of it
}

// Config is what a server shows, and to whom.
type Config struct {
	Addr   string          // HOST:PORT; without an identity on loopback only
	ID     *trust.Identity // the certificate that is shown to clients; nil where there is no TLS
	Routes []Route
	// Refusal returns why a request may not be answered, empty where it may, with the status that says so.
	Refusal func(*http.Request) (code int, why string)
	Login   string // path to which browsers are led that may not read yet; empty leads them nowhere
	Logger  hclog.Logger
}

// What a client may take: to send its request, to take its answer, and between two requests; and how large a request's
// headers may be.
const (
	RequestWait = 10 * time.Second
	answerWait  = time.Minute
	idleWait    = time.Minute
	headerMost  = 16 << 10
)

// Server serves until it is closed.
type Server struct {
	*http.Server
	addr string
	wg   sync.WaitGroup
}

// Serve begins to serve.
func Serve(cfg Config) (*Server, error) {
	if _, _, err := net.SplitHostPort(cfg.Addr); err != nil {
		return nil, fault.New(fault.Usage, "use", "--http", err).WithHint("want HOST:PORT")
	}
	if err := wire.OnlyLoopback("listen on", cfg.Addr); err != nil && cfg.ID == nil {
		return nil, err
	}
	l, err := wire.Listen(cfg.Addr)
	if err != nil {
		return nil, err
	}
	s := &Server{addr: l.Addr().String()}
	s.Server = &http.Server{Handler: cfg.handler(), ReadTimeout: RequestWait, WriteTimeout: answerWait,
		IdleTimeout: idleWait, MaxHeaderBytes: headerMost, ErrorLog: cfg.Logger.Named("http").StandardLogger(
			&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		}}
	if cfg.ID == nil {
		s.wg.Go(func() { _ = s.Server.Serve(l) })
		return s, nil
	}
	s.TLSConfig = cfg.ID.Server([]string{"h2", "http/1.1"})
	s.wg.Go(func() { _ = s.ServeTLS(l, "", "") })
	return s, nil
}

// connKey is the key of a request's connection.
type connKey struct{}

// Addr returns where it is served.
func (s *Server) Addr() string { return s.addr }

// Close ends it.
func (s *Server) Close() error {
	err := s.Server.Close()
	s.wg.Wait()
	return err
}

// handler refuses requests of unauthenticated clients before it looks at the route.
func (cfg *Config) handler() http.Handler {
	mux := http.NewServeMux()
	for _, at := range cfg.Routes {
		if at.Serve != nil {
			mux.HandleFunc("GET "+at.Path, at.Serve)
		}
		if at.Do != nil {
			mux.HandleFunc("POST "+at.Path, at.Do)
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) { cfg.refuseRoute(mux, w, req) })
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.TLS == nil && !local(req.Host) || !ownOrigin(req) {
			Refuse(w, http.StatusForbidden, "this interface is not for pages of other sites")
			return
		}
		if code, why := cfg.Refusal(req); why != "" {
			if cfg.Login != "" && code == http.StatusUnauthorized && req.Method == http.MethodGet &&
				strings.Contains(req.Header.Get("Accept"), "text/html") {
				http.Redirect(w, req, cfg.Login, http.StatusSeeOther)
				return
			}
			Refuse(w, code, why)
			return
		}
		if c, ok := req.Context().Value(connKey{}).(net.Conn); ok {
			wire.Authenticated(c)
		}
		mux.ServeHTTP(w, req)
	})
}

// ownOrigin reports whether a request comes from no page of another site: browsers name the page's site in what may
// change something, and in what another site asks.
func ownOrigin(req *http.Request) bool {
	origin := req.Header.Get("Origin")
	if origin == "" {
		site := req.Header.Get("Sec-Fetch-Site")
		return req.Method == http.MethodGet || req.Method == http.MethodHead || site == "" || site == "same-origin"
	}
	scheme := "http://"
	if req.TLS != nil {
		scheme = "https://"
	}
	return origin == scheme+req.Host
}

// local reports whether a Host header names this machine, which defeats DNS rebinding by pages of other sites.
func local(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// refuseRoute answers a request that matches no route with the reason.
func (cfg *Config) refuseRoute(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	for method, allow := range map[string]string{http.MethodGet: "GET, HEAD", http.MethodPost: "POST"} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "/" {
			w.Header().Set("Allow", allow)
			Refuse(w, http.StatusMethodNotAllowed, "this is asked for otherwise: use "+allow)
			return
		}
	}
	var there []string
	for _, r := range cfg.Routes {
		if !r.Page {
			there = append(there, r.Path)
		}
	}
	Refuse(w, http.StatusNotFound, fmt.Sprintf("there is no %s: there are %s", r.URL.Path, strings.Join(there, ", ")))
}

// Reason returns why something is refused, without the code by which it came over the wire.
func Reason(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}

// Refuse answers a request with the reason why it is refused.
func Refuse(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": why}) // who has asked may be gone
}

// Answer answers a request by JSON.
func Answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // who has asked may be gone
}

// Ready answers whether a daemon is ready: with what it says of itself, or with why it is not.
func Ready(w http.ResponseWriter, why []string, says map[string]any) {
	if len(why) > 0 {
		Refuse(w, http.StatusServiceUnavailable, strings.Join(why, "; "))
		return
	}
	says["status"] = "ok"
	Answer(w, says)
}

// Alive answers that a daemon lives.
func Alive(w http.ResponseWriter, _ *http.Request) { Answer(w, map[string]string{"status": "ok"}) }

// A page that is left open is written to for as long as its reader takes what is written within this.
const partWait = 10 * time.Second

// Extend lets an answer that goes on be written to for a while longer.
func Extend(w http.ResponseWriter) { // where there is no deadline to be set there is none
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(partWait))
}

// BearerOf returns the token that a request has; empty where it has none.
func BearerOf(req *http.Request) string {
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// Unauthenticated is why a request is refused that shows nothing by which its client may read.
const Unauthenticated = "this needs a read token of this cluster, as Authorization: Bearer TOKEN; volley token " +
	"create --role read makes one"
