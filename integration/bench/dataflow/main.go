// Command dataflow runs one of the dataflow jobs that other systems are compared
// on, and prints how long it took from files to result, and what the result is.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	volley "github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

type args struct {
	Job    string `usage:"wordcount, groupby, narrow, sort, join, window, secondary, semijoin or pagerank"`
	Data   string `usage:"directory of the inputs"`
	Output string `usage:"directory that a sort writes to"`
}

// job runs a job and says how many rows it took and what came out.
type job func(ctx context.Context, s *rdd.Session) (rows int64, check string, err error)

func build(g *rdd.Graph, a args) job {
	file := func(name string) string { return filepath.Join(a.Data, name) }
	switch a.Job {
	case "wordcount":
		return wordCount(rdd.TextFile(g, file("text.txt")))
	case "groupby":
		return groupBy(rdd.Parquet[kv](g, file("kv.parquet")))
	case "narrow":
		return narrow(rdd.Parquet[kv](g, file("kv.parquet")))
	case "sort":
		return sortLines(rdd.TextFile(g, file("sort.txt")), a.Output)
	case "join":
		return join(rdd.Parquet[kv](g, file("fact.parquet")), rdd.Parquet[named](g, file("dim.parquet")))
	case "window":
		return window(rdd.Parquet[kv](g, file("kv.parquet")))
	case "secondary":
		return secondary(rdd.Parquet[kv](g, file("kv.parquet")), a.Output)
	case "semijoin":
		return semiJoin(rdd.Parquet[kv](g, file("fact.parquet")), rdd.Parquet[named](g, file("dim.parquet")))
	}
	return func(context.Context, *rdd.Session) (int64, string, error) {
		return 0, "", fmt.Errorf("there is no job %q", a.Job)
	}
}

// kv is a row of kv.parquet and fact.parquet.
type kv struct {
	Key   int64   `col:"key"`
	Value float64 `col:"value"`
}

// named is a row of dim.parquet.
type named struct {
	Key  int64  `col:"key"`
	Name string `col:"name"`
}

// fold runs an aggregate and prints what it came to.
func fold[A any](total rdd.Action[A], show func(A) (int64, string)) job {
	return func(ctx context.Context, s *rdd.Session) (int64, string, error) {
		t, err := total.Run(ctx, s)
		if err != nil {
			return 0, "", err
		}
		rows, check := show(t)
		return rows, check, nil
	}
}

type words struct{ Distinct, Total, Chars, Most int64 }

func wordCount(lines rdd.Dataset[string]) job {
	ones := rdd.FlatMapAppend(lines, wordsOf)
	counts := rdd.ReduceByKey(ones, func(a, b int64) int64 { return a + b })
	total := rdd.Aggregated(counts, func() words { return words{} }, func(t words, p rdd.Pair[string, int64]) words {
		return words{t.Distinct + 1, t.Total + p.Value, t.Chars + p.Value*int64(len(p.Key)), max(t.Most, p.Value)}
	}, func(a, b words) words {
		return words{a.Distinct + b.Distinct, a.Total + b.Total, a.Chars + b.Chars, max(a.Most, b.Most)}
	})
	return fold(total, func(t words) (int64, string) {
		return t.Total,
			fmt.Sprint(t.Distinct, t.Total, t.Chars, t.Most)
	})
}

// wordsOf pairs the words of a line, between single blanks, with ones.
func wordsOf(out []rdd.Pair[string, int64], line string) []rdd.Pair[string, int64] {
	for word := range strings.SplitSeq(line, " ") {
		out = append(out, rdd.Pair[string, int64]{Key: word, Value: 1})
	}
	return out
}

type summed struct {
	Sum   float64
	Count int64
}

type sums struct {
	Groups, Rows int64
	Sum, Tied    float64
}

func addSums(a, b sums) sums {
	return sums{a.Groups + b.Groups, a.Rows + b.Rows, a.Sum + b.Sum, a.Tied + b.Tied}
}

func (t sums) show() (int64, string) {
	return t.Rows, fmt.Sprintf("%d %d %.6f %.6f", t.Groups, t.Rows, t.Sum, t.Tied)
}

func add(a, b summed) summed { return summed{a.Sum + b.Sum, a.Count + b.Count} }

func groupBy(rows rdd.Dataset[kv]) job {
	pairs := rdd.Map(rows, func(r kv) rdd.Pair[int64, summed] {
		return rdd.Pair[int64, summed]{Key: r.Key, Value: summed{r.Value, 1}}
	})
	total := rdd.Aggregated(rdd.ReduceByKey(pairs, add), func() sums { return sums{} },
		func(t sums, p rdd.Pair[int64, summed]) sums {
			return addSums(t, sums{1, p.Value.Count, p.Value.Sum, p.Value.Sum * float64(p.Key&63)})
		}, addSums)
	return fold(total, sums.show)
}

func narrow(rows rdd.Dataset[kv]) job {
	thirds := rdd.Filter(rows, func(r kv) bool { return r.Key%3 == 0 })
	values := rdd.Map(thirds, func(r kv) float64 { return r.Value*2 + 1 })
	total := rdd.Aggregated(values, func() summed { return summed{} }, func(t summed, v float64) summed {
		return summed{t.Sum + v, t.Count + 1}
	}, add)
	return fold(total, func(t summed) (int64, string) { return t.Count, fmt.Sprintf("%d %.6f", t.Count, t.Sum) })
}

func sortLines(lines rdd.Dataset[string], dir string) job {
	saved := rdd.SaveText(rdd.SortBy(lines, func(l string) string { return l }), dir)
	return fold(saved, func(n int64) (int64, string) { return n, "output" })
}

func join(fact rdd.Dataset[kv], dim rdd.Dataset[named]) job {
	facts := rdd.Map(fact, func(r kv) rdd.Pair[int64, float64] {
		return rdd.Pair[int64, float64]{Key: r.Key, Value: r.Value}
	})
	names := rdd.Map(dim, func(r named) rdd.Pair[int64, string] {
		return rdd.Pair[int64, string]{Key: r.Key, Value: r.Name}
	})
	letters := rdd.Map(rdd.Join(facts, names),
		func(p rdd.Pair[int64, rdd.Joined[float64, string]]) rdd.Pair[[2]byte, summed] {
			return rdd.Pair[[2]byte, summed]{Key: [2]byte{p.Value.Right[0], p.Value.Right[1]},
				Value: summed{p.Value.Left, 1}}
		})
	total := rdd.Aggregated(rdd.ReduceByKey(letters, add), func() sums { return sums{} },
		func(t sums, p rdd.Pair[[2]byte, summed]) sums {
			at := (int(p.Key[0])-'a')*26 + int(p.Key[1]) - 'a'
			return addSums(t, sums{1, p.Value.Count, p.Value.Sum, p.Value.Sum * float64(at%64)})
		}, addSums)
	return fold(total, sums.show)
}

func run(ctx context.Context, s *rdd.Session, _ args, j job) error {
	began := time.Now()
	rows, check, err := j(ctx, s)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(map[string]any{"work_s": time.Since(began).Seconds(), "rows": rows, "result_check": check,
		"peak_bytes": peak()})
	fmt.Printf("RESULT %s\n", raw)
	return err
}

// peak returns the most memory that this process has had.
func peak() (kb int64) {
	raw, _ := os.ReadFile("/proc/self/status")
	if _, rest, found := strings.Cut(string(raw), "VmHWM:"); found {
		_, _ = fmt.Sscan(rest, &kb)
	}
	return kb << 10
}

func main() { volley.Main("dataflow", build, run) }
