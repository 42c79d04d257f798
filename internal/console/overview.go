package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/chart"
	"github.com/volley-engine/volley/internal/pages"
	"github.com/volley-engine/volley/internal/wire"
)

// How many jobs and executors a page has, and how many of the last hour's events.
const (
	mostListed = 50
	mostEvents = 20
)

func (c *Console) overview(s Source, w http.ResponseWriter, r *http.Request) {
	from := places(r.URL.Query())
	pages.Write(w, r, pages.Page{Title: c.name, Parts: overviewParts(s, from, time.Now()), Live: from.path("/live")})
}

func (c *Console) overviewLive(s Source, w http.ResponseWriter, r *http.Request) {
	from := places(r.URL.Query())
	c.follow(s, w, r, from.path("/live"), func() made {
		began := time.Now()
		return made{parts: overviewParts(s, from, began), cost: time.Since(began)}
	})
}

// place is where the lists of a page begin.
type place struct{ jobs, executors int }

// places reads where the lists begin; what makes no sense is the beginning.
func places(q url.Values) place {
	at := func(name string) int {
		n, err := strconv.Atoi(q.Get(name))
		if err != nil || n < 0 {
			return 0
		}
		return n
	}
	return place{at("jobs"), at("executors")}
}

// path returns that of a page whose lists begin there.
func (p place) path(of string) string {
	return fmt.Sprintf("%s?jobs=%d&executors=%d", of, p.jobs, p.executors)
}

func overviewParts(s Source, from place, now time.Time) []pages.Part {
	jobs, executors := s.Jobs(), s.Executors()
	slices.Reverse(jobs)
	return []pages.Part{{ID: "alarms", HTML: alarms(s.Alarms(), executors)}, {ID: "sums", HTML: sums(jobs, executors)},
		{ID: "jobs", HTML: jobTable(jobs, from, now)}, {ID: "executors", HTML: executorTable(executors, from)},
		{ID: "events", HTML: events(jobs, executors, now)}}
}

// alarms shows what an operator has to see to.
func alarms(all []string, executors []*wire.ExecutorInfo) string {
	counts := map[string]int{}
	for _, e := range executors {
		counts[e.State]++
	}
	for _, state := range []string{"lost", "unfit"} { // unfit is what jobs exclude, too
		if n := counts[state]; n > 0 {
			all = append(all, fmt.Sprintf("%d of %d executors are %s: see why below", n, len(executors), state))
		}
	}
	var b strings.Builder
	for _, a := range all {
		fmt.Fprintf(&b, "<p class=\"alarm\" role=\"alert\">⚠ %s</p>", text(a))
	}
	return b.String()
}

// sums shows how many there are of what.
func sums(jobs []*wire.JobInfo, executors []*wire.ExecutorInfo) string {
	counts, slots, free := map[string]int{}, uint32(0), map[string]int{}
	for _, j := range jobs {
		counts[j.State]++
	}
	for _, e := range executors {
		if free[e.State]++; e.State == "alive" {
			slots += e.Slots
		}
	}
	return fmt.Sprintf("<p>%d jobs run, %d wait, %d are done, %d failed, %d were cancelled. %d executors of %d are "+
		"alive, with %d slots.</p>",
		counts["running"], counts["waiting"], counts["done"], counts["failed"], counts["cancelled"],
		free["alive"], len(executors), slots)
}

// listed returns the part of a list that a page has, with links to the others.
func listed[T any](all []T, at int, link func(int) string) (some []T, links string) {
	if at >= len(all) {
		at = 0
	}
	some = all[at:min(at+mostListed, len(all))]
	if at > 0 {
		links += fmt.Sprintf("<a href=\"%s\">before</a> ", text(link(max(0, at-mostListed))))
	}
	if at+mostListed < len(all) {
		links += fmt.Sprintf("<a href=\"%s\">after</a>", text(link(at+mostListed)))
	}
	if links != "" {
		links = fmt.Sprintf("<p>%d to %d of %d. %s</p>", at+1, at+len(some), len(all), links)
	}
	return some, links
}

func jobTable(jobs []*wire.JobInfo, from place, now time.Time) string {
	if len(jobs) == 0 {
		return "<h2>Jobs</h2><p>There are none. volley submit JOB … hands one in.</p>"
	}
	some, links := listed(jobs, from.jobs, func(at int) string { return place{at, from.executors}.path("/") })
	var b strings.Builder
	b.WriteString("<h2>Jobs</h2><form action=\"/compare\"><div class=\"wide\" tabindex=\"0\"><table><tr>" +
		"<th>compare</th><th>id</th><th>job</th><th>state</th>" +
		"<th class=\"n\">step</th><th class=\"n\">iteration</th><th class=\"n\">a second</th>" +
		"<th class=\"n\">objective</th><th class=\"n\">about left</th><th>submitted</th><th class=\"n\">took</th>" +
		"<th>pool</th><th>owner</th><th>why</th></tr>\n")
	for _, j := range some {
		why := j.Why
		if j.Restarts > 0 {
			why = fmt.Sprintf("restarted %d ×. %s", j.Restarts, why)
		}
		fmt.Fprintf(&b, "<tr><td><input type=\"checkbox\" name=\"job\" value=\"%s\" aria-label=\"compare "+
			"%s\"></td><td>%s</td><td>%s</td><td>%s</td><td class=\"n\">%d</td>%s<td>%s</td><td "+
			"class=\"n\">%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n",
			text(j.Id), text(j.Id), link(jobPath(j.Id), j.Id),
			text(j.Job), state(j.State), j.Step, standing(j), clock(j.SubmittedUnixNs), took(lasted(j, now)),
			text(j.Pool), text(j.Owner), text(brief(why)))
	}
	b.WriteString("</table></div><p><button>Compare</button></p></form>" + links)
	return b.String()
}

