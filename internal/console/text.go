package console

import (
	"fmt"
	"html"
	"net/url"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/wire"
)

// text returns what is shown of what others have chosen.
func text(s string) string { return html.EscapeString(s) }

// jobPath returns the path of a job's page, and of what is below it.
func jobPath(id string, below ...string) string {
	return "/jobs/" + url.PathEscape(id) + strings.Join(append([]string{""}, below...), "/")
}

// alarm returns what is shown of something that an operator has to see to.
func alarm(what string) string { return "<p class=\"alarm\">" + text(what) + "</p>" }

// link returns a link to a path.
func link(path, name string) string {
	return fmt.Sprintf("<a href=\"%s\">%s</a>", text(path), text(name))
}

// state returns how a state is shown: in words, with a sign of its own.
func state(s string) string {
	sign := map[string]string{"waiting": "◌", "running": "▸", "done": "✓", "failed": "✕", "cancelled": "■",
		"alive": "●", "lost": "✕", "draining": "◐", "drained": "◐"}[s]
	return fmt.Sprintf("<span class=\"state\">%s %s</span>", sign, text(s))
}

// took returns a duration as it is read.
func took(d time.Duration) string {
	switch {
	case d < 0:
		return "–"
	case d < 10*time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// size returns a number of bytes as it is read.
func size(n uint64) string {
	if n == 0 {
		return "–"
	}
	left, unit := float64(n), 0
	for ; left >= 1024 && unit < 4; unit++ {
		left /= 1024
	}
	return fmt.Sprintf("%.3g %s", left, []string{"B", "KiB", "MiB", "GiB", "TiB"}[unit])
}

// clock returns when something was.
func clock(unixNs int64) string {
	at := time.Unix(0, unixNs)
	return fmt.Sprintf("<time datetime=\"%s\">%s</time>", at.UTC().Format(time.RFC3339), at.Format(time.DateTime))
}

// lasted returns how long a job has taken so far.
func lasted(i *wire.JobInfo, now time.Time) time.Duration {
	if i.EndedUnixNs != 0 {
		now = time.Unix(0, i.EndedUnixNs)
	}
	return now.Sub(time.Unix(0, i.SubmittedUnixNs))
}

// over reports whether a job has ended.
func over(i *wire.JobInfo) bool { return i.State != "waiting" && i.State != "running" }
