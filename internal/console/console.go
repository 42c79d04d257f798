package console

import (
	"net/http"
	"sync"

	"github.com/volley-engine/volley/internal/pages"
	"github.com/volley-engine/volley/internal/web"
	"github.com/volley-engine/volley/internal/wire"
)

// Source is what is shown.
type Source interface {
	// Jobs returns all jobs, the oldest first.
	Jobs() []*wire.JobInfo
	// Job returns one job.
	Job(id string) (*wire.JobInfo, error)
	// Executors returns all executors that are known, lost ones included.
	Executors() []*wire.ExecutorInfo
	// Alarms returns what an operator has to see to.
	Alarms() []string
	// EventLog returns the path of a job's event log, which may not be there yet.
	EventLog(job string) (path string, err error)
	// Output returns the last bytes that a job's own process has printed, or its runner on an executor.
	Output(job, executor string, most int64) ([]byte, error)
	// Stacks returns the stacks of a job's processes, for who has sent a request.
	Stacks(r *http.Request, job string) ([]*wire.Inspection, error)
	// Act carries out what a button says for who has sent a request.
	Act(r *http.Request, do Action, job string) error
}

// Action is what a button does to a job.
type Action string

// The actions.
const (
	Cancel Action = "cancel"
	Resume Action = "resume"
)

// Console shows a source.
type Console struct {
	name     string
	source   func() Source // nil while there is none here
	away     func() string // why there is none
	sessions *web.Sessions
	known    func(*http.Request) (web.Grant, bool) // by what a request itself shows; nil knows none
	may      func(*http.Request) bool              // read, by what a request itself shows; nil is by sessions alone

	mu      sync.Mutex
	jobs    map[string]*jobPage // that were looked at last
	topics  map[string]*topic   // that are looked at
	seen    int                 // viewers
	readers map[string]int      // how many of them each has
}

// Config is of what a console is made.
type Config struct {
	Name     string
	Sessions *web.Sessions
	// Source returns what is shown; nil while there is nothing to show here, of which Away says why.
	Source func() Source
	Away   func() string
	// Known returns what who sends a request may by what it shows, such as a certificate; nil knows none.
	Known func(*http.Request) (web.Grant, bool)
	// May reports whether who sends a request may read by what it shows, as programs do; nil is by sessions alone.
	May func(*http.Request) bool
}

// New returns a console.
func New(cfg Config) *Console {
	return &Console{name: cfg.Name, source: cfg.Source, away: cfg.Away, sessions: cfg.Sessions, known: cfg.Known,
		may:  cfg.May,
		jobs: map[string]*jobPage{}, topics: map[string]*topic{}, readers: map[string]int{}}
}

// Routes returns those of all pages.
func (c *Console) Routes() []web.Route {
	all := append(pages.Routes(), web.Route{Path: web.EnterPath, Serve: c.enter, Do: c.enter},
		web.Route{Path: "/{$}", Serve: c.with(c.overview)},
		web.Route{Path: "/live", Serve: c.with(c.overviewLive)},
		web.Route{Path: "/compare", Serve: c.with(c.compare)},
		web.Route{Path: "/jobs/{id}", Serve: c.with(c.job)},
		web.Route{Path: "/jobs/{id}/live", Serve: c.with(c.jobLive)},
		web.Route{Path: "/jobs/{id}/numbers/{figure}", Serve: c.with(c.numbers)},
		web.Route{Path: "/jobs/{id}/output", Serve: c.with(c.output)},
		web.Route{Path: "/jobs/{id}/output/live", Serve: c.with(c.outputLive)},
		web.Route{Path: "/jobs/{id}/stacks", Serve: c.with(c.stacks)},
		web.Route{Path: "/jobs/{id}/events.jsonl", Serve: c.with(c.eventLog)},
		web.Route{Path: "/jobs/{id}/{action}", Serve: c.with(c.ask), Do: c.with(c.act)})
	for i := range all {
		all[i].Page = true
	}
	return all
}

// Open reports whether a request may be answered: it has a session, or is of what is seen without one.
func (c *Console) Open(r *http.Request) bool {
	_, ok := c.sessions.Of(r)
	return ok || pages.Free(r.URL.Path) || r.URL.Path == web.EnterPath
}

// still reports whether who has sent a request may read on.
func (c *Console) still(r *http.Request) bool { return c.Open(r) || c.may != nil && c.may(r) }

// with passes on what there is to show.
func (c *Console) with(serve func(Source, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s := c.source(); s != nil {
			serve(s, w, r)
			return
		}
		c.fail(w, r, http.StatusServiceUnavailable, c.away())
	}
}

// fail answers by a page that says why there is no other.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, code int, why string) {
	pages.WriteStatus(w, r, code, pages.Page{Title: http.StatusText(code),
		Back:  []pages.Link{{Path: "/", Name: c.name}},
		Parts: []pages.Part{{ID: "why", HTML: "<p>" + text(why) + "</p>"}}})
}

// enter lets a browser in that has a link's secret, or a token that its reader pastes.
func (c *Console) enter(w http.ResponseWriter, r *http.Request) {
	token, why := r.URL.Query().Get("token"), ""
	if c.known != nil {
		if g, ok := c.known(r); ok {
			c.sessions.Begin(w, r, g)
			web.Opened(w, r, "/")
			return
		}
	}
	if r.Method == http.MethodPost {
		r.Body = http.MaxBytesReader(w, r.Body, mostForm)
		token = r.PostFormValue("token")
	}
	if token != "" {
		if c.sessions.Enter(w, r, token) {
			web.Opened(w, r, "/")
			return
		}
		why = "<p class=\"alarm\">This token opens nothing: a link works once, and tokens expire.</p>"
	}
	code := http.StatusOK
	if why != "" {
		code = http.StatusUnauthorized
	}
	door := "<p>Open the link that was printed when the run began; it works once.</p>"
	if c.sessions.Tokens() {
		door = `<form method="post" action="/enter"><p><label>Token <input name="token" type="password" ` +
			`autocomplete="off" size="50"></label> <button>Open</button></p></form><p>volley page prints a link that works ` +
			`once; volley token create --role read makes a token.</p>`
	}
	pages.WriteStatus(w, r, code, pages.Page{Title: c.name, Parts: []pages.Part{{ID: "enter", HTML: why + door}}})
}

// mostForm is how many bytes a form may have.
const mostForm = 16 << 10
