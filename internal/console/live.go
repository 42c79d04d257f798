package console

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/volley-engine/volley/internal/pages"
	"github.com/volley-engine/volley/internal/web"
)

// How often what is looked at is looked for changes: at most this often, and so that drawing it, and writing it to all
// who look at it, takes no more than about a hundredth of a core. What a viewer costs is twice what it takes: a step of
// the job waits for the slowest of its executors.
const (
	liveTick  = 200 * time.Millisecond
	liveShare = 100
	writes    = 8 * time.Nanosecond   // of a byte, to one
	wakes     = 50 * time.Microsecond // of an event, for the one that writes it and the one that reads it
)

// How many pages may be left open, and how many of them by one reader.
const (
	mostViewers = 500
	mostOfOne   = 100
)

// topic is what one or several viewers look at. It is made once for all of them, and only while there is one.
type topic struct {
	viewers int

	mu      sync.Mutex
	parts   []part // nil before they are made
	ended   bool
	changed chan struct{} // closed at the next change
}

// part is a part of a page, and the event that brings it to who looks at it.
type part struct {
	pages.Part
	event []byte
}

func (p part) same(o part) bool { return p.Part == o.Part }

// encoded returns parts with their events, and what it costs to write those that are new to one who has others.
func encoded(parts []pages.Part, had []part) (all []part, cost time.Duration) {
	for _, p := range parts {
		at := slices.IndexFunc(had, func(h part) bool { return h.Part == p })
		if at >= 0 {
			all = append(all, had[at])
			continue
		}
		raw, err := json.Marshal(map[string]string{"id": p.ID, "html": p.HTML})
		if err != nil {
			continue // texts are always encoded
		}
		e := part{p, fmt.Appendf(nil, "event: part\ndata: %s\n\n", raw)}
		all, cost = append(all, e), cost+wakes+time.Duration(len(e.event))*writes
	}
	return all, cost
}

// made is a page as it is: its parts, whether they change no more, and what it has cost to draw them.
type made struct {
	parts []pages.Part
	ended bool
	cost  time.Duration
}

// follow sends the parts of a page as they change, until the reader leaves, takes nothing, may not read any more, or
// nothing changes any more.
func (c *Console) follow(s Source, w http.ResponseWriter, r *http.Request, name string, build func() made) {
	reader := c.reader(r)
	t := c.view(name, reader, build)
	if t == nil {
		web.Refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("%d pages are left open, or %d by this reader: close "+
			"some", mostViewers, mostOfOne))
		return
	}
	defer c.leave(name, reader, t)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	var sent []part
	for {
		parts, ended, changed := t.now()
		web.Extend(w)
		if !c.still(r) || c.source() != s { // the token was revoked, or another driver leads
			_ = send(w, nil, nil, true)
			return
		}
		if !send(w, sent, parts, ended) || ended {
			return
		}
		sent = parts
		select {
		case <-changed:
		case <-beat.C: // so that who is gone is noticed
			if _, err := fmt.Fprint(w, ": \n\n"); err != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// beatEvery is how often a page that does not change is written to.
const beatEvery = 5 * time.Second

// send writes the parts that differ from those sent before, and reports whether the reader has taken them.
func send(w http.ResponseWriter, before, now []part, ended bool) bool {
	for _, p := range now {
		if slices.ContainsFunc(before, p.same) {
			continue
		}
		if _, err := w.Write(p.event); err != nil {
			return false
		}
	}
	if ended {
		_, _ = fmt.Fprint(w, "event: end\ndata: {}\n\n")
	}
	return http.NewResponseController(w).Flush() == nil
}

// reader returns by what a reader is told from others: the session, or else the machine.
func (c *Console) reader(r *http.Request) string {
	if o, ok := c.sessions.Of(r); ok {
		return o.Form
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr) // the server's own
	return host
}

// view returns a topic with one more viewer; nil where there are too many.
func (c *Console) view(name, reader string, build func() made) *topic {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen >= mostViewers || c.readers[reader] >= mostOfOne {
		return nil
	}
	c.seen++
	c.readers[reader]++
	t := c.topics[name]
	if t == nil {
		t = &topic{changed: make(chan struct{})}
		c.topics[name] = t
		go c.keep(t, build)
	}
	t.viewers++
	return t
}

func (c *Console) leave(name, reader string, t *topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen--
	if c.readers[reader]--; c.readers[reader] == 0 {
		delete(c.readers, reader)
	}
	if t.viewers--; t.viewers == 0 && c.topics[name] == t {
		delete(c.topics, name)
	}
}

// watched returns how many viewers a topic has.
func (c *Console) watched(t *topic) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return t.viewers
}

// keep makes a topic's parts again and again, while there are viewers and until they change no more.
func (c *Console) keep(t *topic, build func() made) {
	for n := c.watched(t); n > 0; n = c.watched(t) {
		m := guarded(build)
		each := t.publish(m.parts, m.ended)
		if m.ended {
			return
		}
		time.Sleep(max(liveTick, liveShare*(m.cost+time.Duration(n)*each)))
	}
}

// guarded makes a page of what others have written: where that brings the drawing down, the page says so and the
// process goes on.
func guarded(build func() made) (m made) {
	defer func() {
		if r := recover(); r != nil {
			why := alarm(fmt.Sprintf("This cannot be shown: %v", r))
			m = made{parts: []pages.Part{{ID: "state", HTML: why}}, ended: true}
		}
	}()
	return build()
}

func (t *topic) now() (parts []part, ended bool, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.parts, t.ended, t.changed
}

// publish has viewers take parts, and returns what it costs to write to each what is new.
func (t *topic) publish(parts []pages.Part, ended bool) (cost time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, cost := encoded(parts, t.parts)
	if slices.EqualFunc(t.parts, all, part.same) && t.ended == ended {
		return 0
	}
	t.parts, t.ended = all, ended
	close(t.changed)
	t.changed = make(chan struct{})
	return cost
}
