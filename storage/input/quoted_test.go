package input_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/seeds"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/csv"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/input/rows"
	"github.com/volley-engine/volley/storage/pack"
)

// smallParts makes parts of a source's files of some bytes, cut as if no newline were
// within quotes.
func smallParts(t *testing.T, src *input.Source, size int64) {
	t.Helper()
	skip := src.Parts[0].Skip
	parts, err := files.Ranges(src.Files, size)
	if err != nil {
		t.Fatal(err)
	}
	for i := range parts {
		parts[i].Skip = skip
	}
	src.Parts = parts
}

// spoken are texts that look like rows once they are begun in the middle.
var spoken = []string{"plain", "a, b", "1,2,x", "7,8,9\n", "\n", "\n1,2,3\n", "\n3,4,y\n5,6,z\n", "\"\"",
	"\"\"\n1,1,1\n", "\nspam,5,t\n", "x\nham,-1e300,\"\"q\"\"\n",
	"\n4,5,", "\n-1,2,\"\"u\"\"", " \n\n", "\n,,\n"}

// spokenTable has a label, a number and a text with newlines.
func spokenTable(rng *rand.Rand, rows int, label func() string) string {
	var b strings.Builder
	for range rows {
		fmt.Fprintf(&b, "%s,%d,\"", label(), rng.IntN(1000))
		for range rng.IntN(6) {
			b.WriteString(spoken[rng.IntN(len(spoken))])
		}
		b.WriteString("\"\n")
	}
	return b.String()
}

// pointsOf packs a table with small parts, cut as if no newline were within quotes.
func pointsOf(t *testing.T, path string, o input.Options, size int64) (points []string, meta *pack.Meta, err error) {
	t.Helper()
	src, err := input.Open(context.Background(), o, path)
	if err != nil {
		t.Fatal(err)
	}
	if size > 0 {
		smallParts(t, src, size)
		if err := src.PrepareAgain(o); err != nil {
			return nil, nil, fmt.Errorf("prepare: %w", err)
		}
		src.ForgetCuts() // as where a plan's inputs are bound to another process
	}
	p, err := packed(t, src, pack.Options{Workers: 2})
	if err != nil {
		return nil, nil, err
	}
	for part := range src.Len() {
		err := src.Read(context.Background(), part, func(c *rows.Chunk) error {
			for r := range c.Rows() {
				label := fmt.Sprint(c.Labels[r])
				if c.Texts != nil {
					label = c.Texts[int(c.Labels[r])]
				}
				values, indices := c.Values, c.Indices
				if c.Dense() {
					values = values[r*c.Width : (r+1)*c.Width]
				} else {
					values, indices = values[c.Offsets[r]:c.Offsets[r+1]], indices[c.Offsets[r]:c.Offsets[r+1]]
				}
				points = append(points, fmt.Sprint(label, indices, values))
			}
			return nil
		})
		if err != nil {
			return nil, nil, fmt.Errorf("read after load: %w", err)
		}
	}
	return points, p.Meta, nil
}

// TestPackingFindsPartsCutWithinQuotes reports whether tables whose parts were cut within
// quotes are packed as they are when read in one part.
func TestPackingFindsPartsCutWithinQuotes(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	labels := map[string]func() string{
		"numbers": func() string { return fmt.Sprint(rng.IntN(3)) },
		"texts":   func() string { return []string{"ham", "spam", "eggs"}[rng.IntN(3)] },
	}
	for name, label := range labels {
		t.Run(name, func(t *testing.T) {
			failed, tables := map[string]int{}, 10
			if seeds.Soaking() {
				tables = 60
			}
			for range tables {
				text := spokenTable(rng, 2+rng.IntN(60), label)
				path := textFile(t, "y,x,t\n"+text)
				for _, policy := range []csv.Malformed{csv.FailFast, csv.DropMalformed} {
					o := input.Options{Prepare: input.Prepare{Hash: []string{"t"}, Buckets: 50,
						Scale: input.ScaleStandard}, Malformed: policy}
					want, wl, werr := pointsOf(t, path, o, 0)
					if werr != nil {
						t.Fatalf("whole: %v", werr)
					}
					size := int64(1 + len(text)/20 + rng.IntN(len(text)/2))
					got, gl, err := pointsOf(t, path, o, size)
					if err != nil {
						key := err.Error()
						key = key[strings.Index(key, "line"):]
						failed[strings.TrimLeft(key, "line 0123456789")]++
						continue
					}
					if !slices.Equal(got, want) || wl.Malformed != gl.Malformed {
						t.Errorf("parts of %d: %d rows and %d malformed, want %d and %d of %.3000q", size, len(got),
							gl.Malformed, len(want), wl.Malformed, text)
						return
					}
				}
			}
			for why, n := range failed {
				t.Errorf("%d times: %s", n, why)
			}
		})
	}
}
