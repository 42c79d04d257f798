package experiment

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/history"
)

// Study looks at single runs, as figures of a paper do: how long a job takes by several methods, and how each step of
// it went.
type Study struct {
	Title string
	About []string
	Cases []Case
}

// Case is a job under a law by several methods. Each ends within a thousandth of the objective that BSP has after a
// number of steps, or all after that number.
type Case struct {
	Name  string
	Job   Job
	Law   Law
	Ways  []string // of a Paper
	Steps int      // of BSP
	Fixed bool
	Their map[string]string // what the paper says of a method
}

// StudyRow is what a method of a case came to.
type StudyRow struct {
	Case    string  `json:"case"`
	Way     string  `json:"way"`
	Steps   int     `json:"steps"`
	Seconds float64 `json:"seconds"`
	Fall    Known   `json:"objective_fall_per_step"`
	Share   Known   `json:"mean_share"`
	Network Known   `json:"network_share"`
	Theirs  string  `json:"theirs,omitempty"`
}

// Studies returns those that volley lab run knows, by name.
func Studies(s Size) map[string]*Study {
	jobs := map[string]Job{}
	for _, j := range Jobs(s, 0) {
		jobs[j.Name] = j
	}
	laws := map[string]Law{}
	for _, l := range Laws(1) {
		laws[l.Name] = l
	}
	ends := "All runs end within a thousandth of the objective that BSP has after the paper's number of steps."
	gaps := "What the paper does not say, and is chosen here: numbers of features, centres and ranks, and when a run " +
		"has converged. Its seconds are of other machines and sizes: ratios compare."
	straggler := Law{Name: "one straggler", Paces: []string{"one-straggler"}, Splits: 6}
	pair := []string{"BSP", "A-BSP"}
	studies := map[string]*Study{
		"paper-fig2": {Title: "A-BSP, figure 2: one straggler among six",
			About: []string{"Logistic regression, a task on each executor, by the paper's method as printed.", ends,
				gaps},
			Cases: []Case{{Name: "logistic", Job: jobs["logistic"], Law: straggler, Ways: pair, Steps: 40,
				Their: map[string]string{"BSP": "644 s, 0.396 a step", "A-BSP": "360 s, 0.333 a step, 6 steps more"}}}},
		"paper-fig9": {Title: "A-BSP, figures 9, 11 and 12: twenty steps on the multi-tenant cluster",
			About: []string{"How long tasks take, and how many rows of each split are folded in each step: all under " +
				"BSP, under A-BSP what the splits' executors come to. The paper has the fastest task four times as " +
				"fast as the slowest under BSP, and nearly equal times under A-BSP.", gaps},
			Cases: []Case{{Name: "logistic", Job: jobs["logistic"], Law: laws["multi-tenant"], Ways: pair, Steps: 20,
				Fixed: true}}},
		"paper-fig13": {Title: "A-BSP, figure 13: convergence of four jobs on the multi-tenant cluster",
			About: []string{"The paper has A-BSP's curve below BSP's at any time.", ends, gaps}},
		"paper-fig15": {Title: "A-BSP, figure 15: how often each split is processed on the physical cluster",
			About: []string{"The paper: alike under BSP; without data prioritization the slow executors' splits less " +
				"often; with it all about alike.", ends, gaps},
			Cases: []Case{{Name: "logistic", Job: jobs["logistic"], Law: laws["physical"], Steps: 72,
				Ways: []string{"BSP", "A-BSP w/o DP", "A-BSP"}}}},
		"paper-fig17": {Title: "A-BSP, figure 17: convergence of A-BSP and SSP on the multi-tenant cluster",
			About: []string{"A-BSP's method as printed, and workers that each step along the gradient of their whole " +
				"split (k-means: that move their rows). The paper has A-BSP's curve below SSP's, but for k-means, " +
				"and SSP with s = 10 fluctuate.", ends, gaps}},
		"paper-table7": {Title: "A-BSP, table 7: the network's share of the time",
			About: []string{"What of the steps' time no executor folds, on links of a gigabit a second, twenty steps " +
				"each.", gaps}},
	}
	for _, name := range []string{"logistic", "ridge", "kmeans", "als"} {
		j := jobs[name]
		studies["paper-fig13"].Cases = append(studies["paper-fig13"].Cases, Case{Name: name, Job: j,
			Law: laws["multi-tenant"], Ways: pair, Steps: publishedOf(&j).iterations})
	}
	for name, steps := range map[string]int{"logistic": 88, "svm": 113, "mlp": networkSteps, "kmeans": 45} {
		j := jobs[name]
		if j.Descent != nil {
			j.Paper = j.Descent
		}
		studies["paper-fig17"].Cases = append(studies["paper-fig17"].Cases, Case{Name: name, Job: j,
			Law: laws["multi-tenant"], Ways: []string{"BSP", "A-BSP", "SSP, s=3", "SSP, s=10"}, Steps: steps})
	}
	slices.SortFunc(studies["paper-fig17"].Cases, func(a, b Case) int { return strings.Compare(a.Name, b.Name) })
	for _, law := range []string{"multi-tenant", "physical"} {
		for _, q := range papers {
			l := laws[law]
			l.Paces = []string{l.Paces[0] + "+link:125MB/s+driver-link:125MB/s"}
			studies["paper-table7"].Cases = append(studies["paper-table7"].Cases, Case{Name: q.job + " " + law,
				Job: jobs[q.job], Law: l, Ways: pair, Steps: 20, Fixed: true, Their: q.network[law]})
		}
	}
	return studies
}

