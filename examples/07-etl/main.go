// Command etl turns CSV into Parquet: it reads typed rows, leaves out those
// without a measurement, adds a column, sorts by time and saves. What the files
// mark as missing is a null, and stays one.
//
//	go run ./examples/07-etl -- --input weather.csv.gz --output weather
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

type args struct {
	Input  string `usage:"CSV files of weather by airport and hour"`
	Output string `usage:"directory for the Parquet files; it must not exist"`
	Null   string `usage:"text of a field that is missing" default:"NA"`
}

// raw is a row of the input.
type raw struct {
	Origin string    `col:"origin"`
	At     time.Time `col:"time_hour"`
	Temp   *float64  `col:"temp"` // degrees Fahrenheit
	Wind   *float64  `col:"wind_speed"`
	Gust   *float64  `col:"wind_gust"`
}

// clean is a row of the output.
type clean struct {
	Origin  string    `col:"origin"`
	At      time.Time `col:"at"`
	Celsius float64   `col:"celsius"`
	Wind    *float64  `col:"wind_mph"`
	Gust    *float64  `col:"gust_mph"`
}

func build(g *rdd.Graph, a args) rdd.Action[int64] {
	rows := rdd.CSV[raw](g, rdd.CSVOptions{Null: a.Null}, a.Input)
	measured := rdd.Filter(rows, func(r raw) bool { return r.Temp != nil })
	cleaned := rdd.Map(measured, func(r raw) clean {
		return clean{r.Origin, r.At, (*r.Temp - 32) / 1.8, r.Wind,
			r.Gust}
	})
	return rdd.SaveParquet(rdd.SortBy(cleaned, func(c clean) int64 { return c.At.Unix() }, rdd.Partitions(2)), a.Output)
}

func run(ctx context.Context, s *rdd.Session, a args, save rdd.Action[int64]) error {
	n, err := save.Run(ctx, s)
	if err == nil {
		fmt.Printf("%d rows in %s\n", n, a.Output)
	}
	return err
}

func main() { volley.Main("etl", build, run) }
