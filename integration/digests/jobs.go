package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/integration/reference"
)

// few is how many steps a job is given: enough for everything that it does to show.
const few = "12"

// modes are how each job is run in one process. Under absp what a step takes in depends on
// time, so that only computed time gives the same log again.
var modes = map[string][]string{
	"bsp":   {"--sync", "bsp", "--executors", "3"},
	"steal": {"--sync", "steal", "--executors", "3"},
	"absp":  {"--sync", "absp", "--clock", "virtual", "--pace", "static:4,1,2"},
}

// more returns jobs that the reference has no value of.
func more(cases []reference.Case) []reference.Case {
	var out []reference.Case
	for _, c := range cases {
		switch c.Name {
		case "diabetes, linear":
			for _, job := range []string{"ridge", "elasticnet", "mlp --regression"} {
				name, flags, _ := strings.Cut(job, " ")
				out = append(out, reference.Case{Name: "diabetes, " + name, Job: name,
					Flags: append(slices.Clone(c.Flags), strings.Fields(flags)...)})
			}
			for _, solver := range []string{"gd", "nesterov", "sqrt", "constant", "adam", "svrg", "lbfgs", "owlqn",
				"newton", "normal", "cd"} {
				out = append(out, reference.Case{Name: "diabetes, linear by " + solver, Job: "linear",
					Flags: append(slices.Clone(c.Flags), "--solver", solver)})
			}
		case "a9a, logistic, λ = 1/n":
			for _, solver := range []string{"gd", "nesterov", "adam", "svrg", "sdca", "lbfgs", "owlqn", "newton",
				"cd"} {
				out = append(out, reference.Case{Name: "a9a, logistic by " + solver, Job: "logistic",
					Flags: append(slices.Clone(c.Flags), "--solver", solver)})
			}
		}
	}
	return out
}

func (b *bench) cases() ([]reference.Case, error) {
	all, err := reference.Cases(b.data, b.dir)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(c reference.Case) bool {
		return c.Long || c.Metric == "accuracy" && strings.Contains(c.Name, "the same")
	})
	return append(all, more(all)...), nil
}

// jobs runs the bundled jobs in one process.
func (b *bench) jobs() error {
	cases, err := b.cases()
	if err != nil {
		return err
	}
	for i := range cases {
		for _, mode := range []string{"bsp", "steal", "absp"} {
			name := "embedded, " + mode + ": " + cases[i].Name
			if !b.wanted(name) {
				continue
			}
			if err := b.job(name, &cases[i], mode == "absp",
				append([]string{"run", cases[i].Job}, modes[mode]...)); err != nil {
				return err
			}
		}
	}
	return nil
}

// job runs one job; whole has its whole log be the same, and not only what its steps came to.
// What a job refuses is said.
func (b *bench) job(name string, c *reference.Case, whole bool, args []string) error {
	dir, err := os.MkdirTemp(b.dir, "job-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	model, log := filepath.Join(dir, "model"), filepath.Join(dir, "log")
	args = slices.Concat(args, c.Flags, []string{"--out", model, "--event-log", log, "--json"})
	if args[0] == "run" {
		args = append(args, "--data-dir", filepath.Join(dir, "packs"))
	}
	if !slices.Contains(args, "--max-iterations") {
		args = append(args, "--max-iterations", few)
	}
	cmd := exec.Command(b.program, args...)
	var said strings.Builder
	cmd.Stderr = &said
	switch _, err := cmd.Output(); {
	case cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == volley.ExitUsage:
		b.say(name, "refused")
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w: %s", name, err, said.String())
	}
	of, err := filesDigest(model)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	steps, err := logDigest(log, whole)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	b.say(name, "model "+of+" log "+steps)
	return nil
}

// processes runs the jobs on a driver and executors in processes of their own.
func (b *bench) processes() error {
	cases, err := b.cases()
	if err != nil {
		return err
	}
	c, err := lab.Start(b.program, filepath.Join(b.dir, "cluster"))
	if err != nil {
		return err
	}
	defer c.Close()
	for _, e := range []string{"e0", "e1", "e2"} {
		if err := c.Join(e, "packs-"+e); err != nil {
			return err
		}
	}
	for i := range cases {
		for _, mode := range []string{"bsp", "steal"} {
			name := "processes, " + mode + ": " + cases[i].Name
			if !b.wanted(name) {
				continue
			}
			if err := b.job(name, &cases[i], false, []string{"submit", cases[i].Job, "--driver", c.Addr, "--sync",
				mode}); err != nil {
				return err
			}
		}
	}
	return b.lessonsOn(c)
}

// logDigest returns the digest of an event log: of the whole, or of what its steps came to.
func logDigest(path string, whole bool) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var kept []string
	for line := range strings.Lines(string(raw)) {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		if one := ofLine(fields, whole); one != "" {
			kept = append(kept, one)
		}
	}
	return digestOf(strings.Join(kept, "\n")), nil
}

// come are the fields of a line that say what a step or an evaluation came to.
var come = []string{"event", "step", "iteration", "c", "folded", "values", "objective", "params"}

// masks are those that another version, or another place, says otherwise.
var masks = []string{"version", "plan", "args", "sha256"}

func ofLine(fields map[string]json.RawMessage, whole bool) string {
	event := string(fields["event"])
	if !whole && event != `"step"` && event != `"evaluation"` {
		return ""
	}
	kept := map[string]json.RawMessage{}
	for k, v := range fields {
		if whole && !slices.Contains(masks, k) || !whole && slices.Contains(come, k) {
			kept[k] = v
		}
	}
	raw, _ := json.Marshal(kept) // a map of what has just been parsed
	return string(raw)
}
