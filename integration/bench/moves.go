package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/internal/synth"
	"github.com/volley-engine/volley/internal/wire"
)

// moves: all splits of a pack go from one executor process to another, against
// a plain copy of the same files over TCP. Steps go on meanwhile, slowed down
// to next to nothing, so that both have the machine for themselves.
func moves(ctx context.Context, dir string, rows int64) error {
	data := filepath.Join(dir, "moved.arrow")
	if err := synth.Write(ctx, synth.Logistic{Rows: rows, Features: 100, Eps: 0.1}, "arrow", data, 3); err != nil {
		return err
	}
	defer os.Remove(data)
	program, err := lab.Build(dir)
	if err != nil {
		return err
	}
	c, err := lab.Start(program, filepath.Join(dir, "moves"), "--suspicion", "300ms")
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Join("a", "a", "--pace", "rate:1000000"); err != nil {
		return err
	}
	if _, err := c.Detach("--data", data, "--splits", "8", "--max-iterations", "100000"); err != nil {
		return err
	}
	client, done, err := c.Client()
	if err != nil {
		return err
	}
	defer done()
	if err := awaitSplits(ctx, client, "a", 8); err != nil {
		return err
	}
	// The newcomer gets half; the rest when the first is drained.
	if err := c.Join("b", "b", "--pace", "rate:1000000"); err != nil {
		return err
	}
	if err := awaitSplits(ctx, client, "b", 4); err != nil {
		return err
	}
	bytes, err := packBytes(filepath.Join(dir, "moves", "a", "packs"))
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := client.Drain(ctx, &wire.DrainRequest{Name: "a"}); err != nil {
		return err
	}
	if err := awaitSplits(ctx, client, "b", 8); err != nil {
		return err
	}
	ours := bytes / 2 / time.Since(began).Seconds()
	plain, err := plainCopy(filepath.Join(dir, "moves", "a", "packs"), filepath.Join(dir, "copy"))
	if err != nil {
		return err
	}
	fmt.Printf("moving a pack: %.0f MB/s, %.2f of a plain TCP copy's %.0f (limit 0.6)\n", ours/1e6, ours/plain,
		plain/1e6)
	return nil
}

// awaitSplits waits until an executor says that it holds n splits.
func awaitSplits(ctx context.Context, client wire.ClusterClient, name string, n uint64) error {
	return lab.Await(fmt.Sprintf("the %dth split of %s", n, name), func() (bool, error) {
		reply, err := client.Executors(ctx, &wire.ExecutorsRequest{})
		if err != nil {
			return false, err
		}
		for _, e := range reply.Executors {
			if e.Name == name && e.Splits >= n {
				return true, nil
			}
		}
		return false, nil
	})
}

func splitFiles(packs string) []string {
	files, _ := filepath.Glob(filepath.Join(packs, "*", "split-*"))
	return files
}

func packBytes(packs string) (total float64, err error) {
	for _, f := range splitFiles(packs) {
		info, err := os.Stat(f)
		if err != nil {
			return 0, err
		}
		total += float64(info.Size())
	}
	return total, nil
}

// plainCopy sends half of the files over TCP into other files, and returns
// bytes a second.
func plainCopy(packs, to string) (float64, error) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return 0, err
	}
	defer os.RemoveAll(to)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	files := splitFiles(packs)
	files = files[:len(files)/2]
	var total int64
	began := time.Now()
	for i, f := range files {
		sent := make(chan error, 1)
		go func() { sent <- sendFile(l, f) }()
		n, err := receiveFile(l.Addr().String(), filepath.Join(to, fmt.Sprint(i)))
		if err != nil {
			return 0, err
		}
		if err := <-sent; err != nil {
			return 0, err
		}
		total += n
	}
	return float64(total) / time.Since(began).Seconds(), nil
}

func sendFile(l net.Listener, path string) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(conn, f)
	return err
}

func receiveFile(addr, path string) (int64, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return io.Copy(f, conn)
}
