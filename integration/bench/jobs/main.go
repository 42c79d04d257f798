// Package main runs every bundled job on real data whose results are known: whole,
// with leases, and cut, on a cluster of which three executors run at 1 and nine at
// 2.2, in virtual time; and prints the table.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"

	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/integration/reference"
)

var uneven = []string{"--clock", "virtual", "--pace", "physical", "--json"}

func main() {
	data := flag.String("data", "../shared/data", "directory of the data sets")
	only := flag.String("only", "", "cases whose names contain this")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := table(ctx, *data, *only); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// outcome is what a run prints.
type outcome struct {
	Iterations int
	Objective  float64
	Seconds    float64 `json:"train_seconds"`
	Metrics    map[string]float64
}

func table(ctx context.Context, data, only string) error {
	tmp, err := os.MkdirTemp("", "volley-jobs-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	program, err := lab.Build(tmp)
	if err != nil {
		return err
	}
	cases, err := reference.Cases(data, tmp)
	if err != nil {
		return err
	}
	fmt.Println("| data and job | reference | bsp, steal | iterations | bsp s | steal s | absp | iterations | s |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for i := range cases {
		if c := &cases[i]; strings.Contains(c.Name, only) {
			if err := row(ctx, program, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// row runs one case and prints its line.
func row(ctx context.Context, program string, c *reference.Case) error {
	bsp, err := run(ctx, program, c, "--sync", "bsp")
	if err != nil {
		return err
	}
	steal, err := run(ctx, program, c, "--sync", "steal")
	if err != nil {
		return err
	}
	absp, err := run(ctx, program, c, append([]string{"--sync", "absp"}, c.CutFlags...)...)
	if err != nil {
		return err
	}
	whole, cut := c.Of(bsp.Objective, bsp.Metrics), c.Of(absp.Objective, absp.Metrics)
	if other := c.Of(steal.Objective, steal.Metrics); other != whole {
		return fmt.Errorf("%s: steal comes to %v, bsp to %v", c.Name, other, whole)
	}
	name := c.Name
	if c.Nonzeros > 0 {
		name += fmt.Sprintf(" (%.0f nonzero: %.0f)", c.Nonzeros, bsp.Metrics["nonzeros"])
	}
	fmt.Printf("| %s | %s%.9g | %.9g | %d | %.3f | %.3f | %.9g | %d | %.3f |\n", name,
		map[bool]string{true: "at best or within " + fmt.Sprint(c.Within*100) + " % of "}[c.OneSided && c.Within > 0],
		c.Want, whole, bsp.Iterations, bsp.Seconds, steal.Seconds, cut, absp.Iterations, absp.Seconds)
	return nil
}

func run(ctx context.Context, program string, c *reference.Case, sync ...string) (o outcome, err error) {
	cmd := exec.CommandContext(ctx, program, slices.Concat([]string{"run", c.Job}, c.Flags, uneven, sync)...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return o, fmt.Errorf("%s %v: %w: %s", c.Name, sync, err, complaint.String())
	}
	return o, json.Unmarshal(out, &o)
}
