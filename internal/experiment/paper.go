package experiment

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
)

// Paper repeats a table of the A-BSP paper (section 6.1): seven jobs by bulk-synchronous and by aggressive steps, the
// implementation as printed: step sizes that fall with the root of the step (MLlib's), rows that count alike, splits
// exchanged by process times. The paper gives neither numbers of features nor the rule that runs ended by; here a run
// ends once its objective is within a thousandth of that which BSP has after as many iterations as the paper's BSP
// took.
type Paper struct {
	Table int // 3: the multi-tenant cluster, 4: the physical one
	Jobs  []Job
	Law   Law
}

// published is what the paper has of a job: iterations of BSP and A-BSP, and seconds on both clusters.
type published struct {
	job                   string
	iterations, more      int
	tenants, tenantsABSP  float64
	physical, physicalABS float64
	network               map[string]map[string]string // share of time, by cluster and method (table 7)
}

var papers = []published{
	{"logistic", 78, 87, 781, 331, 630, 347,
		networkOf("2.3 %", "2.6 %", "2.1 %", "3.7 %")},
	{"sparse logistic", 108, 132, 825, 398, 660, 372,
		networkOf("1.9 %", "2.2 %", "1.5 %", "2.9 %")},
	{"svm", 82, 112, 708, 338, 571, 315,
		networkOf("2.1 %", "2.6 %", "1.7 %", "3.6 %")},
	{"lasso", 66, 79, 411, 201, 479, 256,
		networkOf("2.4 %", "2.9 %", "1.9 %", "3.4 %")},
	{"ridge", 62, 74, 361, 176, 463, 251,
		networkOf("2.5 %", "3.1 %", "2.1 %", "3.8 %")},
	{"kmeans", 32, 38, 496, 258, 369, 198,
		networkOf("0.9 %", "1.3 %", "0.8 %", "2.8 %")},
	{"als", 70, 75, 1237, 728, 990, 648,
		networkOf("23 %", "29 %", "19 %", "23 %")},
}

func networkOf(tenants, tenantsABSP, physical, physicalABSP string) map[string]map[string]string {
	return map[string]map[string]string{"multi-tenant": {"BSP": tenants, "A-BSP": tenantsABSP},
		"physical": {"BSP": physical, "A-BSP": physicalABSP}}
}

// PaperRow is a row of the table: times are seconds of computed time.
type PaperRow struct {
	Job        string            `json:"job"`
	Target     float64           `json:"target"`
	Published  float64           `json:"published"` // BSP's time over A-BSP's, in the paper
	Measured   Known             `json:"measured"`  // and here
	Times      map[string]Spread `json:"seconds"`
	Iterations map[string]Known  `json:"iterations"` // the median
	Failed     []string          `json:"failed,omitempty"`
}

// Ways are the methods of a paper's table, in order.
var Ways = []string{"BSP", "A-BSP w/o DP", "A-BSP", "batches", "ours", "Ideal"}

// NewPaper describes a table.
func NewPaper(table, seeds int, s Size) *Paper {
	p := &Paper{Table: table, Law: Laws(seeds)[0]}
	if table == 3 {
		p.Law = Laws(seeds)[1]
	}
	for _, j := range Jobs(s, 0) {
		if slices.ContainsFunc(papers, func(q published) bool { return q.job == j.Name }) {
			p.Jobs = append(p.Jobs, j)
		}
	}
	return p
}

// way returns the flags of a method; share is that of A-BSP's steps.
func (p *Paper) way(name string, j *Job, share float64) []string {
	literal := slices.Concat([]string{"--sync", "absp", "--weighting", "rows"}, j.Paper)
	switch name {
	case "BSP":
		return slices.Concat([]string{"--sync", "bsp", "--exchange", "off"}, j.Paper)
	case "A-BSP w/o DP":
		return append(literal, "--cursor", "off", "--exchange", "off")
	case "A-BSP":
		return append(literal, "--exchange", "paper-literal")
	case "SSP, s=3", "SSP, s=10":
		return j.wholeGradients("--sync", "ssp", "--slack", strings.TrimPrefix(name, "SSP, s="))
	case "batches":
		return slices.Concat([]string{"--sync", "bsp", "--exchange", "off", "--batch-fraction",
			strconv.FormatFloat(share, 'f', 2, 64)}, j.Paper)
	}
	return auto
}

// wholeGradients returns flags of workers that step along the gradient of their whole splits.
func (j *Job) wholeGradients(flags ...string) []string {
	if j.Verb == "kmeans" {
		return flags
	}
	return slices.Concat(flags, []string{"--batch", "1000000000"}, j.Descent)
}

