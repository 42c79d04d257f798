// Command compare trains one logistic regression under several models of
// synchronization on an emulated cluster of six executors, one of them at half
// speed, and prints the time each takes to the same objective. Numerics and
// control code are real; time is computed.
//
//	bin/volley generate logistic --rows 60000 --features 40 --eps 0.2 --out train.libsvm
//	go run ./examples/09-compare --input train.libsvm
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/rdd"
)

func main() {
	input := flag.String("input", "", "training data")
	pace := flag.String("pace", "one-straggler", "emulated speeds, as volley run --pace")
	flag.Parse()
	if err := compare(context.Background(), *input, *pace); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// models are the engine's flags for each row of the table.
var models = []struct {
	name  string
	flags []string
}{
	{"BSP", []string{"--sync", "bsp", "--exchange", "off"}},
	{"BSP, moving splits", []string{"--sync", "bsp"}},
	{"BSP, batches of 90 %", []string{"--sync", "bsp", "--batch-fraction", "0.9", "--exchange", "off"}},
	{"A-BSP, not moving", []string{"--sync", "absp", "--exchange", "off"}},
	{"A-BSP", []string{"--sync", "absp"}},
}

func compare(ctx context.Context, input, pace string) error {
	job := mllib.LinearConfig{Data: []string{input}, Solver: mllib.Nesterov, Reg: 1e-4, Intercept: true,
		MaxIterations: 2000,
		Tol:           1e-12, Stop: mllib.ByObjective, Seed: 1}
	best, _, err := train(ctx, job, "--executors", "2")
	if err != nil {
		return err
	}
	target := 1.001 * best.Objective
	fmt.Printf("Logistic regression on six executors, one at half speed (pace %s), in computed time.\n"+
		"Best objective %.8g; seconds to %.8g, and how many times as fast as BSP (ratio):\n\n", pace, best.Objective,
		target)
	fmt.Printf("%-22s %10s %12s %10s %8s %8s\n", "", "iterations", "share a step", "seconds", "ratio", "moves")
	job.Target = &target
	var first float64
	for _, m := range models {
		t, o, err := train(ctx, job, append([]string{"--clock", "virtual", "--pace", pace}, m.flags...)...)
		if err != nil {
			return err
		}
		seconds := o.Train.Seconds()
		if first == 0 {
			first = seconds
		}
		fmt.Printf("%-22s %10d %12.2f %10.2f %8.2f %8d\n", m.name, t.Iterations, t.MeanShare, seconds, first/seconds,
			o.Counters.Moves)
	}
	return nil
}

func train(ctx context.Context, job mllib.LinearConfig, flags ...string) (*mllib.Trained, *volley.Outcome, error) {
	cfg, err := volley.ParseConfig(flags...)
	if err != nil {
		return nil, nil, err
	}
	var t *mllib.Trained
	out, err := volley.Run(ctx, cfg, "logistic", job, mllib.BuildLinear,
		func(ctx context.Context, s *rdd.Session, job mllib.LinearConfig, p mllib.LinearPlan) (string, error) {
			var err error
			if t, err = mllib.TrainLinear(ctx, s, job, p); err != nil {
				return "", err
			}
			return t.StoppedBy, nil
		})
	return t, out, err
}
