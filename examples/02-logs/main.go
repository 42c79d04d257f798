// Command logs looks through event logs of a code host, one JSON object a line:
// how often each kind of event is, who did most, and what share of the pushes
// had more than one commit. Lines that cannot be read are counted, not fatal.
//
//	go run ./examples/02-logs -- --input events.json.gz --output counts
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

type args struct {
	Input  string `usage:"files of one JSON object a line, compressed or not"`
	Output string `usage:"directory for the counts of each hour and kind; it must not exist"`
	Top    int    `usage:"actors to print" default:"5"`
}

// event is what is of interest in a line.
type event struct {
	Type    string
	Actor   struct{ Login string }
	Payload struct{ Size int }
	At      time.Time `json:"created_at"`
}

// kind is an hour and a type of event.
type kind struct {
	Hour time.Time
	Type string
}

type counted[K comparable] = rdd.Pair[K, int64]

type plan struct {
	Saved  rdd.Action[int64]
	Kinds  rdd.Action[[]counted[string]]
	Actors rdd.Action[[]counted[string]]
	Pushes rdd.Action[rdd.Summary]
	Bad    rdd.Counter
}

func build(g *rdd.Graph, a args) plan {
	bad := rdd.NewCounter()
	lines := rdd.Tally(rdd.TextFile(g, a.Input), bad, func(line string) int64 {
		if json.Valid([]byte(line)) {
			return 0
		}
		return 1
	})
	events := rdd.Cache(rdd.FlatMap(lines, parse))
	kinds := count(rdd.Map(events, func(e event) kind { return kind{e.At.Truncate(time.Hour), e.Type} }))
	pushes := rdd.Filter(events, func(e event) bool { return e.Type == "PushEvent" })
	return plan{
		Saved: rdd.SaveText(rdd.Map(kinds, func(c counted[kind]) string {
			return fmt.Sprintf("%s\t%s\t%d", c.Key.Hour.Format(time.RFC3339), c.Key.Type, c.Value)
		}), a.Output),
		Kinds:  most(count(rdd.Map(events, func(e event) string { return e.Type })), 1000),
		Actors: most(count(rdd.Map(events, func(e event) string { return e.Actor.Login })), a.Top),
		Pushes: rdd.Stats(rdd.Map(pushes, func(e event) int { return min(1, max(0, e.Payload.Size-1)) })),
		Bad:    bad,
	}
}

// parse returns the event of a line, if there is one.
func parse(line string) []event {
	var e event
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		return nil
	}
	return []event{e}
}

// count counts rows that are equal.
func count[K comparable](rows rdd.Dataset[K]) rdd.Dataset[counted[K]] {
	ones := rdd.Map(rows, func(k K) counted[K] { return counted[K]{Key: k, Value: 1} })
	return rdd.ReduceByKey(ones, func(a, b int64) int64 { return a + b })
}

// most returns the n most frequent.
func most(counts rdd.Dataset[counted[string]], n int) rdd.Action[[]counted[string]] {
	return rdd.TakeOrdered(counts, n, func(a, b counted[string]) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), strings.Compare(a.Key, b.Key))
	})
}

func run(ctx context.Context, s *rdd.Session, a args, p plan) error {
	if _, err := p.Saved.Run(ctx, s); err != nil {
		return err
	}
	for _, list := range []struct {
		what string
		rdd.Action[[]counted[string]]
	}{{"kinds", p.Kinds}, {"actors", p.Actors}} {
		rows, err := list.Run(ctx, s)
		if err != nil {
			return err
		}
		for _, r := range rows {
			fmt.Printf("%s %8d  %s\n", list.what, r.Value, r.Key)
		}
	}
	pushes, err := p.Pushes.Run(ctx, s)
	fmt.Printf("%.1f %% of %d pushes had more than one commit; %d lines could not be read\n", 100*pushes.Mean,
		pushes.Count, p.Bad.Value(s))
	return err
}

func main() { volley.Main("logs", build, run) }
