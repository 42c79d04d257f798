// Command churn learns which customers come back. It makes a table with a row for each customer of their visits, which
// is a job of datasets, trains a logistic regression on it, and measures that on customers that it has not seen.
//
//	go run ./examples/11-churn -input visits.csv -day 60
//
// The input has the columns customer, day and amount; who comes after -day is a customer who came back.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/rdd"
)

type visit struct {
	Customer string  `col:"customer"`
	Day      int     `col:"day"`
	Amount   float64 `col:"amount"`
}

// customer is a row of the table: what is known of a customer on the day, and whether they came back after it.
type customer struct {
	Label  int     `col:"label"`
	Visits int     `col:"visits"`
	Spent  float64 `col:"spent"`
	Idle   int     `col:"idle"` // days since the last visit
}

type args struct {
	Input, Table string
	Day          int
}

// build declares the first job: visits are brought together by customer, and saved as a table of features.
func build(g *rdd.Graph, a args) rdd.Action[int64] {
	visits := rdd.CSV[visit](g, rdd.CSVOptions{}, a.Input)
	byCustomer := rdd.KeyBy(visits, func(v visit) string { return v.Customer })
	known := rdd.AggregateByKey(byCustomer, func() customer { return customer{Idle: a.Day} },
		func(c customer, v visit) customer {
			if v.Day > a.Day {
				c.Label = 1
				return c
			}
			c.Visits, c.Spent, c.Idle = c.Visits+1, c.Spent+v.Amount, min(c.Idle, a.Day-v.Day)
			return c
		},
		func(a, b customer) customer {
			return customer{max(a.Label, b.Label), a.Visits + b.Visits, a.Spent + b.Spent, min(a.Idle, b.Idle)}
		})
	seen := rdd.Filter(rdd.Values(known), func(c customer) bool { return c.Visits > 0 })
	return rdd.SaveParquet(seen, a.Table)
}

func run(ctx context.Context, s *rdd.Session, _ args, save rdd.Action[int64]) (string, error) {
	rows, err := save.Run(ctx, s)
	fmt.Printf("%d customers\n", rows)
	return "", err
}

// train runs the second job, without one customer in five.
func train(ctx context.Context, table string) (*mllib.LinearModel, error) {
	job := mllib.LinearConfig{Loss: mllib.Logistic, Data: []string{table}, Intercept: true, Reg: 1e-4, Errors: true,
		Input: rdd.Input{Label: "label", Fold: rdd.InputFold{Number: 0, Of: 5, Stratified: true}}, MaxIterations: 100,
		Tol: 1e-9}
	var model *mllib.LinearModel
	_, err := volley.Run(ctx, volley.Config{}, "logistic", job, mllib.BuildLinear,
		func(ctx context.Context, s *rdd.Session, job mllib.LinearConfig, p mllib.LinearPlan) (string, error) {
			t, err := mllib.TrainLinear(ctx, s, job, p)
			if err != nil {
				return "", err
			}
			model = t.Model
			fmt.Printf("%s after %d passes by %s, no more than %.1g above the optimum\n", t.StoppedBy, t.Iterations,
				t.Solver, t.Gap)
			return t.StoppedBy, nil
		})
	return model, err
}

func lesson(ctx context.Context, a args) error {
	if a.Input == "" {
		return errors.New("-input is missing: a table of visits")
	}
	if _, err := volley.Run(ctx, volley.Config{}, "customers", a, build, run); err != nil {
		return err
	}
	model, err := train(ctx, a.Table)
	if err != nil {
		return err
	}
	fmt.Print(model.Describe())
	left := rdd.Input{Label: "label", Fold: rdd.InputFold{Number: 0, Of: 5, Stratified: true, Held: true}}
	metrics, err := model.Evaluate(ctx, left, []string{a.Table})
	if err != nil {
		return err
	}
	fmt.Printf("of the others: auc %.3f, accuracy %.3f, brier %.3f\n", metrics["auc"], metrics["accuracy"],
		metrics["brier"])
	found, err := mllib.ImportancesOf(ctx, model, left, []string{a.Table}, mllib.ImportanceConfig{Repeats: 5})
	if err == nil {
		fmt.Print(found)
	}
	return err
}

func main() {
	input := flag.String("input", "", "CSV with the columns customer, day and amount")
	day := flag.Int("day", 60, "the last day that is known")
	flag.Parse()
	dir, err := os.MkdirTemp("", "churn-*")
	if err == nil {
		defer os.RemoveAll(dir)
		err = lesson(context.Background(), args{*input, filepath.Join(dir, "customers"), *day})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
