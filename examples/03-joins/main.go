// Command joins brings three tables together: flights from Parquet, airlines and
// the weather from CSV. It prints how late the flights of each airline leave, and
// how late they leave in wind and in calm. The small tables go to all tasks of
// the flights by themselves: no flight is moved.
//
//	go run ./examples/03-joins -- --flights flights.parquet --airlines airlines.csv --weather weather.csv.gz
package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

type args struct {
	Flights  string  `usage:"Parquet file of flights"`
	Airlines string  `usage:"CSV file of airlines"`
	Weather  string  `usage:"CSV file of the weather by airport and hour"`
	Windy    float64 `usage:"miles an hour from which it is windy" default:"20"`
}

type flight struct {
	Carrier string    `col:"carrier"`
	Origin  string    `col:"origin"`
	Hour    time.Time `col:"time_hour"`
	Delay   *float64  `col:"dep_delay"` // of a flight that was cancelled there is none
}

type airline struct {
	Carrier string `col:"carrier"`
	Name    string `col:"name"`
}

type weather struct {
	Origin string    `col:"origin"`
	Hour   time.Time `col:"time_hour"`
	Wind   *float64  `col:"wind_speed"`
}

// place is an airport at an hour.
type place struct {
	Origin string
	Hour   int64 // seconds since 1970
}

// delays is a sum of delays in minutes, of a number of flights.
type delays struct {
	Minutes float64
	Flights int64
}

func (d delays) add(o delays) delays { return delays{d.Minutes + o.Minutes, d.Flights + o.Flights} }

type late = rdd.Pair[string, delays]

func build(g *rdd.Graph, a args) []rdd.Action[[]late] {
	flights := rdd.Filter(rdd.Parquet[flight](g, a.Flights),
		func(f flight) bool { return f.Delay != nil && *f.Delay == *f.Delay })
	airlines := rdd.KeyBy(rdd.CSV[airline](g, rdd.CSVOptions{}, a.Airlines),
		func(l airline) string { return l.Carrier })
	winds := rdd.Filter(rdd.CSV[weather](g, rdd.CSVOptions{Null: "NA"}, a.Weather),
		func(w weather) bool { return w.Wind != nil })

	carried := rdd.Join(rdd.KeyBy(flights, func(f flight) string { return f.Carrier }), airlines)
	byAirline := rdd.Map(carried, func(p rdd.Pair[string, rdd.Joined[flight, airline]]) late {
		return late{Key: p.Value.Right.Name, Value: delays{*p.Value.Left.Delay, 1}}
	})
	blown := rdd.Join(rdd.KeyBy(flights, func(f flight) place { return place{f.Origin, f.Hour.Unix()} }),
		rdd.KeyBy(winds, func(w weather) place { return place{w.Origin, w.Hour.Unix()} }))
	byWind := rdd.Map(blown, func(p rdd.Pair[place, rdd.Joined[flight, weather]]) late {
		word := "calm"
		if *p.Value.Right.Wind >= a.Windy {
			word = "windy"
		}
		return late{Key: word, Value: delays{*p.Value.Left.Delay, 1}}
	})
	return []rdd.Action[[]late]{latest(byAirline), latest(byWind)}
}

// latest returns the mean delays by key, the greatest first.
func latest(rows rdd.Dataset[late]) rdd.Action[[]late] {
	sums := rdd.ReduceByKey(rows, delays.add)
	return rdd.TakeOrdered(sums, 100, func(a, b late) int {
		return cmp.Compare(b.Value.Minutes/float64(b.Value.Flights), a.Value.Minutes/float64(a.Value.Flights))
	})
}

func run(ctx context.Context, s *rdd.Session, _ args, tables []rdd.Action[[]late]) error {
	for _, table := range tables {
		rows, err := table.Run(ctx, s)
		if err != nil {
			return err
		}
		for _, r := range rows {
			fmt.Printf("%7.2f minutes late of %6d flights: %s\n", r.Value.Minutes/float64(r.Value.Flights),
				r.Value.Flights, r.Key)
		}
	}
	return nil
}

func main() { volley.Main("joins", build, run) }
