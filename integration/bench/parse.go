package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/internal/synth"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/rows"
	"github.com/volley-engine/volley/storage/pack"
)

// parsing: text formats, megabytes a second on one core.
func parsing(ctx context.Context, dir string, _ int64) error {
	table := filepath.Join(dir, "table.csv")
	if err := synth.Write(ctx, synth.Logistic{Rows: 100_000, Features: 50, Eps: 0.1}, "csv", table, 2); err != nil {
		return err
	}
	lines := filepath.Join(dir, "lines.libsvm")
	if err := writeSparse(lines, 100_000, 50); err != nil {
		return err
	}
	for _, c := range []struct {
		path  string
		limit float64
	}{{lines, 150}, {table, 100}} {
		src, err := input.Open(context.Background(), input.Options{}, c.path)
		if err != nil {
			return err
		}
		began := time.Now()
		for part := range src.Len() {
			if err := src.Read(ctx, part, func(*rows.Chunk) error { return nil }); err != nil {
				return err
			}
		}
		rate := float64(src.Files[0].Size) / 1e6 / time.Since(began).Seconds()
		fmt.Printf("%s parse: %.0f MB/s on one core, %.2f × the limit of %.0f\n", src.Format, rate, rate/c.limit,
			c.limit)
	}
	return nil
}

// writeSparse writes rows of nonzeros with columns of a skewed popularity and
// short values, as text features are.
func writeSparse(path string, rows, nonzeros int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	rng := rand.New(rand.NewPCG(1, 1))
	for range rows {
		line := strconv.AppendInt(nil, int64(rng.IntN(2)), 10)
		column := 0
		for range nonzeros {
			column += 1 + rng.IntN(3900)
			line = append(line, ' ')
			line = strconv.AppendInt(line, int64(column), 10)
			line = append(line, ':')
			line = strconv.AppendFloat(line, float64(rng.IntN(9999)+1)/1e4, 'g', -1, 64)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return w.Flush()
}

// sparse: the gradient of 50 nonzeros of 100k features a row, against the
// loop that one would write.
func sparse(context.Context, string, int64) error {
	const rows, nonzeros, features = 100_000, 50, 100_000
	rng := rand.New(rand.NewPCG(2, 2))
	m := kernel.Sparse[float64]{Offsets: []int32{0}}
	for range rows {
		column := int32(0)
		for range nonzeros {
			column += int32(1 + rng.IntN(2*features/nonzeros-2))
			m.Indices, m.Values = append(m.Indices, min(column, features-1)), append(m.Values, rng.Float64())
		}
		m.Offsets = append(m.Offsets, int32(len(m.Indices)))
	}
	w, sum := make([]float64, features), make([]float64, features)
	order, y := make([]int32, rows), make([]float64, rows)
	(&pack.Batch{Rows: rows}).Visit(order, 0)
	ours, plain := 1e9, 1e9
	for range 10 {
		began := time.Now()
		var acc kernel.Losses
		kernel.SparseGradient(&acc, kernel.Loss{}, sum, w, 0, m, order, y)
		ours = min(ours, time.Since(began).Seconds())
		began = time.Now()
		naive(m, w, sum, rows)
		plain = min(plain, time.Since(began).Seconds())
	}
	fmt.Printf("sparse gradient, %d nonzeros of %d features: %.0f m nonzeros/s, %.2f × a plain loop\n", nonzeros,
		features,
		rows*nonzeros/ours/1e6, plain/ours)
	return nil
}

func naive(m kernel.Sparse[float64], w, sum []float64, rows int) {
	for r := range rows {
		lo, hi := m.Offsets[r], m.Offsets[r+1]
		var z float64
		for k := lo; k < hi; k++ {
			z += w[m.Indices[k]] * m.Values[k]
		}
		c := kernel.Sigmoid(z)
		for k := lo; k < hi; k++ {
			sum[m.Indices[k]] += c * m.Values[k]
		}
	}
}
