// Command wordcount counts how often each word, between white space, is in text
// files, saves the counts and shows the most frequent words. It is the smallest
// program that moves rows: those of one word come together in one place.
//
//	go run ./examples/01-wordcount --executors 3 -- --input README.md --output counts
package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

type args struct {
	Input  string `usage:"text files: a path, a glob or a directory"`
	Output string `usage:"directory for the counts; it must not exist"`
}

type count = rdd.Pair[string, int64]

type actions struct {
	Save rdd.Action[int64]
	Top  rdd.Action[[]count]
}

// build declares the plan. It runs on the driver's side and on every executor,
// so it depends on its arguments only.
func build(g *rdd.Graph, a args) actions {
	words := rdd.FlatMap(rdd.TextFile(g, a.Input), strings.Fields)
	ones := rdd.Map(words, func(word string) count { return count{Key: word, Value: 1} })
	counts := rdd.ReduceByKey(ones, func(a, b int64) int64 { return a + b })
	return actions{
		Save: rdd.SaveText(counts, a.Output),
		Top: rdd.TakeOrdered(counts, 10, func(a, b count) int {
			return cmp.Or(cmp.Compare(b.Value, a.Value), strings.Compare(a.Key, b.Key))
		}),
	}
}

func run(ctx context.Context, s *rdd.Session, a args, p actions) error {
	words, err := p.Save.Run(ctx, s)
	if err != nil {
		return err
	}
	fmt.Printf("%d different words in %s\n", words, a.Output)
	top, err := p.Top.Run(ctx, s)
	for _, c := range top {
		fmt.Printf("%8d  %s\n", c.Value, c.Key)
	}
	return err
}

func main() { volley.Main("wordcount", build, run) }
