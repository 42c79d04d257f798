package daemon

import (
	"crypto/tls"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/web"
	"github.com/volley-engine/volley/internal/wire"
)

// answer serves a route: what only the driver that leads knows is asked of that.
func (r *Replica) answer(at route, w http.ResponseWriter, req *http.Request) {
	d := r.present.Load()
	switch {
	case at.own != nil:
		at.own(r, w, req)
	case d != nil:
		at.leads(d, w, req)
	default:
		r.forward(w, req)
	}
}

// serialHeader has the serial number of the certificate that has let a request in that a driver passes on.
const serialHeader = "Volley-Certificate"

// tlsOf returns the state of a request's connection.
func tlsOf(req *http.Request) tls.ConnectionState {
	if req.TLS == nil {
		return tls.ConnectionState{}
	}
	return *req.TLS
}

// forward passes a request on to the driver that leads, with the token that came with it, or the serial number of the
// certificate: whether that may read is for the other to say, which may know more.
func (r *Replica) forward(w http.ResponseWriter, req *http.Request) {
	leader := r.journal.Leader().Address
	if leader == "" {
		web.Refuse(w, http.StatusServiceUnavailable, "no driver leads now: ask again")
		return
	}
	s, err := wire.AskStanding(req.Context(), leader, r.admission.self)
	if err != nil || !s.Leads || s.HTTP == "" {
		web.Refuse(w, http.StatusServiceUnavailable, "the driver at "+leader+" leads, and serves no REST: start it "+
			"with --http")
		return
	}
	to := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: s.HTTP})
	to.Transport = &http.Transport{TLSClientConfig: r.admission.self.ID.Client([]string{"http/1.1"},
		trust.OfRole(trust.Driver)), DisableKeepAlives: true, ResponseHeaderTimeout: web.RequestWait,
		TLSHandshakeTimeout: 5 * time.Second}
	if p, ok := trust.PeerOf(tlsOf(req)); ok && req.Header.Get("Authorization") == "" {
		req.Header.Set(serialHeader, p.Serial)
	} else {
		req.Header.Del(serialHeader)
	}
	to.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) {
		web.Refuse(w, http.StatusBadGateway, "the driver at "+leader+", which leads, did not answer: "+err.Error())
	}
	to.ServeHTTP(w, req)
}
