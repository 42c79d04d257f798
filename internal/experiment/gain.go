package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/history"
	"github.com/volley-engine/volley/internal/pace"
)

// Gain asks of every job under every law, to within some distances of the optimum: how long does the best exact run
// take, by any solver, waiting for all or stealing; how long the A-BSP paper's own method; how long what a user gets
// who asks for nothing?
type Gain struct {
	Jobs   []Job
	Laws   []Law
	Within []float64 // of the optimum, relative to it where it is above 1
}

// Cell is one cell of the table; times are seconds of computed time, NaN where no run came to the target.
type Cell struct {
	Job    string   `json:"job"`
	Law    string   `json:"law"`
	Within float64  `json:"within"`
	Seeds  int      `json:"seeds"`
	Best   string   `json:"best"` // of the exact methods
	Exact  Spread   `json:"exact"`
	Auto   Spread   `json:"auto"`
	Paper  Spread   `json:"paper"`
	Ideal  Spread   `json:"ideal"`
	Failed []string `json:"failed,omitempty"` // runs
}

// Spread is a median and the range that it is from.
type Spread struct {
	Median, Low, High float64
}

// MarshalJSON writes median, least and largest; null where there is none.
func (s Spread) MarshalJSON() ([]byte, error) {
	if math.IsNaN(s.Median) {
		return []byte("null"), nil
	}
	return json.Marshal([]Known{Known(s.Median), Known(s.Low), Known(s.High)})
}

// Known is a number that may not be there, as in the history of a run.
type Known = history.Known

// spreadOf returns the median of times; NaN where a run did not arrive.
func spreadOf(all []float64) Spread {
	if slices.ContainsFunc(all, math.IsNaN) {
		return Spread{math.NaN(), math.NaN(), math.NaN()}
	}
	return mostOf(all)
}

// mostOf returns the median of times of which less than half may be NaN: of runs that did not arrive, which count as
// later than all others.
func mostOf(all []float64) Spread {
	s := slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(all), math.IsNaN)))
	if 2*len(s) <= len(all) {
		return Spread{math.NaN(), math.NaN(), math.NaN()}
	}
	spread := Spread{s[len(all)/2], s[0], s[len(s)-1]}
	if len(s) < len(all) {
		spread.High = math.NaN()
	}
	return spread
}

// policies of exact runs.
var policies = []string{"bsp", "steal"}

// methods returns the exact methods of a job: the flags of each.
func (j *Job) methods() (out [][]string) {
	for _, sync := range policies {
		if len(j.Exact) == 0 {
			out = append(out, []string{"--sync", sync})
		}
		for _, solver := range j.Exact {
			out = append(out, []string{"--sync", sync, "--solver", solver})
		}
	}
	return out
}

// paper returns the flags of the A-BSP paper's method, as printed: rows count alike, splits are exchanged by process
// times (sections 3 and 4).
func (j *Job) paper() []string {
	return slices.Concat([]string{"--sync", "absp", "--weighting", "rows", "--exchange", "paper-literal",
		"--max-iterations", "500"}, j.Paper)
}

var auto = []string{"--sync", "auto"}

// run returns the run of the job by a method under a law.
func (j *Job) run(data string, l *Law, pace string, method []string, more ...string) Run {
	return slices.Concat([]string{"run", j.Verb, "--data", data, "--clock", "virtual", "--pace", pace, "--pace-rate",
		strconv.Itoa(j.rate()), "--splits", strconv.Itoa(l.Splits)}, l.Flags, j.Flags, method, more)
}

// rate returns the rows per second of speed 1.
func (j *Job) rate() int {
	if j.Rate > 0 {
		return j.Rate
	}
	return defaultRate
}

// Run makes the table.
func (g *Gain) Run(ctx context.Context, r *Runner) ([]Cell, error) {
	var cells []Cell
	optima, err := g.optima(ctx, r)
	if err != nil {
		return nil, err
	}
	var runs []Run
	g.each(func(j *Job, l *Law, within float64) {
		for _, d := range j.draws(l) {
			for _, m := range append(j.methods(), j.paper(), auto) {
				runs = append(runs, g.to(r, j, l, d, m, optima[j.drawn(l, d)], within))
			}
		}
	})
	if err := r.Do(ctx, runs); err != nil {
		return nil, err
	}
	g.each(func(j *Job, l *Law, within float64) { cells = append(cells, g.cell(r, j, l, optima, within)) })
	return cells, nil
}

