package experiment

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Models asks which synchronization model wins: every job by each way under each law, from the same beginning to the
// same distance from the optimum, and how much of their time slots did not work.
type Models struct {
	Title  string
	About  []string
	Jobs   []Job
	Laws   []Law
	Ways   []Way
	Within float64                         // of the optimum, relative to it where it is above 1
	Theirs map[string]map[string][]float64 // what a paper has, by law and job: seconds of each way
}

// Way is a way to synchronize.
type Way struct {
	Name  string
	Flags func(*Job) []string
}

// ModelRow is what a job came to by a way under a law: medians over seeds, NaN where it did not arrive.
type ModelRow struct {
	Job        string   `json:"job"`
	Law        string   `json:"law"`
	Way        string   `json:"way"`
	Seconds    Spread   `json:"seconds"`
	Iterations Known    `json:"iterations"`
	Idle       Known    `json:"idle_share"` // of slots' time
	Ratio      Known    `json:"ratio"`      // of its time to the last way's
	Theirs     Known    `json:"their_ratio"`
	Failed     []string `json:"failed,omitempty"`
}

// syncs returns a way that is --sync, with more flags.
func syncs(name, policy string, more ...string) Way {
	return Way{name, func(*Job) []string { return slices.Concat([]string{"--sync", policy}, more) }}
}

// valued returns a way with a bound of values, which are weights, or sums of rows.
func valued(name, policy string, more ...string) Way {
	return Way{name, func(j *Job) []string {
		bound := "0.1"
		if j.Verb == "kmeans" {
			bound = "1000"
		}
		return slices.Concat([]string{"--sync", policy, "--value-bound", bound}, more)
	}}
}

// NewModels describes the table of all models: eight jobs on three clusters.
func NewModels(s Size, seeds int) *Models {
	m := &Models{Title: "Which model wins: eight jobs by every model on three clusters", Within: 1e-3,
		About: []string{
			"Seconds of computed time until the objective is within a thousandth of the optimum (relative, where " +
				"that is above 1), evaluations left out; medians over seeds, with their range; iterations are steps, " +
				"or the clocks that all workers have finished; idle is the share of their time in which slots did not" +
				" work (of steps: Ideal's time is the rest). The ratio is to auto. – is that a run did not arrive in " +
				mostClocks + " iterations, " + mostSteps + " of jobs that are not convex.",
			"bsp, steal, absp, deadline and auto are steps, by the solver that volley chooses, which may need every " +
				"row; absp as printed is the A-BSP paper's own method. ssp, asp, flexrr, cap, vap and cvap are " +
				"workers on parameter tables, whose steps are SAGA's; vap and cvap bound unseen updates of a weight " +
				"by 0.1 (of a sum of rows by 1000).",
		},
		Ways: []Way{syncs("bsp", "bsp"), syncs("steal", "steal"), syncs("deadline", "deadline"), syncs("absp", "absp"),
			{"absp as printed", (*Job).paper},
			syncs("ssp(0)", "ssp", "--slack", "0"), syncs("ssp(1)", "ssp", "--slack", "1"),
			syncs("ssp(3)", "ssp", "--slack", "3"), syncs("ssp(10)", "ssp", "--slack", "10"), syncs("asp", "asp"),
			syncs("flexrr(1)", "flexrr", "--slack", "1"),
			syncs("cap(3)", "cap", "--slack", "3"), valued("vap", "vap"), valued("vap strong", "vap", "--strong"),
			valued("cvap(3)", "cvap", "--slack", "3"), syncs("auto", "auto")}}
	for _, j := range Jobs(s, seeds) {
		if j.Name == "ridge" { // and without a penalty
			plain := j
			plain.Name, plain.Verb, plain.Flags = "linear", "linear", nil
			m.Jobs = append(m.Jobs, plain)
		}
		if j.Name != "sparse logistic" && j.Name != "als" {
			m.Jobs = append(m.Jobs, j)
		}
	}
	for _, l := range Laws(seeds) {
		if slices.Contains([]string{"multi-tenant", "physical", "delayed"}, l.Name) {
			m.Laws = append(m.Laws, l)
		}
	}
	return m
}

