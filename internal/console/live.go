package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/volley-engine/volley/internal/pages"
	"github.com/volley-engine/volley/internal/web"
)

// How often what is looked at is looked for changes: at most this often, and so that drawing it takes no more than a
// hundredth of a core, however many look at it.
const (
	liveTick  = 200 * time.Millisecond
	liveShare = 100
)

// mostViewers is how many pages may be left open.
const mostViewers = 500

// topic is what one or several viewers look at. It is made once for all of them, and only while there is one.
type topic struct {
	viewers int

	mu      sync.Mutex
	parts   []pages.Part // nil before they are made
	ended   bool
	changed chan struct{} // closed at the next change
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
	t := c.view(name, build)
	if t == nil {
		web.Refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("%d pages are left open: close some", mostViewers))
		return
	}
	defer c.leave(name, t)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	var sent []pages.Part
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
func send(w http.ResponseWriter, before, now []pages.Part, ended bool) bool {
	for _, p := range now {
		if slices.Contains(before, p) {
			continue
		}
		raw, err := json.Marshal(map[string]string{"id": p.ID, "html": p.HTML})
		if err != nil {
			return false
		}
		if _, err := fmt.Fprintf(w, "event: part\ndata: %s\n\n", raw); err != nil {
			return false
		}
	}
	if ended {
		_, _ = fmt.Fprint(w, "event: end\ndata: {}\n\n")
	}
	return http.NewResponseController(w).Flush() == nil
}

// view returns a topic with one more viewer; nil where there are too many.
func (c *Console) view(name string, build func() made) *topic {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen >= mostViewers {
		return nil
	}
	c.seen++
	t := c.topics[name]
	if t == nil {
		t = &topic{changed: make(chan struct{})}
		c.topics[name] = t
		go c.keep(t, build)
	}
	t.viewers++
	return t
}

func (c *Console) leave(name string, t *topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen--
	if t.viewers--; t.viewers == 0 && c.topics[name] == t {
		delete(c.topics, name)
	}
}

// watched reports whether a topic has viewers.
func (c *Console) watched(t *topic) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return t.viewers > 0
}

// keep makes a topic's parts again and again, while there are viewers and until they change no more.
func (c *Console) keep(t *topic, build func() made) {
	for c.watched(t) {
		m := guarded(build)
		if t.publish(m.parts, m.ended); m.ended {
			return
		}
		time.Sleep(max(liveTick, liveShare*m.cost))
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

func (t *topic) now() (parts []pages.Part, ended bool, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.parts, t.ended, t.changed
}

func (t *topic) publish(parts []pages.Part, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Equal(t.parts, parts) && t.ended == ended {
		return
	}
	t.parts, t.ended = parts, ended
	close(t.changed)
	t.changed = make(chan struct{})
}
