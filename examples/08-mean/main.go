// Command mean estimates the mean of numbers, one a line, by steps that may
// end early: the smallest job of one's own under A-BSP. Each step folds what
// the executors reach; Scale makes a partial sum stand for its whole split, and
// the cursor sees to it that every number gets its turn.
//
//	seq 1 4000 > numbers.txt
//	go run ./examples/08-mean --sync absp --clock virtual --pace static:4,1 -- --input numbers.txt
package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

type args struct {
	Input string `usage:"file with one number a line"`
	Steps int    `usage:"steps to take" default:"8"`
}

// total is the accumulator of a step.
type total struct{ Sum, N float64 }

// state is what one iteration hands to the next: the mean of the steps so far.
type state struct{ Mean float64 }

func build(g *rdd.Graph, a args) rdd.Step[float64, total] {
	numbers := rdd.MapErr(rdd.TextFile(g, a.Input), func(line string) (float64, error) {
		return strconv.ParseFloat(strings.TrimSpace(line), 64)
	})
	return rdd.Aggregate(rdd.Pack(numbers), rdd.Aggregator[float64, float64, total]{
		Zero:  func(float64) total { return total{} },
		Add:   func(t total, _, x float64) total { return total{t.Sum + x, t.N + 1} },
		Merge: func(a, b total) total { return total{a.Sum + b.Sum, a.N + b.N} },
		Scale: func(t total, f float64) total { return total{t.Sum * f, t.N * f} },
	}, rdd.Aggressive(0.5))
}

func run(ctx context.Context, s *rdd.Session, a args, step rdd.Step[float64, total]) error {
	var st state
	for it := range rdd.Iterations(ctx, s, &st, a.Steps) {
		t, err := step.Run(ctx, s, st.Mean)
		if err != nil {
			return err
		}
		st.Mean += (t.Sum/t.N - st.Mean) / float64(it.Number)
		it.Report("mean", st.Mean)
		fmt.Printf("step %d: share %.2f, mean so far %.6g\n", it.Number, s.LastInfo().Share, st.Mean)
	}
	return s.Err()
}

func main() { volley.Main("mean", build, run) }