// mostClocks is how many iterations a run may take, and mostSteps one of a job that is not convex: after these it has
// come to rest elsewhere.
const mostClocks, mostSteps = "1000", "200"

// NewPetuum describes table 5 or 6 of the A-BSP paper (section 6.2): A-BSP beside SSP and ASP, all by gradients of
// whole splits.
func NewPetuum(table, seeds int, s Size) *Models {
	by := func(name string, flags ...string) Way {
		return Way{name, func(j *Job) []string { return j.wholeGradients(flags...) }}
	}
	absp := Way{"A-BSP", func(j *Job) []string {
		flags := []string{"--sync", "absp", "--weighting", "rows", "--exchange", "paper-literal"}
		switch {
		case j.Descent != nil:
			return append(flags, j.Descent...)
		case j.Verb != "kmeans":
			return append(flags, "--solver", "nesterov")
		}
		return flags
	}}
	m := &Models{Within: 1e-3, Ways: []Way{by("ASP", "--sync", "asp"),
		by("SSP, s=10", "--sync", "ssp", "--slack", "10"), by("SSP, s=3", "--sync", "ssp", "--slack", "3"), absp},
		Title: fmt.Sprintf("A-BSP, table %d: A-BSP beside SSP and ASP", table),
		About: []string{"Seconds of computed time until the objective is within a thousandth of the optimum, by " +
			"steps along gradients: of A-BSP along that of the rows that were merged, by Nesterov's; of SSP and " +
			"ASP each worker along that of its whole split, the others' being those that it sees. Iterations are " +
			"those of the slowest. The network's steps are of one size, and end where those of BSP are after as " +
			"many as the paper's A-BSP took. The paper's ratios beside: it names neither steps nor the rule that its " +
			"runs end by."}}
	law := map[int]string{5: "multi-tenant", 6: "physical"}[table]
	for _, l := range Laws(seeds) {
		if l.Name == law {
			m.Laws = []Law{l}
		}
	}
	m.Theirs = map[string]map[string][]float64{law: petuums[table]}
	for _, j := range Jobs(s, seeds) {
		if petuums[table][j.Name] == nil {
			continue
		}
		if j.Descent != nil {
			j.Steps = networkSteps
		}
		m.Jobs = append(m.Jobs, j)
	}
	return m
}

// petuums are the seconds of tables 5 and 6: by ASP, SSP with s = 10 and 3, and A-BSP.
var petuums = map[int]map[string][]float64{
	5: {"logistic": {531, 518, 265, 248}, "sparse logistic": {601, 588, 309, 297}, "svm": {593, 571, 265, 244},
		"lasso": {321, 293, 141, 133}, "kmeans": {288, 263, 175, 181}, "mlp": {3868, 3674, 2061, 1599}},
	6: {"logistic": {472, 499, 382, 248}, "sparse logistic": {498, 508, 378, 257}, "svm": {563, 579, 359, 226},
		"lasso": {341, 369, 262, 168}, "kmeans": {208, 223, 193, 131}, "mlp": {3098, 3285, 1912, 1198}},
}

// networkSteps is after how many the paper's A-BSP has trained its network (table 5).
const networkSteps = 51

// Run makes the table.
func (m *Models) Run(ctx context.Context, r *Runner) ([]ModelRow, error) {
	g := &Gain{Jobs: m.Jobs, Laws: m.Laws, Within: []float64{m.Within}}
	optima, err := g.optima(ctx, r)
	if err != nil {
		return nil, err
	}
	var runs []Run
	g.each(func(j *Job, l *Law, _ float64) {
		for _, d := range j.draws(l) {
			for _, w := range m.Ways {
				runs = append(runs, m.to(g, r, j, l, d, w, optima))
			}
		}
	})
	if err := r.Do(ctx, runs); err != nil {
		return nil, err
	}
	var rows []ModelRow
	g.each(func(j *Job, l *Law, _ float64) { rows = append(rows, m.cell(g, r, j, l, optima)...) })
	return rows, nil
}

