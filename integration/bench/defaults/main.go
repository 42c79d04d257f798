// Package main trains the bundled jobs with their defaults alone on real data sets,
// and holds the metrics of their test rows against those of other libraries'
// defaults, which peers.py has measured on the same files (peers.json).
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/integration/reference"
)

func main() {
	data := flag.String("data", "../shared/data", "directory of the data sets")
	only := flag.String("only", "", "lines whose data set and job contain this")
	volley := flag.String("volley", "", "our program (default: it is built)")
	write := flag.String("write", "", "only write the files that all systems read, and their list, there")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := error(nil)
	if *write != "" {
		err = writeSets(*data, *write)
	} else {
		err = run(ctx, *data, *volley, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run writes temporary files, and prints the table.
func run(ctx context.Context, data, volley, only string) error {
	tmp, err := os.MkdirTemp("", "volley-defaults-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if volley == "" {
		if volley, err = lab.Build(tmp); err != nil {
			return err
		}
	}
	sets, err := reference.Sets(data, tmp)
	if err != nil {
		return err
	}
	t := &table{program: volley, only: only, home: tmp}
	if t.peers, err = readPeers(); err != nil {
		return err
	}
	return t.print(ctx, sets)
}