func (g *Gain) each(do func(j *Job, l *Law, within float64)) {
	for i := range g.Jobs {
		for k := range g.Laws {
			for _, within := range g.Within {
				do(&g.Jobs[i], &g.Laws[k], within)
			}
		}
	}
}

// draw is what chance decides of a run: the law's seed, and where a job begins that is not convex; 0 is the same
// always.
type draw struct {
	pace string
	seed int
}

// draws returns the runs of a method under a law: one for each of its seeds, or of the job's.
func (j *Job) draws(l *Law) (all []draw) {
	for k := range max(len(l.Paces), j.Seeds) {
		d := draw{pace: l.Paces[k%len(l.Paces)]}
		if j.Seeds > 0 {
			d.seed = 1 + k%j.Seeds
		}
		all = append(all, d)
	}
	return all
}

// drawn names the job that begins as a draw says; one whose batches are of each split's rows is another where there are
// other splits.
func (j *Job) drawn(l *Law, d draw) string {
	if j.Batches {
		return fmt.Sprint(j.Name, " ", d.seed, " ", l.Splits)
	}
	return fmt.Sprint(j.Name, " ", d.seed)
}

// flags returns those of a draw.
func (d draw) flags() []string {
	if d.seed == 0 {
		return nil
	}
	return []string{"--seed", strconv.Itoa(d.seed)}
}

// to returns the run to a distance from the optimum.
func (g *Gain) to(r *Runner, j *Job, l *Law, d draw, method []string, optimum, within float64) Run {
	return j.run(r.dataOf(j), l, d.pace, slices.Concat(method, d.flags()), "--tol", "0", "--target",
		strconv.FormatFloat(targetOf(optimum, within), 'g', 17, 64))
}

// targetOf returns the objective at a distance from an optimum.
func targetOf(optimum, within float64) float64 {
	return optimum + float64(within*max(1, math.Abs(optimum)))
}

// optima finds the objective that runs of each job are to come near: a convex one's least by its exact methods run to
// their end, another's by all runs of the table, run to their ends; or what a number of BSP's steps come to.
func (g *Gain) optima(ctx context.Context, r *Runner) (map[string]float64, error) {
	var runs []Run
	of := map[string][]Run{}
	for i := range g.Jobs {
		j := &g.Jobs[i]
		if _, err := r.Data(ctx, j); err != nil {
			return nil, err
		}
		add := func(l *Law, d draw, run Run) {
			of[j.drawn(l, d)], runs = append(of[j.drawn(l, d)], run), append(runs, run)
		}
		if j.Convex {
			add(&Law{}, draw{}, slices.Concat([]string{"run", j.Verb, "--data", r.dataOf(j), "--sync", "bsp", "--tol",
				"1e-10",
				"--max-iterations", "3000"}, j.Flags, []string{"--solver", j.Exact[0]}))
			continue
		}
		for k := range g.Laws {
			for _, d := range j.draws(&g.Laws[k]) {
				for _, m := range j.leading() {
					add(&g.Laws[k], d, j.run(r.dataOf(j), &g.Laws[k], d.pace, slices.Concat(m, d.flags())))
				}
			}
		}
	}
	if err := r.Do(ctx, runs); err != nil {
		return nil, err
	}
	least := map[string]float64{}
	for name, own := range of {
		least[name] = math.Inf(1)
		for _, run := range own {
			if res := r.Result(run); res.Failed == "" {
				least[name] = min(least[name], res.Objective)
			} else if len(own) == 1 {
				return nil, fault.Newf(fault.Internal, "find the optimum of", name, "%s: %s", run, res.Failed)
			}
		}
	}
	return least, nil
}