// Run makes the table.
func (p *Paper) Run(ctx context.Context, r *Runner) (rows []PaperRow, err error) {
	for i := range p.Jobs {
		if _, err := r.Data(ctx, &p.Jobs[i]); err != nil {
			return nil, err
		}
	}
	targets, err := p.targets(ctx, r)
	if err != nil {
		return nil, err
	}
	runs := func(names ...string) (all []Run) {
		for i := range p.Jobs {
			for _, pace := range p.Law.Paces {
				for _, name := range names {
					all = append(all, p.to(r, &p.Jobs[i], pace, name, targets[i]))
				}
			}
		}
		return all
	}
	if err := r.Do(ctx, runs("BSP", "A-BSP w/o DP", "A-BSP", "ours")); err != nil {
		return nil, err
	}
	if err := r.Do(ctx, runs("batches")); err != nil { // of A-BSP's share
		return nil, err
	}
	for i := range p.Jobs {
		rows = append(rows, p.row(r, &p.Jobs[i], targets[i]))
	}
	return rows, nil
}

// targets returns the objective that each job has to come to.
func (p *Paper) targets(ctx context.Context, r *Runner) (out []float64, err error) {
	var runs []Run
	for i := range p.Jobs {
		j := &p.Jobs[i]
		runs = append(runs, j.run(r.dataOf(j), &p.Law, p.Law.Paces[0], p.way("BSP", j, 1), "--tol", "0",
			"--max-iterations", strconv.Itoa(publishedOf(j).iterations)))
	}
	if err := r.Do(ctx, runs); err != nil {
		return nil, err
	}
	for i, run := range runs {
		res := r.Result(run)
		if res.Failed != "" {
			return nil, fault.Newf(fault.Internal, "run", p.Jobs[i].Name, "%s: %s", run, res.Failed)
		}
		out = append(out, res.Objective+float64(1e-3*math.Abs(res.Objective)))
	}
	return out, nil
}

// Illustrate shows how BSP and A-BSP went, of each job.
func (p *Paper) Illustrate(ctx context.Context, r *Runner, rows []PaperRow) (groups []Group, err error) {
	for i := range p.Jobs {
		group := Group{Title: p.Jobs[i].Name}
		for _, way := range []string{"BSP", "A-BSP", "ours"} {
			run := p.to(r, &p.Jobs[i], p.Law.Paces[0], way, rows[i].Target)
			if err := group.add(ctx, r, run, way); err != nil {
				return nil, err
			}
		}
		groups = append(groups, group)
	}
	return groups, nil
}

func publishedOf(j *Job) published {
	return papers[slices.IndexFunc(papers, func(q published) bool { return q.job == j.Name })]
}

func (p *Paper) to(r *Runner, j *Job, pace, name string, target float64) Run {
	share := 1.0
	if name == "batches" {
		if res := r.Result(p.to(r, j, pace, "A-BSP", target)); res != nil && res.Share > 0.01 {
			share = min(0.99, res.Share)
		}
	}
	most := strconv.Itoa(10 * publishedOf(j).iterations)
	return j.run(r.dataOf(j), &p.Law, pace, p.way(name, j, share), "--tol", "0", "--max-iterations", most,
		"--target", strconv.FormatFloat(target, 'g', 17, 64))
}

// row gathers what the runs of a job came to.
func (p *Paper) row(r *Runner, j *Job, target float64) PaperRow {
	q := publishedOf(j)
	row := PaperRow{Job: j.Name, Target: target, Times: map[string]Spread{}, Iterations: map[string]Known{},
		Published: q.physical / q.physicalABS}
	if p.Table == 3 {
		row.Published = q.tenants / q.tenantsABSP
	}
	var ratios, ideals []float64
	for _, name := range Ways[:len(Ways)-1] {
		var times, steps []float64
		for _, pace := range p.Law.Paces {
			run := p.to(r, j, pace, name, target)
			res := r.Result(run)
			if !res.Reached(target) {
				times, steps = append(times, math.NaN()), append(steps, math.NaN())
				if res.Failed != "" {
					row.Failed = append(row.Failed, fmt.Sprintf("%s: %s", run, res.Failed))
				}
				continue
			}
			times, steps = append(times, res.Seconds), append(steps, float64(res.Iterations))
			if name == "BSP" {
				ideals = append(ideals, ideal(res, target, j.rate(), pace))
			}
			if first := r.Result(p.to(r, j, pace, "BSP", target)); name == "A-BSP" && first.Reached(target) {
				ratios = append(ratios, first.Seconds/res.Seconds)
			}
		}
		row.Times[name], row.Iterations[name] = spreadOf(times), Known(spreadOf(steps).Median)
	}
	row.Times["Ideal"], row.Measured = spreadOf(ideals), Known(spreadOf(ratios).Median)
	return row
}
