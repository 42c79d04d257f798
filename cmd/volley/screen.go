package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/rdd"
)

// screen shows a run's progress on stderr: one line that is redrawn on a
// terminal, else at most a line a second.
type screen struct {
	json  bool
	live  bool
	quiet bool
	began time.Time
	mu    struct {
		sync.Mutex
		rows   int64
		last   time.Time
		drawn  bool
		report *driver.StepReport
		first  int // the iteration that was the first, and when it ended
		at     time.Time
	}
}

func newScreen(json, quiet bool) *screen {
	return &screen{json: json, quiet: quiet, live: term.IsTerminal(int(os.Stderr.Fd())), began: time.Now()}
}

// aboutQuiet is what --help says of --quiet.
const aboutQuiet = "show no progress on stderr"

// step keeps the latest report, for the executors' bars.
func (s *screen) step(r *driver.StepReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.report = r
}

// progress shows what a session reports.
func (s *screen) progress(p rdd.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.rows += int64(p.LoadedRows)
	pause := time.Second
	if s.live {
		pause = 50 * time.Millisecond
	}
	if _, known := p.Values["objective"]; time.Since(s.mu.last) < pause || p.LoadedRows == 0 && !known {
		return
	}
	s.mu.last = time.Now()
	if p.LoadedRows > 0 {
		rate := float64(s.mu.rows) / time.Since(s.began).Seconds()
		s.draw(fmt.Sprintf("loading: %d rows, %.2g rows/s", s.mu.rows, rate))
		return
	}
	s.draw(fmt.Sprintf("iteration %d  objective %.6g  share %.0f%%%s%s%s", p.Iteration, p.Values["objective"],
		100*p.Info.Share, s.left(p.Iteration, p.Most), s.bars(), s.why()))
}

// left returns for how long it goes on to the limit of its iterations, if they take what they took so far.
func (s *screen) left(iteration, most int) string {
	if s.mu.at.IsZero() {
		s.mu.first, s.mu.at = iteration, time.Now()
	}
	if made := iteration - s.mu.first; most > iteration && made > 0 {
		each := time.Since(s.mu.at) / time.Duration(made)
		return fmt.Sprintf("  about %v to its limit of %d", (each * time.Duration(most-iteration)).Round(time.Second),
			most)
	}
	return ""
}

// why returns how auto made the last pass, and its reason.
func (s *screen) why() string {
	if s.mu.report == nil || s.mu.report.Chosen.Why == "" {
		return ""
	}
	return "  " + s.mu.report.Chosen.Why
}

var barSteps = []rune(" ▁▂▃▄▅▆▇█")

// bars returns the executors' rates, each as one block of a height.
func (s *screen) bars() string {
	if s.mu.report == nil || len(s.mu.report.Rates) > 64 {
		return ""
	}
	top := 0.0
	for _, r := range s.mu.report.Rates {
		top = max(top, r)
	}
	if top == 0 {
		return ""
	}
	var b strings.Builder
	for _, r := range s.mu.report.Rates {
		b.WriteRune(barSteps[int(r/top*float64(len(barSteps)-1))])
	}
	return fmt.Sprintf("  executors [%s] %.2g rows/s at most", b.String(), top)
}

func (s *screen) draw(line string) {
	if s.quiet {
		return
	}
	if s.live {
		columns, _, err := term.GetSize(int(os.Stderr.Fd()))
		if all := []rune(line); err == nil && columns > 1 && len(all) >= columns {
			line = string(all[:columns-1]) // a line that wraps is not redrawn
		}
		fmt.Fprintf(os.Stderr, "\r\x1b[K%s", line)
		s.mu.drawn = true
		return
	}
	fmt.Fprintln(os.Stderr, line)
}

// done ends the line that is redrawn.
func (s *screen) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.drawn {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}

// result prints the outcome: JSON, or a few lines for people.
func (s *screen) result(r *runResult) error {
	if s.json {
		return printJSON(r)
	}
	fmt.Printf("%s under %s: objective %.8g after %d iterations (stopped by %s)\n", r.Job, r.Sync, r.Objective,
		r.Iterations, r.StoppedBy)
	fmt.Printf("  %s\n", r.howGood())
	if r.SolverWhy != "" {
		fmt.Printf("  solver %s: %s\n", r.Solver, r.SolverWhy)
	}
	for _, line := range r.Chosen {
		fmt.Printf("  %s\n", line)
	}
	fmt.Printf("  %d rows × %d features in %d splits on %d executors; share a step %.3f, effective sample %.0f\n",
		r.Rows, r.Features, r.Splits, r.Executors, r.MeanShare, r.MeanNEff)
	fmt.Printf("  load %.3f s, train %.3f s (%.4f s an iteration), evaluation %.3f s, %s clock; %d splits moved\n",
		r.LoadSeconds, r.TrainSeconds, r.SecondsPerIteration, r.EvaluationSeconds, r.Clock, r.Exchanges)
	fmt.Printf("  passes: %d uncut, %d uncut by leases, %d cut%s\n", r.Passes.Whole, r.Passes.Leased, r.Passes.Cut,
		r.again())
	if r.MalformedRows+r.MissingRows > 0 {
		fmt.Printf("  left out: %d malformed records, %d rows that lack a number\n", r.MalformedRows, r.MissingRows)
	}
	var names []string
	for name := range r.Metrics {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Printf("  %s %.6g\n", name, r.Metrics[name])
	}
	if r.Model != "" {
		fmt.Printf("  model in %s\n", r.Model)
	}
	return nil
}

// again returns how to have the same bytes every time, where a run may have others.
func (r *runResult) again() string {
	if r.Passes.Cut == 0 || r.Clock == "virtual" { // there time is computed
		return ""
	}
	return ", by how fast executors were (the same bytes every time: --sync bsp or steal)"
}

// howGood returns a line on how near the result is known to be to the best one.
func (r *runResult) howGood() string {
	switch {
	case r.Gap == nil && r.Converged:
		return "converged: the objective stands still"
	case r.Gap == nil:
		return "not converged: stopped by " + r.StoppedBy
	case r.Converged && r.GapBy == mllib.ByGradient:
		return fmt.Sprintf("converged: about %.2g above the least objective at most (by %s)", *r.Gap, r.GapBy)
	case r.Converged:
		return fmt.Sprintf("converged: at most %.2g above the least objective (by %s)", *r.Gap, r.GapBy)
	}
	nearer := "more --max-iterations"
	if r.StoppedBy == "tolerance" {
		nearer = "a smaller --tol"
	}
	return fmt.Sprintf("not converged: it may lie %.2g above the least objective (by %s); %s or another --solver may "+
		"come nearer", *r.Gap, r.GapBy, nearer)
}