// standing returns the cells of how a job's loop stands: of one that does not run, how it stood last.
func standing(j *wire.JobInfo) string {
	iteration, rate, objective, left := "–", "–", "–", "–"
	if s := j.Standing; s != nil {
		iteration = fmt.Sprint(s.Iteration)
		if s.Objective != nil {
			objective = chart.Number(*s.Objective)
		}
		if j.State == "running" && s.PerSecond > 0 {
			rate = chart.Number(s.PerSecond)
		}
		if j.State == "running" && s.LeftNs > 0 {
			left = took(time.Duration(s.LeftNs))
		}
	}
	var b strings.Builder
	for _, cell := range []string{iteration, rate, objective, left} {
		b.WriteString("<td class=\"n\">" + cell + "</td>")
	}
	return b.String()
}

// brief returns the beginning of a reason; its page has the whole.
func brief(why string) string {
	if all := []rune(why); len(all) > 100 {
		return string(all[:99]) + "…"
	}
	return why
}

func executorTable(all []*wire.ExecutorInfo, from place) string {
	if len(all) == 0 {
		return "<h2>Executors</h2><p>There are none. volley executor joins the cluster.</p>"
	}
	top := 0.0
	for _, e := range all {
		top = max(top, e.RowsPerSecond)
	}
	slices.SortStableFunc(all, func(a, b *wire.ExecutorInfo) int { // what is wrong comes first
		return rank(a.State) - rank(b.State)
	})
	some, links := listed(all, from.executors, func(at int) string { return place{from.jobs, at}.path("/") })
	var b strings.Builder
	b.WriteString("<h2>Executors</h2><div class=\"wide\" tabindex=\"0\"><table><tr><th>name</th><th>state</th><th " +
		"class=\"n\">slots</th><th class=\"n\">splits</th><th class=\"n\">rows a second</th><th>of the " +
		"fastest</th><th class=\"n\">memory</th><th class=\"n\">disk</th><th>since</th><th>certificate until</th>" +
		"<th>why</th></tr>\n")
	for _, e := range some {
		fmt.Fprintf(&b, "<tr><td>%s</td><td>%s</td><td class=\"n\">%d</td><td class=\"n\">%d</td><td "+
			"class=\"n\">%s</td><td>%s</td><td class=\"n\">%s</td><td "+
			"class=\"n\">%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", text(e.Name),
			state(e.State), e.Slots, e.Splits, rate(e.RowsPerSecond), meter(e.RowsPerSecond, top), size(e.Memory),
			size(e.Disk), clock(e.SinceUnixNs), until(e.CertificateUntilUnixNs), text(brief(e.Why)))
	}
	b.WriteString("</table></div>" + links)
	return b.String()
}

// until returns when a certificate ends.
func until(unixNs int64) string {
	if unixNs == 0 {
		return "none"
	}
	return clock(unixNs)
}

func rank(state string) int {
	if state == "alive" {
		return 1
	}
	return 0
}

func rate(v float64) string {
	if v == 0 {
		return "–"
	}
	return chart.Number(v)
}

// meter shows a part of the largest.
func meter(v, top float64) string {
	if v == 0 || top == 0 {
		return ""
	}
	return fmt.Sprintf("<meter min=\"0\" max=\"1\" low=\"0.5\" optimum=\"1\" value=\"%.2f\">%.0f %%</meter>", v/top,
		100*v/top)
}

// events shows what has begun and ended in the last hour, the newest first.
func events(jobs []*wire.JobInfo, executors []*wire.ExecutorInfo, now time.Time) string {
	type event struct {
		at   int64
		what string
	}
	var all []event
	add := func(at int64, format string, args ...any) {
		if at != 0 && now.Sub(time.Unix(0, at)) < time.Hour {
			all = append(all, event{at, fmt.Sprintf(format, args...)})
		}
	}
	for _, j := range jobs {
		add(j.SubmittedUnixNs, "%s, %s, was submitted", j.Id, j.Job)
		add(j.EndedUnixNs, "%s is %s. %s", j.Id, j.State, brief(j.Why))
	}
	for _, e := range executors {
		add(e.SinceUnixNs, "executor %s is %s. %s", e.Name, e.State, brief(e.Why))
	}
	slices.SortStableFunc(all, func(a, b event) int { return int(b.at/1000 - a.at/1000) })
	var b strings.Builder
	b.WriteString("<h2>The last hour</h2>")
	if len(all) == 0 {
		b.WriteString("<p>Nothing has begun or ended.</p>")
		return b.String()
	}
	b.WriteString("<ul>")
	for _, e := range all[:min(mostEvents, len(all))] {
		fmt.Fprintf(&b, "<li>%s %s</li>", clock(e.at), text(e.what))
	}
	b.WriteString("</ul>")
	return b.String()
}
