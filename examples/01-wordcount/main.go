// Command lines counts the lines of text files that contain a word, and shows
// the first ones. It is the smallest program: a plan, and a run that asks for
// two actions.
//
//	go run ./examples/01-lines -- --input README.md --word step
package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

type args struct {
	Input string `usage:"text files: a path, a glob or a directory"`
	Word  string `usage:"what to look for" default:"the"`
}

type actions struct {
	Count rdd.Action[int64]
	First rdd.Action[[]string]
}

// build declares the plan. It runs on the driver's side and on every executor,
// so it depends on its arguments only.
func build(g *rdd.Graph, a args) actions {
	found := rdd.Filter(rdd.TextFile(g, a.Input), func(line string) bool { return strings.Contains(line, a.Word) })
	return actions{Count: rdd.Count(found), First: rdd.Take(found, 3)}
}

func run(ctx context.Context, s *rdd.Session, a args, p actions) error {
	n, err := p.Count.Run(ctx, s)
	if err != nil {
		return err
	}
	fmt.Printf("%d lines contain %q\n", n, a.Word)
	first, err := p.First.Run(ctx, s)
	for _, line := range first {
		fmt.Println(" ", strings.TrimSpace(line))
	}
	return err
}

func main() { volley.Main("lines", build, run) }
