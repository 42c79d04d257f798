package experiment

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
)

// ofItself are options of volley run that an experiment sets.
var ofItself = []string{"--sync", "--solver", "--out", "--json", "--pace", "--clock", "--executors", "--splits",
	"--target", "--tol", "--max-iterations", "--event-log", "--checkpoint-dir", "--checkpoint-every", "--resume",
	"--batch-fraction", "--jobs", "--rows"}

// Own returns a job on data of the user's own, from the arguments of volley run: its name, --data and other options.
// Its rate is that of this machine, which a run of few iterations tells.
func Own(ctx context.Context, r *Runner, args []string) (*Job, error) {
	j := &Job{Convex: true}
	var data []string
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(args[i], "=")
		switch {
		case slices.Contains(ofItself, name):
			return nil, fault.Newf(fault.Usage, "use", name, "the experiment sets it, or it means nothing here").
				WithHint("leave it out")
		case name == "--data" && !has && i+1 < len(args):
			i++
			data = append(data, strings.Split(args[i], ",")...)
		case name == "--data":
			data = append(data, strings.Split(value, ",")...)
		case !strings.HasPrefix(name, "-") && j.Verb == "" && candidates[name] != nil:
			j.Verb = name
		default:
			j.Flags = append(j.Flags, args[i])
		}
	}
	if j.Verb == "" || len(data) == 0 {
		return nil, fault.Newf(fault.Usage, "run the experiment", "own", "it takes a job and --data").
			WithHint("volley lab run own logistic --data train.csv --label churned")
	}
	for i, path := range data {
		if strings.Contains(path, "://") {
			continue
		}
		var err error
		if data[i], err = filepath.Abs(path); err != nil { // results of before are known by it
			return nil, fault.New(fault.BadInput, "find", path, err)
		}
	}
	path := strings.Join(data, ",")
	j.Path, j.Name, j.Exact = path, j.Verb, slices.Clone(candidates[j.Verb])
	if convex := slices.Index([]string{"kmeans", "mlp", "als"}, j.Verb) < 0; !convex {
		j.Convex, j.Exact, j.Seeds, j.Batches = false, nil, 1, j.Verb == "mlp"
	} else {
		j.Paper = []string{"--solver", "sqrt"}
	}
	return j, j.measure(ctx, r)
}

// measure finds how many rows a second one slot of this machine folds.
func (j *Job) measure(ctx context.Context, r *Runner) error {
	run := slices.Concat(Run{"run", j.Verb, "--data", j.Path, "--sync", "bsp", "--executors", "1", "--slots", "1",
		"--max-iterations", "3"}, j.Flags)
	if err := r.Do(ctx, []Run{run}); err != nil {
		return err
	}
	res := r.Result(run)
	if res.Failed != "" {
		return fault.Newf(fault.BadInput, "train", j.Verb, "%s", firstLine(res.Failed))
	}
	j.Rate = 1 + int(min(1e9, float64(res.Passes.Rows)/math.Max(res.Seconds, 1e-3)))
	return nil
}
