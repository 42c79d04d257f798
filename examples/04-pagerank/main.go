// Command pagerank ranks the pages of a web graph: a loop whose rows, the ranks,
// are replaced round by round by what a plan that was built once makes of them.
// Links and ranks are spread over partitions alike, so that joining them moves
// nothing; what moves are the shares of rank that pages give each other.
//
//	go run ./examples/04-pagerank -- --input graph.txt --rounds 20
package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

type args struct {
	Input      string  `usage:"edges: a line has the numbers of two pages, the first of which links to the second"`
	Rounds     int     `usage:"rounds to run at the most" default:"20"`
	Tolerance  float64 `usage:"end when all ranks together have changed by less; 0 runs all rounds" default:"0"`
	Partitions int     `usage:"partitions of links and ranks" default:"4"`
	Top        int     `usage:"pages to print" default:"10"`
}

const damping = 0.85

// none is the target of a link that says only that a page is there.
const none = -1

type (
	link   = rdd.Pair[int64, int32]
	part   = rdd.Pair[int64, float64] // of the rank that a page gets
	ranked = rdd.Pair[int64, rank]
)

// rank is what is known of a page: its rank, how much it has changed, and
// whether the page links anywhere.
type rank struct {
	Rank, Change, Links float64
}

// totals are sums over all pages.
type totals struct{ Pages, Sum, Dangling, Change float64 }

type plan struct {
	Even, Base rdd.Param[float64] // the first rank, and what every page gets besides
	Pages      rdd.Action[int64]
	Ranks      *rdd.Loop[ranked]
	Totals     rdd.Action[totals]
	Top        rdd.Action[[]ranked]
}

func build(g *rdd.Graph, a args) plan {
	spread := rdd.Partitions(a.Partitions)
	edges := rdd.FlatMapAppend(rdd.MapErr(rdd.TextFile(g, a.Input), parse), func(out []link, e link) []link {
		if e.Value == none {
			return out
		}
		return append(out, e, link{Key: int64(e.Value), Value: none})
	})
	lists := rdd.AggregateByKey(edges, func() []int32 { return nil }, addTarget,
		func(a, b []int32) []int32 { return append(a, b...) }, spread)
	pages := rdd.Cache(rdd.MapValues(lists, once))
	p := plan{Even: rdd.NewParam[float64](g, "the first rank"), Base: rdd.NewParam[float64](g, "what every page gets"),
		Pages: rdd.Count(pages)}
	first := rdd.MapValuesWith(pages, p.Even,
		func(to []int32, even float64) rank { return rank{Rank: even, Links: float64(len(to))} })
	p.Ranks = rdd.NewLoop(first, func(now rdd.Dataset[ranked]) rdd.Dataset[ranked] {
		shares := rdd.FlatMapAppend(rdd.Join(pages, now), share)
		sums := rdd.ReduceByKey(shares, func(a, b float64) float64 { return a + b }, spread)
		return rdd.MapValuesWith(rdd.LeftJoin(now, sums), p.Base,
			func(j rdd.Joined[rank, *float64], base float64) rank {
				next := base
				if j.Right != nil {
					next += damping * *j.Right
				}
				return rank{next, math.Abs(next - j.Left.Rank), j.Left.Links}
			})
	})
	p.Totals = rdd.Aggregated(p.Ranks.Now(), func() totals { return totals{} }, func(t totals, r ranked) totals {
		t.Pages, t.Sum, t.Change = t.Pages+1, t.Sum+r.Value.Rank, t.Change+r.Value.Change
		if r.Value.Links == 0 {
			t.Dangling += r.Value.Rank
		}
		return t
	}, func(a, b totals) totals {
		return totals{a.Pages + b.Pages, a.Sum + b.Sum, a.Dangling + b.Dangling, a.Change + b.Change}
	})
	p.Top = rdd.TakeOrdered(p.Ranks.Now(), a.Top,
		func(a, b ranked) int { return cmp.Compare(b.Value.Rank, a.Value.Rank) })
	return p
}

// parse reads an edge; a line that begins with # or has nothing is none.
func parse(line string) (link, error) {
	if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
		return link{Value: none}, nil
	}
	at := strings.IndexAny(line, " \t")
	if at < 0 {
		return link{}, fmt.Errorf("%q is not two numbers", line)
	}
	from, err := strconv.ParseInt(line[:at], 10, 32)
	if err != nil {
		return link{}, err
	}
	to, err := strconv.ParseInt(strings.TrimSpace(line[at:]), 10, 32)
	if err == nil && min(from, to) < 0 {
		err = fmt.Errorf("%q has a number below 0", line)
	}
	return link{Key: from, Value: int32(to)}, err
}

// addTarget adds a page to those that a page links to.
func addTarget(to []int32, page int32) []int32 {
	if page == none {
		return to
	}
	return append(to, page)
}

// once returns the pages that a page links to, each once.
func once(all []int32) []int32 {
	to := slices.Clone(all) // what a dataset has is not to be changed
	slices.Sort(to)
	return slices.Compact(to)
}

// share gives every page that a page links to its share of the page's rank.
func share(out []part, p rdd.Pair[int64, rdd.Joined[[]int32, rank]]) []part {
	each := p.Value.Right.Rank / p.Value.Right.Links
	for _, to := range p.Value.Left {
		out = append(out, part{Key: int64(to), Value: each})
	}
	return out
}

func run(ctx context.Context, s *rdd.Session, a args, p plan) error {
	pages, err := p.Pages.Run(ctx, s)
	if err != nil {
		return err
	}
	if err := p.Even.Set(s, 1/float64(pages)); err != nil {
		return err
	}
	for round := 0; ; round++ {
		t, err := p.Totals.Run(ctx, s)
		if err != nil {
			return err
		}
		if round == a.Rounds || round > 0 && t.Change < a.Tolerance {
			fmt.Printf("%d pages after %d rounds: ranks sum to %.9f, the last round changed %.3g\n", pages, round,
				t.Sum, t.Change)
			break
		}
		// A page without links gives its rank to all pages alike.
		if err := p.Base.Set(s, (1-damping+damping*t.Dangling)/t.Pages); err != nil {
			return err
		}
		if err := p.Ranks.Step(ctx, s); err != nil {
			return err
		}
	}
	top, err := p.Top.Run(ctx, s)
	for _, r := range top {
		fmt.Printf("%8d  %.9f\n", r.Key, r.Value.Rank)
	}
	return err
}

func main() { volley.Main("pagerank", build, run) }
