package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/volley-engine/volley/internal/synth"
	"github.com/volley-engine/volley/mllib"
)

// even: what --sync auto costs where executors are even, beside bsp: steps of gradient descent, in turn; on the clock
// of this machine, and in virtual time, in which they are exactly even.
func even(ctx context.Context, dir string, rows int64) error {
	data := filepath.Join(dir, "even.arrow")
	if err := synth.Write(ctx, synth.Logistic{Rows: rows / 5, Features: 50, Eps: 0.1}, "arrow", data, 2); err != nil {
		return err
	}
	for _, c := range []struct {
		name  string
		turns int
		flags []string
	}{
		{"on two executors of this machine", 9, []string{"--executors", "2"}},
		{"on eight even executors, virtual time", 1, []string{"--executors", "8", "--clock", "virtual", "--pace",
			"static:1,1,1,1,1,1,1,1", "--pace-rate", "1e6"}},
	} {
		took := map[string][]float64{}
		for range c.turns {
			for _, sync := range []string{"bsp", "auto"} {
				_, _, out, err := passes(ctx, dir, data, 60, mllib.LinearConfig{Splits: 32, Tol: -1}, nil,
					append(c.flags,
						"--sync", sync)...)
				if err != nil {
					return err
				}
				took[sync] = append(took[sync], out.Train.Seconds())
			}
		}
		bsp, auto := quantile(took["bsp"], 0.5), quantile(took["auto"], 0.5)
		fmt.Printf("60 steps %s: bsp %.4f s, auto %.4f s; ratio %.3f (limit 1.02)\n", c.name, bsp, auto, auto/bsp)
	}
	return nil
}
