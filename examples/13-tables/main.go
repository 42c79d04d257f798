// Command tables fits logistic regression by stochastic gradient descent on a parameter table: each worker goes over
// its own rows and adds to weights that all share, and none waits for one that is at most --slack clocks behind.
//
//	go run ./examples/13-tables -- --input points.csv --slack 2
package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

type args struct {
	Input  string  `usage:"rows: 0 or 1, then numbers, separated by commas"`
	Sync   string  `usage:"what a read may miss: bsp, ssp, asp or cap" default:"ssp"`
	Slack  int     `usage:"clocks that a worker may be ahead of the slowest, of ssp and cap" default:"1"`
	Clocks int     `usage:"how often each worker goes over its rows" default:"20"`
	Every  int     `usage:"clocks from one report to the next" default:"1"`
	Rate   float64 `usage:"learning rate" default:"0.003"`
	Splits int     `usage:"splits of the rows, which is how many workers there are" default:"4"`
}

// row is a point with its label, 1 or -1. The first number is 1, for the intercept.
type row struct {
	Label float64
	X     []float64
}

// state is what a worker keeps: the mean loss of its rows in its last clock.
type state struct {
	Loss float64
	Rows int
}

type plan struct {
	Weights *tables.Table[float64]
	Fit     tables.Work[float64, row, state]
	Columns rdd.Action[[]row]
}

func build(g *rdd.Graph, a args) plan {
	rows := rdd.MapErr(rdd.TextFile(g, a.Input), parse)
	model := map[string]tables.Model{"bsp": tables.BSP(), "ssp": tables.SSP(a.Slack), "asp": tables.ASP(),
		"cap": tables.CAP(a.Slack)}[a.Sync]
	p := plan{Weights: tables.New[float64](g, "weights", tables.Dense(1, 0), model), Columns: rdd.Take(rows, 1)}
	p.Fit = tables.Worker(rdd.Pack(rows, rdd.Splits(a.Splits)), func(c *tables.Clock[float64, row, state]) error {
		weights := p.Weights.In(c)
		sum, by := state{}, make([]float64, p.Weights.Shape().Columns)
		for r := range c.Rows() {
			margin := 0.0
			for i, w := range weights.Row(0).Values { // with what this worker has just added
				margin += w * r.X[i]
			}
			step := c.Param / float64(c.Workers()) / (1 + math.Exp(r.Label*margin))
			for i, x := range r.X {
				by[i] = step * r.Label * x
			}
			weights.IncRow(0, by)
			sum.Loss, sum.Rows = sum.Loss+math.Log1p(math.Exp(-r.Label*margin)), sum.Rows+1
		}
		*c.State = sum
		return nil
	}, p.Weights)
	return p
}

// parse reads a row.
func parse(line string) (r row, err error) {
	fields := strings.Split(line, ",")
	r.X = []float64{1}
	for _, f := range fields {
		x, err := strconv.ParseFloat(strings.TrimSpace(f), 64)
		if err != nil {
			return r, fmt.Errorf("%q is not a number", f)
		}
		r.X = append(r.X, x)
	}
	r.Label = 2*r.X[1] - 1
	r.X = append(r.X[:1], r.X[2:]...)
	return r, nil
}

func run(ctx context.Context, s *rdd.Session, a args, p plan) error {
	first, err := p.Columns.Run(ctx, s)
	if err != nil || len(first) == 0 {
		return err
	}
	p.Weights.Reshape(1, len(first[0].X))
	for tick, err := range p.Fit.Clocks(ctx, s, a.Rate, a.Clocks, a.Every) {
		if err != nil {
			return err
		}
		all := state{}
		for w := range tick.Workers() {
			one, err := p.Fit.StateAt(tick, w)
			if err != nil {
				return err
			}
			all.Loss, all.Rows = all.Loss+one.Loss, all.Rows+one.Rows
		}
		tick.Report("loss", all.Loss/float64(all.Rows))
		if tick.Clock == a.Clocks {
			fmt.Printf("loss %.6f after %d clocks of %d rows; weights %.15g\n", all.Loss/float64(all.Rows), tick.Clock,
				all.Rows, p.Weights.At(tick, 0).Values)
		}
	}
	return nil
}

func main() { volley.Main("tables", build, run) }
