package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/internal/synth"
	"github.com/volley-engine/volley/mllib"
)

// dense: a gradient pass over dense rows against reading the same packs. What
// memory delivers changes by the second on a shared machine, so ten steps take
// turns with five readings, and the ratio is that of the medians.
func dense(ctx context.Context, dir string, rows int64) error {
	const d = 100
	data := filepath.Join(dir, "dense.arrow")
	if err := synth.Write(ctx, synth.Logistic{Rows: rows, Features: d, Eps: 0.1}, "arrow", data, 2); err != nil {
		return err
	}
	at := func(single bool) string { return filepath.Join(dir, fmt.Sprintf("dense-%v", single)) }
	_, _, out, err := passes(ctx, at(false), data, 5, mllib.LinearConfig{}, nil, "--executors", "1", "--slots", "2")
	if err != nil {
		return err
	}
	bytes := float64(rows * d * 8)
	fmt.Printf("dense job of %.0f MB: load %.2f s, peak resident %.0f MB, %.2f of the limit of 1.3 × the packs + "+
		"100 MB\n",
		bytes/1e6, out.Load.Seconds(), float64(peak())/1e6, float64(peak())/(1.3*bytes+100e6))
	for _, single := range []bool{false, true} {
		if err := densePass(ctx, at(single), data, single); err != nil {
			return err
		}
	}
	return nil
}

func densePass(ctx context.Context, dir, data string, single bool) error {
	var packs []([]byte)
	var read []float64
	steps := 0
	between := func() {
		if packs == nil {
			packs = mapPacks(dir)
		}
		if steps++; steps%10 != 0 {
			return
		}
		for range 5 {
			began := time.Now()
			readPacks(packs)
			read = append(read, time.Since(began).Seconds())
		}
	}
	pass, _, _, err := passes(ctx, dir, data, 120, mllib.LinearConfig{Float32: single}, between, "--executors", "1",
		"--slots", "2")
	if err != nil {
		return err
	}
	var bytes float64
	for _, p := range packs {
		bytes += float64(len(p))
		_ = unix.Munmap(p)
	}
	name, limit := "float64", 0.8
	if single {
		name, limit = "float32", 0.6
	}
	bandwidth := quantile(read, 0.5)
	fmt.Printf("dense pass, %s: %.4f s; reading the same packs in four streams on two threads %.4f s (%.1f GB/s); "+
		"ratio %.2f (limit %.1f)\n",
		name, pass, bandwidth, bytes/bandwidth/1e9, bandwidth/pass, limit)
	return nil
}

// mapPacks maps the splits of the only pack under a data directory.
func mapPacks(dir string) (packs [][]byte) {
	files, _ := filepath.Glob(filepath.Join(dir, "cache", "packs", "*", "split-*"))
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil {
			if raw, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ,
				unix.MAP_SHARED|unix.MAP_POPULATE); err == nil {
				packs = append(packs, raw)
			}
		}
		f.Close()
	}
	return packs
}

// readPacks reads each pack's halves on two threads.
func readPacks(packs [][]byte) {
	done := make(chan float64, 2)
	for k := range 2 {
		go func() {
			var sum float64
			for _, raw := range packs {
				x := unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(raw))), len(raw)/8)
				sum += kernel.ReadStreams(x[k*len(x)/2 : (k+1)*len(x)/2])
			}
			done <- sum
		}()
	}
	_, _ = <-done, <-done
}
