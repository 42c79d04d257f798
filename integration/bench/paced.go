package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/internal/synth"
	"github.com/volley-engine/volley/mllib"
)

// Rows per second of speed 1, and steps of a run.
const (
	pacedRate  = 20_000
	pacedSteps = 40
)

// pacedLaw is a law of four executors, in virtual time and for each process.
type pacedLaw struct {
	name    string
	virtual []string // of which the mean counts: seeds, where there are any
	own     []string
}

// paced: what virtual time says of policies under a law, beside processes that sleep as the law says.
func paced(ctx context.Context, dir string, _ int64) error {
	data := filepath.Join(dir, "paced.arrow")
	if err := synth.Write(ctx, synth.Logistic{Rows: 20_000, Features: 10, Eps: 0.5}, "arrow", data, 2); err != nil {
		return err
	}
	for i, l := range []pacedLaw{
		{"two fast, two slow", []string{"static:2.2,1,2.2,1"}, []string{"rate:44000", "rate:20000", "rate:44000",
			"rate:20000"}},
		{"disrupted at times", []string{"disrupted:300:100ms:1", "disrupted:300:100ms:2",
			"disrupted:300:100ms:3", "disrupted:300:100ms:4", "disrupted:300:100ms:5"},
			[]string{"disrupted:300:100ms:1", "disrupted:300:100ms:2",
				"disrupted:300:100ms:3", "disrupted:300:100ms:4"}},
	} {
		if err := l.compare(ctx, filepath.Join(dir, fmt.Sprint("paced", i)), data); err != nil {
			return err
		}
	}
	return nil
}

// compare prints the seconds that the policies take.
func (l pacedLaw) compare(ctx context.Context, dir, data string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	c, err := startCluster(dir, 0, 1)
	if err != nil {
		return err
	}
	defer c.Close()
	for i, pace := range l.own {
		if err := c.Join(fmt.Sprint("e", i), "packs", "--pace", pace, "--pace-rate",
			fmt.Sprint(pacedRate)); err != nil {
			return err
		}
	}
	var said []string
	for _, sync := range []string{"bsp", "steal", "absp"} {
		there, here, err := l.both(ctx, c, dir, data, sync)
		if err != nil {
			return err
		}
		said = append(said, fmt.Sprintf("%s %.2f s and %.2f (%.3f)", sync, there, here, there/here))
	}
	fmt.Printf("%d steps on four executors, %s, as processes that sleep and in virtual time: %s (limits 0.9 and 1.1)\n",
		pacedSteps, l.name, strings.Join(said, ", "))
	return nil
}

// both returns the seconds of a policy's steps on processes, and in virtual time.
func (l pacedLaw) both(ctx context.Context, c *lab.Cluster, dir, data, sync string) (there, here float64, err error) {
	steps, err := c.Submit("--data", data, "--splits", "16", "--sync", sync, "--solver", "nesterov", "--exchange",
		"off",
		"--max-iterations", fmt.Sprint(pacedSteps), "--tol", "0")
	if err != nil {
		return 0, 0, err
	}
	for _, s := range lab.Seconds(steps) {
		there += s
	}
	for _, law := range l.virtual {
		_, reports, _, err := passes(ctx, dir, data, pacedSteps, mllib.LinearConfig{Splits: 16}, nil, "--executors",
			"4",
			"--clock", "virtual", "--pace", law, "--pace-rate", fmt.Sprint(pacedRate), "--sync", sync, "--exchange",
			"off")
		if err != nil {
			return 0, 0, err
		}
		for _, s := range seconds(reports) {
			here += s / float64(len(l.virtual))
		}
	}
	return there, here, nil
}