func (m *Models) to(g *Gain, r *Runner, j *Job, l *Law, d draw, w Way, optima map[string]float64) Run {
	run := g.to(r, j, l, d, w.Flags(j), optima[j.drawn(l, d)], m.Within)
	if slices.Contains(run, "--max-iterations") {
		return run
	}
	if !j.Convex {
		return append(run, "--max-iterations", mostSteps)
	}
	return append(run, "--max-iterations", mostClocks)
}

// cell gathers what a job came to under a law.
func (m *Models) cell(g *Gain, r *Runner, j *Job, l *Law, optima map[string]float64) (rows []ModelRow) {
	draws := j.draws(l)
	for _, w := range m.Ways {
		row := ModelRow{Job: j.Name, Law: l.Name, Way: w.Name, Theirs: Known(math.NaN())}
		var times, iterations, idle []float64
		for _, d := range draws {
			target := targetOf(optima[j.drawn(l, d)], m.Within)
			res := r.Result(m.to(g, r, j, l, d, w, optima))
			if res.Failed != "" {
				row.Failed = append(row.Failed, res.Run+": "+res.Failed)
			}
			if !res.Reached(target) {
				times = append(times, math.NaN())
				continue
			}
			times, iterations = append(times, res.Seconds), append(iterations, float64(res.Iterations))
			idle = append(idle, res.idle(target, j.rate(), d.pace))
		}
		row.Seconds, row.Iterations, row.Idle = mostOf(times), median(iterations), median(idle)
		rows = append(rows, row)
	}
	last := rows[len(rows)-1].Seconds.Median
	theirs := m.Theirs[l.Name][j.Name]
	for i := range rows {
		if rows[i].Ratio = Known(rows[i].Seconds.Median / last); len(theirs) > 0 {
			rows[i].Theirs = Known(theirs[i] / theirs[len(theirs)-1])
		}
	}
	return rows
}

// idle returns the share of their time in which slots did not work.
func (r *Result) idle(target float64, rate int, law string) float64 {
	if r.Waited != nil {
		return *r.Waited
	}
	return max(0, 1-ideal(r, target, rate, law)/r.Seconds)
}

func median(all []float64) Known {
	if len(all) == 0 {
		return Known(math.NaN())
	}
	s := slices.Sorted(slices.Values(all))
	return Known(s[len(s)/2])
}

// Report shows the rows, and of each job and law the ways' times.
func (m *Models) Report(rows []ModelRow) *Report {
	last := m.Ways[len(m.Ways)-1].Name
	r := &Report{Title: m.Title, About: m.About, All: rows,
		Header: []string{"job", "law", "model", "seconds", "iterations", "idle", "times " + last}}
	if m.Theirs != nil {
		r.Header = append(r.Header, "the paper's")
	}
	for i, row := range rows {
		texts := []string{row.Job, row.Law, row.Way, row.Seconds.String(), whole(row.Iterations), percent(row.Idle),
			number(float64(row.Ratio))}
		if m.Theirs != nil {
			texts = append(texts, number(float64(row.Theirs)))
		}
		r.Rows = append(r.Rows, texts)
		if i%len(m.Ways) == 0 {
			r.Charts = append(r.Charts, Chart{Title: row.Job + ", " + row.Law})
		}
		c := &r.Charts[len(r.Charts)-1]
		c.Names, c.Times = append(c.Names, row.Way), append(c.Times, row.Seconds.Median)
	}
	return r
}

func whole(k Known) string {
	if math.IsNaN(float64(k)) {
		return "–"
	}
	return strconv.FormatFloat(float64(k), 'f', 0, 64)
}
