// Command program has each of two workers add to all rows of a table that have the same remainder by two, in each
// clock: those that the other worker's process has, if --side says it right. With copy it copies as many bytes over
// plain TCP, both ways.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

type args struct {
	Rows    int `usage:"rows of the table" default:"4096"`
	Columns int `usage:"columns of the table" default:"1024"`
	Clocks  int `usage:"how often each worker adds to its rows" default:"16"`
	Side    int `usage:"remainder of the first worker's rows, 0 or 1" default:"1"`
}

type plan struct {
	wide *tables.Table[float64]
	work tables.Work[int, int64, struct{}]
}

func build(g *rdd.Graph, a args) plan {
	p := plan{wide: tables.New[float64](g, "wide", tables.Dense(a.Rows, a.Columns), tables.SSP(2))}
	p.work = tables.Worker(rdd.Pack(rdd.Range(g, 0, 64, 2), rdd.Splits(2)),
		func(c *tables.Clock[int, int64, struct{}]) error {
			wide, by := p.wide.In(c), make([]float64, a.Columns)
			for i := range by {
				by[i] = float64(i + c.Number())
			}
			for row := (c.Worker() + a.Side) % 2; row < a.Rows; row += 2 {
				wide.IncRow(row, by)
			}
			return nil
		}, p.wide)
	return p
}

func run(ctx context.Context, s *rdd.Session, a args, p plan) error {
	for tick, err := range p.work.Clocks(ctx, s, 0, a.Clocks, a.Clocks) {
		if err != nil {
			return err
		}
		want := float64(a.Clocks*(a.Clocks-1)/2) + float64(a.Clocks)
		if got := p.wide.At(tick, a.Rows-1).At(1); got != want {
			return fmt.Errorf("a cell is %v, want %v", got, want)
		}
		fmt.Println("took", tick.Took.Seconds())
	}
	return nil
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == "copy" {
		if err := swap(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	volley.Main("push", build, run)
}

// swap copies as many bytes as an address's other side does, both ways at once: an address that begins with a colon is
// listened at.
func swap(address, bytes string) error {
	n, err := strconv.ParseInt(bytes, 10, 64)
	if err != nil {
		return err
	}
	conn, err := connected(address)
	if err != nil {
		return err
	}
	defer conn.Close()
	began, sent := time.Now(), make(chan error, 1)
	go func() {
		piece := make([]byte, 1<<20)
		for left := n; left > 0; left -= int64(len(piece)) {
			if _, err := conn.Write(piece[:min(left, int64(len(piece)))]); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	got, err := io.Copy(io.Discard, io.LimitReader(conn, n))
	if err = errors.Join(err, <-sent); err != nil || got != n {
		return fmt.Errorf("%d bytes of %d: %w", got, n, err)
	}
	fmt.Println("took", time.Since(began).Seconds())
	return nil
}

func connected(address string) (net.Conn, error) {
	if address[0] != ':' {
		return net.DialTimeout("tcp", address, 10*time.Second)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	fmt.Println("listening")
	return l.Accept()
}