// Run makes the runs of a study, and its report.
func (s *Study) Run(ctx context.Context, r *Runner) (*Report, error) {
	report := &Report{Title: s.Title, About: s.About, Header: []string{"case", "method", "steps", "seconds", "s a step",
		"objective falls a step", "share a step", "network's share", "the paper's"}}
	var rows []StudyRow
	began := time.Now()
	for i := range s.Cases {
		group, of, err := s.Cases[i].run(ctx, r)
		if err != nil {
			return nil, err
		}
		rows, report.Groups = append(rows, of...), append(report.Groups, group)
		if r.Progress != nil {
			each := time.Since(began) / time.Duration(i+1)
			r.Progress(i+1, len(s.Cases), each*time.Duration(len(s.Cases)-i-1))
		}
	}
	for _, row := range rows {
		report.Rows = append(report.Rows, []string{row.Case, row.Way, strconv.Itoa(row.Steps), number(row.Seconds),
			number(row.Seconds / float64(row.Steps)), number(float64(row.Fall)), number(float64(row.Share)),
			percent(row.Network), row.Theirs})
	}
	report.All = rows
	return report, nil
}

func (c *Case) run(ctx context.Context, r *Runner) (group Group, rows []StudyRow, err error) {
	group = Group{Title: c.Name}
	if _, err := r.Data(ctx, &c.Job); err != nil {
		return group, nil, err
	}
	limit, err := c.limit(ctx, r)
	if err != nil {
		return group, nil, err
	}
	for _, way := range c.Ways {
		run := c.by(r, way, limit)
		if err := group.add(ctx, r, run, c.Name+" by "+way); err != nil {
			return group, nil, err
		}
		res, course := r.Result(run), &group.Courses[len(group.Courses)-1]
		rows = append(rows, StudyRow{Case: c.Name, Way: way, Steps: res.Iterations, Seconds: res.Seconds,
			Fall: fall(course), Share: Known(res.Share), Network: network(course), Theirs: c.Their[way]})
	}
	return group, rows, nil
}

// by returns the run by a method.
func (c *Case) by(r *Runner, way string, limit []string) Run {
	p := &Paper{Law: c.Law}
	return c.Job.run(r.dataOf(&c.Job), &c.Law, c.Law.Paces[0], p.way(way, &c.Job, 1), limit...)
}

// limit returns the options that end all runs of a case: a number of steps, or the objective near that which BSP has
// after as many.
func (c *Case) limit(ctx context.Context, r *Runner) ([]string, error) {
	steps := []string{"--tol", "0", "--max-iterations", strconv.Itoa(c.Steps)}
	if c.Fixed {
		return steps, nil
	}
	probe := c.by(r, "BSP", steps)
	if err := r.Do(ctx, []Run{probe}); err != nil {
		return nil, err
	}
	res := r.Result(probe)
	if res.Failed != "" {
		return nil, fault.Newf(fault.Internal, "make the run", probe.String(), "%s", res.Failed)
	}
	return []string{"--tol", "0", "--max-iterations", strconv.Itoa(10 * c.Steps), "--target",
		strconv.FormatFloat(res.Objective+float64(1e-3*math.Abs(res.Objective)), 'g', 17, 64)}, nil
}

func percent(share Known) string {
	if math.IsNaN(float64(share)) {
		return "–"
	}
	return strconv.FormatFloat(100*float64(share), 'g', 2, 64) + " %"
}

// fall returns by how much a step lowers the objective on average; NaN where it is not known of two.
func fall(c *history.Run) Known {
	seen := c.Points
	if len(seen) < 2 || seen[len(seen)-1].Iteration <= seen[0].Iteration {
		return Known(math.NaN())
	}
	first, last := seen[0], seen[len(seen)-1]
	return Known((first.Objective - last.Objective) / float64(last.Iteration-first.Iteration))
}

// network returns which part of the steps' time no executor folds.
func network(c *history.Run) Known {
	var all, folding float64
	for _, s := range c.Steps {
		longest := 0.0
		for _, w := range s.Executors {
			longest = max(longest, w.Busy.Seconds())
		}
		if longest > 0 {
			all, folding = all+s.Longest.Seconds(), folding+longest
		}
	}
	if all == 0 {
		return Known(math.NaN())
	}
	return Known(max(0, 1-folding/all))
}

// Course makes a run, with its event log, and returns how it went.
func (r *Runner) Course(ctx context.Context, run Run, name string) (history.Run, error) {
	path, err := r.logged(ctx, run)
	if err != nil {
		return history.Run{}, err
	}
	course, err := r.Draw(path, name)
	if err != nil {
		return course, fault.New(fault.KindOf(err), "draw", fmt.Sprintf("the run %s", run), err)
	}
	return course, nil
}
