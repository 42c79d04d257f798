package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/volley-engine/volley/integration/lab"
)

// arrowRounds is how often each way is measured, in turns.
const arrowRounds = 5

// arrowPeers measures what pyarrow reads of a saved dataset of 1 GB beside a plain copy over TCP of its files: where
// the reader keeps what it has, as a table, and where it drops it.
func arrowPeers(scripts string) error {
	dir, err := os.MkdirTemp("", "volley-arrow-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := lab.Build(dir)
	if err != nil {
		return err
	}
	c := lab.New(program, dir)
	defer c.Close()
	if err := c.StartDriver(); err != nil {
		return err
	}
	script := filepath.Join(scripts, "arrow.py")
	driver := "grpc+unix://" + strings.TrimPrefix(c.Addr, "unix:")
	saved, err := gbps(script, "save", driver, "1")
	if err != nil {
		return err
	}
	fmt.Printf("saved with fsync, read again and committed: %.2f GB/s\n", saved)
	files := filepath.Join(dir, "driver", "datasets", "bench")
	for _, how := range []string{"kept", "dropped"} {
		var flight, plain []float64
		for range arrowRounds {
			f, err := gbps(script, "flight", driver, how)
			if err != nil {
				return err
			}
			p, err := gbps(script, "copy", files, how)
			if err != nil {
				return err
			}
			flight, plain = append(flight, f), append(plain, p)
		}
		slices.Sort(flight)
		slices.Sort(plain)
		f, p := flight[arrowRounds/2], plain[arrowRounds/2]
		fmt.Printf("1 GB, %s: pyarrow %.2f GB/s, plain copy over TCP %.2f GB/s: %.2f of it\n", how, f, p, f/p)
	}
	return nil
}

// gbps runs a way, and returns its speed.
func gbps(script string, args ...string) (float64, error) {
	cmd := exec.Command("python3", append([]string{script}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("arrow.py %s: %w (it needs pyarrow and numpy)", args[0], err)
	}
	var seconds, bytes float64
	if _, err := fmt.Sscan(string(out), &seconds, &bytes); err != nil {
		return 0, err
	}
	return bytes / seconds / 1e9, nil
}