// leading returns methods of which the best says where a job that is not convex may come to.
func (j *Job) leading() [][]string {
	if j.Steps == 0 {
		return append(j.methods(), auto)
	}
	return [][]string{slices.Concat([]string{"--sync", "bsp", "--tol", "0", "--max-iterations", strconv.Itoa(j.Steps)},
		j.Descent)}
}

// Illustrate shows how the best exact run and auto have come to the least distance under the first law.
func (g *Gain) Illustrate(ctx context.Context, r *Runner, cells []Cell) (groups []Group, err error) {
	optima, err := g.optima(ctx, r)
	if err != nil {
		return nil, err
	}
	within := g.Within[len(g.Within)-1]
	for i := range g.Jobs {
		j, l := &g.Jobs[i], &g.Laws[0]
		at := slices.IndexFunc(cells, func(c Cell) bool {
			return c.Job == j.Name && c.Law == l.Name &&
				c.Within == within
		})
		d := j.draws(l)[0]
		group := Group{Title: j.Name + ", " + l.Name}
		for _, m := range j.methods() {
			if nameOf(m) == cells[at].Best {
				err = group.add(ctx, r, g.to(r, j, l, d, m, optima[j.drawn(l, d)], within), nameOf(m))
			}
		}
		if err == nil {
			err = group.add(ctx, r, g.to(r, j, l, d, auto, optima[j.drawn(l, d)], within), "auto")
		}
		if err != nil {
			return nil, err
		}
		groups = append(groups, group)
	}
	return groups, nil
}

// add makes a run and adds how it went.
func (g *Group) add(ctx context.Context, r *Runner, run Run, name string) error {
	course, err := r.Course(ctx, run, name)
	g.Courses = append(g.Courses, course)
	return err
}

// nameOf names a method by its policy and its solver.
func nameOf(method []string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("--sync", "", "--solver", "").Replace(
		strings.Join(method, " "))), " ")
}

// cell gathers what the runs of a cell came to.
func (g *Gain) cell(r *Runner, j *Job, l *Law, optima map[string]float64, within float64) Cell {
	draws := j.draws(l)
	c := Cell{Job: j.Name, Law: l.Name, Within: within, Seeds: len(draws)}
	timesOf := func(m []string) (all []float64) {
		for _, d := range draws {
			optimum := optima[j.drawn(l, d)]
			res := r.Result(g.to(r, j, l, d, m, optimum, within))
			if all = append(all, math.NaN()); res.Reached(targetOf(optimum, within)) {
				all[len(all)-1] = res.Seconds
			} else if res.Failed != "" {
				c.Failed = append(c.Failed, res.Run+": "+res.Failed)
			}
		}
		return all
	}
	spread := spreadOf
	if j.Seeds > 0 { // a method need not come to the best minimum from everywhere
		spread = mostOf
	}
	c.Exact = Spread{math.NaN(), math.NaN(), math.NaN()}
	var best []string
	for _, m := range j.methods() {
		if s := spread(timesOf(m)); !math.IsNaN(s.Median) && !(s.Median >= c.Exact.Median) {
			c.Exact, best = s, m
		}
	}
	c.Auto, c.Paper = spread(timesOf(auto)), spread(timesOf(j.paper()))
	c.Best = nameOf(best)
	var times []float64
	for _, d := range draws {
		optimum := optima[j.drawn(l, d)]
		times = append(times, ideal(r.Result(g.to(r, j, l, d, best, optimum, within)), targetOf(optimum, within),
			j.rate(),
			d.pace))
	}
	c.Ideal = spread(times)
	return c
}

// ideal returns how long the passes of a run would take if all executors were always busy with their share.
func ideal(res *Result, target float64, rate int, law string) float64 {
	if res == nil || !res.Reached(target) {
		return math.NaN()
	}
	p, err := pace.Parse(law, float64(rate))
	if err != nil {
		return math.NaN()
	}
	executors, slots := p.Executors, max(1, p.Slots)
	if executors == 0 {
		executors = anyExecutors
	}
	return p.Balance(res.Passes.Rows, executors, slots).Seconds()
}

// defaultRate is the rows per second of speed 1.
const defaultRate = 10000

// Limit is how long a run of the tables may take, on the wall clock.
const Limit = 10 * time.Minute
