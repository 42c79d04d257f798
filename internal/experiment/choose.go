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

// candidates are the solvers that a job is tried by, beside the one it takes by itself.
var candidates = map[string][]string{
	"logistic": {"newton", "lbfgs", "sdca"}, "svm": {"interior", "newton", "sdca"}, "lasso": {"cd", "sdca"},
	"ridge": {"normal", "lbfgs"}, "linear": {"normal", "lbfgs"}, "elasticnet": {"cd", "sdca"}, "softmax": {"lbfgs"},
	"mlp": {"adam"}, "kmeans": {}, "als": {},
}

// byWorkers are the jobs that workers on tables can train.
var byWorkers = []string{"logistic", "svm", "lasso", "ridge", "linear", "elasticnet", "softmax", "kmeans"}

// choice is one that was tried.
type choice struct {
	Sync, Solver string
	Result       *Result
}

// Choose trains a job, one run after the other where the runner makes one at a time: on the real clock two would slow
// each other down. It trains it by every policy and by solvers that may be the best, and returns a table, the fastest
// first of those whose objective is within a thousandth of the least. The arguments are those of volley run.
func Choose(ctx context.Context, r *Runner, args []string) (*Report, error) {
	for _, a := range args {
		if name, _, _ := strings.Cut(a, "="); slices.Contains([]string{"--sync", "--solver", "--out", "--json"}, name) {
			return nil, fault.Newf(fault.Usage, "use", name, "it is what is chosen here, or means nothing").
				WithHint("leave it out")
		}
	}
	tries := triesOf(args[0])
	var runs []Run
	for i := range tries {
		runs = append(runs, tries[i].run(args))
	}
	if err := r.Do(ctx, runs); err != nil {
		return nil, err
	}
	for i := range tries {
		tries[i].Result = r.Result(runs[i])
	}
	return chooseReport(slices.DeleteFunc(tries, func(c choice) bool { // it is the job's own, which was tried
		return c.Solver != "" && c.Result.Failed == "" && c.Solver == tries[0].Result.Solver
	}))
}

// triesOf returns what a job is tried by: its own solver under all policies, others where every row is folded.
func triesOf(job string) (out []choice) {
	for _, sync := range []string{"auto", "bsp", "steal", "absp"} {
		out = append(out, choice{Sync: sync})
	}
	if slices.Contains(byWorkers, job) {
		for _, sync := range []string{"ssp", "asp", "cap"} {
			out = append(out, choice{Sync: sync})
		}
	}
	for _, solver := range candidates[job] {
		out = append(out, choice{Sync: "steal", Solver: solver})
	}
	return out
}

func (c *choice) run(args []string) Run {
	run := append(append(Run{"run"}, args...), "--sync", c.Sync)
	has := func(flag string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return a == flag || strings.HasPrefix(a, flag+"=") })
	}
	if has("--pace") && !has("--clock") {
		run = append(run, "--clock", "virtual")
	}
	if c.Solver != "" {
		run = append(run, "--solver", c.Solver)
	}
	return run
}

func chooseReport(tries []choice) (*Report, error) {
	least := math.Inf(1)
	for _, t := range tries {
		if t.Result.Failed == "" {
			least = min(least, t.Result.Objective)
		}
	}
	if math.IsInf(least, 1) {
		return nil, fault.Newf(fault.BadInput, "choose for", "the job", "no run came to its end: %s",
			tries[0].Result.Failed)
	}
	arrived := func(t *choice) bool {
		return t.Result.Failed == "" && t.Result.Objective <= least+float64(1e-3*max(1, math.Abs(least)))
	}
	slices.SortStableFunc(tries, func(a, b choice) int {
		switch ra, rb := arrived(&a), arrived(&b); {
		case ra && rb && a.Result.Seconds < b.Result.Seconds, ra && !rb:
			return -1
		case ra && rb && a.Result.Seconds > b.Result.Seconds, !ra && rb:
			return 1
		}
		return 0
	})
	r := &Report{Title: "The fastest first", Header: []string{"--sync", "solver", "seconds", "iterations", "objective",
		"share a step", "of it"}, All: tries}
	for i := range tries {
		t := &tries[i]
		if t.Result.Failed != "" {
			r.Rows = append(r.Rows, []string{t.Sync, t.Solver, "–", "–", "–", "–", firstLine(t.Result.Failed)})
			continue
		}
		of := ""
		if !arrived(t) {
			of = "ends above the least objective by more than a thousandth"
		}
		r.Rows = append(r.Rows, []string{t.Sync, t.Result.Solver, number(t.Result.Seconds),
			strconv.Itoa(t.Result.Iterations), strconv.FormatFloat(t.Result.Objective, 'g', 8, 64),
			number(t.Result.Share), of})
	}
	best := &tries[0]
	r.About = []string{fmt.Sprintf("Use --sync %s --solver %s: %s s. Training alone, evaluations left out.", best.Sync,
		best.Result.Solver, number(best.Result.Seconds))}
	return r, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
