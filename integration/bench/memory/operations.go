package main

import (
	"bufio"
	"context"
	"fmt"

	"github.com/volley-engine/volley/rdd"
)

// operations returns all that are measured.
func operations() []operation {
	var all []operation
	for _, some := range [][]operation{readers(), narrows(), shuffles(), joins(), saves(), packs(), refusals()} {
		all = append(all, some...)
	}
	return all
}

func readers() []operation {
	return []operation{
		{name: "read text", prepare: written("in.txt", 100,
			func(w *bufio.Writer, i int64) { fmt.Fprintln(w, textOf(i, 99)) }),
			build: func(g *rdd.Graph, in input) job { return counted(rdd.TextFile(g, in.path("in.txt"))) }},
		{name: "read csv", prepare: written("in.csv", 100, csvLine(textOf)), build: readCSV},
		{name: "read csv quoted", prepare: written("in.csv", 100, csvLine(quoted)), build: readCSV},
		{name: "read libsvm", prepare: written("in.libsvm", 130, libsvmLine),
			build: func(g *rdd.Graph, in input) job { return counted(rdd.LIBSVM(g, in.path("in.libsvm"))) }},
		{name: "read parquet", prepare: saved(func(g *rdd.Graph,
			in input) rdd.Action[int64] {
			return rdd.SaveParquet(records(g, in), in.path("in"))
		}),
			build: func(g *rdd.Graph, in input) job { return counted(rdd.Parquet[Record](g, in.path("in"))) }},
		{name: "read parquet wide", prepare: saved(func(g *rdd.Graph,
			in input) rdd.Action[int64] {
			return rdd.SaveParquet(wides(g, in), in.path("in"))
		}),
			build: func(g *rdd.Graph, in input) job { return counted(rdd.Parquet[Wide](g, in.path("in"))) }},
		{name: "read parquet lists", prepare: saved(savedLists),
			build: func(g *rdd.Graph, in input) job { return counted(rdd.Parquet[Listed](g, in.path("in"))) }},
		{name: "read parquet points", prepare: saved(savedLists),
			build: func(g *rdd.Graph, in input) job { return counted(rdd.Points(g, rdd.Input{}, in.path("in"))) }},
		{name: "read parquet large groups", prepare: largeGroups, build: func(g *rdd.Graph, in input) job {
			return counted(rdd.Parquet[Record](g, in.path("in.parquet")))
		}},
		{name: "read arrow", prepare: saved(func(g *rdd.Graph,
			in input) rdd.Action[int64] {
			return rdd.SaveArrow(records(g, in), in.path("in"))
		}),
			build: func(g *rdd.Graph, in input) job { return counted(rdd.Arrow[Record](g, in.path("in"))) }},
	}
}

func readCSV(g *rdd.Graph, in input) job {
	return counted(rdd.CSV[Record](g, rdd.CSVOptions{}, in.path("in.csv")))
}

// csvLine writes a record; the first one after the names of the columns.
func csvLine(text func(i int64, n int) string) func(w *bufio.Writer, i int64) {
	return func(w *bufio.Writer, i int64) {
		if i == 0 {
			fmt.Fprintln(w, "Key,Value,Text")
		}
		fmt.Fprintf(w, "%d,%d,%s\n", i, i, text(i, 84))
	}
}

func quoted(i int64, n int) string {
	return `"` + textOf(i, n/2) + "\n, \"\"" + textOf(i+1, n/2-8) + `"`
}

func libsvmLine(w *bufio.Writer, i int64) {
	fmt.Fprint(w, i&1)
	for k := range int64(10) {
		fmt.Fprintf(w, " %d:%.4f", 1+k*100+i%97, float64(i%1000)/7)
	}
	fmt.Fprintln(w)
}

func wides(g *rdd.Graph, in input) rdd.Dataset[Wide] { return made(g, in.rows(wideBytes), wideOf) }

func lists(g *rdd.Graph, in input) rdd.Dataset[Listed] { return made(g, in.rows(listedSize), listedOf) }

func savedLists(g *rdd.Graph, in input) rdd.Action[int64] {
	return rdd.SaveParquet(lists(g, in), in.path("in"))
}

func narrows() []operation {
	return []operation{
		{name: "map filter", build: func(g *rdd.Graph, in input) job {
			return counted(rdd.Filter(rdd.Map(records(g, in), func(r Record) Record { r.Value++; return r }),
				func(r Record) bool { return r.Key&1 == 0 }))
		}},
		{name: "map filter wide", build: func(g *rdd.Graph, in input) job {
			return counted(rdd.Filter(wides(g, in), func(r Wide) bool { return r.Key&1 == 0 }))
		}},
		{name: "cache", build: func(g *rdd.Graph, in input) job { return cached(records(g, in)) }},
		{name: "cache wide", build: func(g *rdd.Graph, in input) job { return cached(wides(g, in)) }},
		{name: "repartition", build: func(g *rdd.Graph,
			in input) job {
			return counted(rdd.Repartition(records(g, in), 24))
		}},
	}
}

