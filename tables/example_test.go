package tables_test

import (
	"context"
	"fmt"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// sample is a point of the line y = 3x + 1.
type sample struct{ X, Y float64 }

type lineArgs struct{ Slack int }

type linePlan struct {
	line *tables.Table[float64] // a row: slope and height
	fit  tables.Work[float64, sample, struct{}]
}

func buildLine(g *rdd.Graph, a lineArgs) linePlan {
	points := rdd.Map(rdd.Range(g, 0, 1000, 4), func(i int64) sample {
		x := float64(i)/500 - 1
		return sample{x, 3*x + 1}
	})
	p := linePlan{line: tables.New[float64](g, "line", tables.Dense(1, 2), tables.SSP(a.Slack))}
	p.fit = tables.Worker(rdd.Pack(points, rdd.Splits(4)), func(c *tables.Clock[float64, sample, struct{}]) error {
		line := p.line.In(c)
		for s := range c.Rows() {
			at := line.Row(0).Values
			off := c.Param / float64(c.Workers()) * (s.Y - at[0]*s.X - at[1])
			line.IncRow(0, []float64{off * s.X, off}) // seen by the next row at once, by other workers in time
		}
		return nil
	}, p.line)
	return p
}

func runLine(ctx context.Context, s *rdd.Session, _ lineArgs, p linePlan) (string, error) {
	for tick, err := range p.fit.Clocks(ctx, s, 0.01, 200, 100) {
		if err != nil {
			return "", err
		}
		at := p.line.At(tick, 0).Values
		fmt.Printf("after %d clocks y = %.2f x + %.2f\n", tick.Clock, at[0], at[1])
	}
	return "", nil
}

// Workers fit a line by stochastic gradient descent, each on its own rows, and none waits for one that is at most a
// clock behind.
func Example() {
	cfg, err := volley.ParseConfig("--executors", "2")
	if err == nil {
		_, err = volley.Run(context.Background(), cfg, "line", lineArgs{Slack: 1}, buildLine, runLine)
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// after 100 clocks y = 3.00 x + 1.00
	// after 200 clocks y = 3.00 x + 1.00
}
