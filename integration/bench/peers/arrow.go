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
const arrowRounds = 11

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
	for _, b := range batches {
		saved, err := gbps(script, []string{"save", driver, b.name, "1", fmt.Sprint(b.rows)})
		if err != nil {
			return err
		}
		fmt.Printf("batches of %s saved with fsync, read again and committed: %.2f GB/s\n", b.size, saved)
	}
	files := filepath.Join(dir, "driver", "datasets", batches[0].name)
	for _, how := range []string{"kept", "dropped"} {
		if err := arrowBeside(script, driver, files, how); err != nil {
			return err
		}
	}
	return nil
}

// batches are the datasets: of record batches as docs/python.md advises, and of smaller ones.
var batches = []struct {
	name, size string
	rows       int
}{{"large", "4 MiB", 128 << 10}, {"small", "1 MiB", 32 << 10}}

// holdsItsMemory has glibc keep what gRPC frees after each message for the next one, as docs/python.md says.
const holdsItsMemory = "MALLOC_TRIM_THRESHOLD_=67108864"

// arrowBeside prints what pyarrow reads of each dataset as it comes and where glibc keeps its memory, each beside the
// plain copy.
func arrowBeside(script, driver, files, how string) error {
	type way struct {
		name      string
		args, env []string
	}
	ways := []way{
		{"plain copy over TCP", []string{"copy", files, how}, nil},
	}
	for _, b := range batches {
		flight := way{"pyarrow, batches of " + b.size, []string{"flight", driver, b.name, how}, nil}
		ways = append(ways, flight, way{flight.name + ", " + holdsItsMemory, flight.args, []string{holdsItsMemory}})
	}
	speeds := make([][]float64, len(ways))
	for range arrowRounds {
		for i, w := range ways {
			speed, err := gbps(script, w.args, w.env...)
			if err != nil {
				return err
			}
			speeds[i] = append(speeds[i], speed)
		}
	}
	for i, w := range ways {
		slices.Sort(speeds[i])
		speed, plain := speeds[i][arrowRounds/2], speeds[0][arrowRounds/2]
		fmt.Printf("1 GB, %s: %s %.2f GB/s: %.2f of a plain copy\n", how, w.name, speed, speed/plain)
	}
	return nil
}

// gbps runs a way, and returns its speed. Numpy, which pyarrow loads, starts no threads that spin beside it.
func gbps(script string, args []string, env ...string) (float64, error) {
	cmd := exec.Command("python3", append([]string{script}, args...)...)
	cmd.Env = append(append(os.Environ(), "OPENBLAS_NUM_THREADS=1"), env...)
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