// cached counts rows twice that are kept.
func cached[T any](ds rdd.Dataset[T]) job {
	kept := rdd.Cache(ds)
	first, second := rdd.Count(kept), rdd.Count(kept)
	return func(ctx context.Context, s *rdd.Session) (int64, error) {
		if _, err := first.Run(ctx, s); err != nil {
			return 0, err
		}
		return second.Run(ctx, s)
	}
}

func shuffles() []operation {
	return []operation{
		{name: "sort", build: func(g *rdd.Graph, in input) job {
			return counted(rdd.SortBy(records(g, in), func(r Record) int64 { return r.Key }))
		}},
		{name: "sort text", build: func(g *rdd.Graph, in input) job {
			return counted(rdd.SortBy(records(g, in), func(r Record) string { return r.Text }))
		}},
		{name: "sort wide", build: func(g *rdd.Graph, in input) job {
			return counted(rdd.SortBy(wides(g, in), func(r Wide) int64 { return -r.Key }))
		}},
		{name: "sort by long keys", build: func(g *rdd.Graph, in input) job {
			return counted(rdd.SortBy(wides(g, in), func(r Wide) string { return r.Text }))
		}},
		{name: "group by key", build: func(g *rdd.Graph, in input) job {
			n := in.rows(recordBytes)
			return counted(rdd.GroupByKey(pairs(g, n, n/10)))
		}},
		{name: "group by few keys", build: func(g *rdd.Graph, in input) job {
			return counted(rdd.GroupByKey(pairs(g, in.rows(recordBytes), in.Bytes/1e6)))
		}},
		{name: "reduce by key", build: func(g *rdd.Graph, in input) job {
			return counted(rdd.ReduceByKey(pairs(g, in.rows(recordBytes), 0),
				func(a, b string) string { return max(a, b) }))
		}},
		{name: "distinct", build: func(g *rdd.Graph, in input) job { return counted(rdd.Distinct(records(g, in))) }},
	}
}

func joins() []operation {
	half := func(in input) int64 { return in.rows(2 * recordBytes) }
	return []operation{
		{name: "join", build: func(g *rdd.Graph, in input) job {
			return counted(rdd.Join(pairs(g, half(in), half(in)), pairs(g, half(in), half(in))))
		}},
		{name: "join of times", build: func(g *rdd.Graph, in input) job {
			n := in.rows(80)
			return counted(rdd.Join(timed(g, n), timed(g, n)))
		}},
		{name: "broadcast join of times", build: func(g *rdd.Graph, in input) job {
			return counted(rdd.BroadcastJoin(timed(g, in.rows(40)), timed(g, in.rows(400))))
		}},
		{name: "left join", build: func(g *rdd.Graph, in input) job {
			return counted(rdd.LeftJoin(pairs(g, half(in), half(in)), pairs(g, half(in), half(in))))
		}},
		{name: "join in place", build: func(g *rdd.Graph, in input) job {
			sum := func(a, b string) string { return max(a, b) }
			l, r := pairs(g, half(in), half(in)), pairs(g, half(in), half(in))
			return counted(rdd.Join(rdd.ReduceByKey(l, sum, rdd.Partitions(64)),
				rdd.ReduceByKey(r, sum, rdd.Partitions(64))))
		}},
		{name: "join in place few", build: func(g *rdd.Graph, in input) job {
			sum := func(a, b string) string { return max(a, b) }
			l, r := pairs(g, half(in), half(in)), pairs(g, half(in), half(in))
			return counted(rdd.Join(rdd.ReduceByKey(l, sum, rdd.Partitions(4)),
				rdd.ReduceByKey(r, sum, rdd.Partitions(4))))
		}},
		{name: "join of one key", build: func(g *rdd.Graph, in input) job {
			return counted(rdd.Join(pairs(g, squareOf(in), 1), pairs(g, squareOf(in), 1)))
		}},
		{name: "full join of one key", build: func(g *rdd.Graph, in input) job {
			return counted(rdd.FullJoin(pairs(g, squareOf(in), 1), pairs(g, squareOf(in), 1)))
		}},
		{name: "full join", build: func(g *rdd.Graph, in input) job {
			return counted(rdd.FullJoin(pairs(g, half(in), half(in)), pairs(g, half(in), half(in))))
		}},
		{name: "cogroup", build: func(g *rdd.Graph, in input) job {
			return counted(rdd.CoGroup(pairs(g, half(in), half(in)/10), pairs(g, half(in), half(in)/10)))
		}},
		{name: "subtract by key", build: func(g *rdd.Graph, in input) job {
			return counted(rdd.SubtractByKey(pairs(g, half(in), 0), pairs(g, half(in)/2, 0)))
		}},
	}
}

// squareOf returns the number of rows whose pairs take about a number of bytes.
func squareOf(in input) (n int64) {
	for n*n*32 < in.Bytes {
		n += 16
	}
	return n
}

func saves() []operation {
	out := func(in input) string { return in.path("out") }
	return []operation{
		{name: "save text", build: func(g *rdd.Graph,
			in input) job {
			return rdd.SaveText(records(g, in), out(in)).Run
		}},
		{name: "save csv", build: func(g *rdd.Graph, in input) job { return rdd.SaveCSV(records(g, in), out(in)).Run }},
		{name: "save parquet", build: func(g *rdd.Graph,
			in input) job {
			return rdd.SaveParquet(records(g, in), out(in)).Run
		}},
		{name: "save arrow", build: func(g *rdd.Graph,
			in input) job {
			return rdd.SaveArrow(records(g, in), out(in)).Run
		}},
		{name: "save csv wide", build: func(g *rdd.Graph,
			in input) job {
			return rdd.SaveCSV(wides(g, in), out(in)).Run
		}},
		{name: "save parquet wide", build: func(g *rdd.Graph,
			in input) job {
			return rdd.SaveParquet(wides(g, in), out(in)).Run
		}},
		{name: "save arrow wide", build: func(g *rdd.Graph,
			in input) job {
			return rdd.SaveArrow(wides(g, in), out(in)).Run
		}},
		{name: "save parquet lists", build: func(g *rdd.Graph,
			in input) job {
			return rdd.SaveParquet(lists(g, in), out(in)).Run
		}},
	}
}

func packs() []operation {
	return []operation{
		{name: "pack", build: func(g *rdd.Graph, in input) job {
			return folded(rdd.Pack(rdd.Map(lists(g, in),
				func(l Listed) rdd.Point { return rdd.Point{Label: l.Label, Values: l.Values} })))
		}},
		{name: "pack shuffled", build: func(g *rdd.Graph, in input) job {
			return folded(rdd.Pack(rdd.Map(lists(g, in),
				func(l Listed) rdd.Point { return rdd.Point{Label: l.Label, Values: l.Values} }), rdd.RandomAssign(),
				rdd.Seed(1)))
		}},
		{name: "pack parquet points", prepare: saved(savedLists), build: func(g *rdd.Graph, in input) job {
			return folded(rdd.Pack(rdd.Points(g, rdd.Input{}, in.path("in"))))
		}},
		{name: "pack libsvm", prepare: written("in.libsvm", 130, libsvmLine), build: func(g *rdd.Graph, in input) job {
			return folded(rdd.Pack(rdd.LIBSVM(g, in.path("in.libsvm"))))
		}},
		{name: "pack wide", build: func(g *rdd.Graph, in input) job { return folded(rdd.Pack(wides(g, in))) }},
		{name: "pack rows", build: func(g *rdd.Graph, in input) job { return folded(rdd.Pack(records(g, in))) }},
	}
}

// folded counts a pack's rows by a step.
func folded[T any](p rdd.Packed[T]) job {
	step := rdd.Aggregate(p, rdd.Aggregator[struct{}, T, int64]{
		Zero: func(struct{}) int64 { return 0 }, Add: func(n int64, _ struct{}, _ T) int64 { return n + 1 },
		Merge: func(a, b int64) int64 { return a + b }, Scale: func(n int64, _ float64) int64 { return n }})
	return func(ctx context.Context, s *rdd.Session) (int64, error) { return step.Run(ctx, s, struct{}{}) }
}

// refusals returns what does not fit, and must say so.
func refusals() []operation {
	const most = "raise --memory"
	return []operation{
		{name: "group by one key", refused: most, build: func(g *rdd.Graph, in input) job {
			return counted(rdd.GroupByKey(pairs(g, in.rows(recordBytes), 1)))
		}},
		{name: "full join of one long key", refused: most, build: func(g *rdd.Graph, in input) job {
			return counted(rdd.FullJoin(pairs(g, in.rows(recordBytes), 1), pairs(g, 2, 1)))
		}},
		{name: "cogroup of one key", refused: most, build: func(g *rdd.Graph, in input) job {
			return counted(rdd.CoGroup(pairs(g, in.rows(2*recordBytes), 1), pairs(g, in.rows(2*recordBytes), 1)))
		}},
	}
}
