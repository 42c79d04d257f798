package csv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volley-engine/volley/storage/input/files"
)

// smallParts makes parts of some bytes, cut as if no newline were within quotes.
func (c *csvTable) smallParts(t *testing.T, size int64) {
	t.Helper()
	skip := c.parts[0].Skip
	parts, err := files.Ranges([]files.File{c.file}, size)
	if err != nil {
		t.Fatal(err)
	}
	for i := range parts {
		parts[i].Skip = skip
	}
	c.parts = parts
}

// TestPartsCutWithinQuotesNeverMislead reports whether a table that is read in parts
// that may be cut within quotes gives its records, or an error.
func TestPartsCutWithinQuotesNeverMislead(t *testing.T) {
	for i, o := range dialects {
		for k, end := range []string{"\n", "\r\n", "\r"} {
			t.Run(fmt.Sprintf("%s%s%s %q", o.Separator, o.Quote, o.Escape, end), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(i)+70, uint64(k)))
				for n := 0; n < few(20) && !t.Failed(); n++ {
					w := &tableWriter{o: o, rng: rng, end: end, fill: n%2 == 0}
					raw := slices.Clone(w.write(w.table(1+rng.IntN(60), 1+n%5)))
					if n%4 == 3 {
						raw = soiled(rng, raw)
					}
					readOptimistically(t, rng, raw, o)
				}
			})
		}
	}
}

// soiled is a table some of whose bytes were lost, or are quotes and newlines.
func soiled(rng *rand.Rand, raw []byte) []byte {
	for range 1 + rng.IntN(4) {
		if at := rng.IntN(len(raw) + 1); at < len(raw) {
			raw[at] = "\"',\n;x"[rng.IntN(6)]
		}
	}
	return raw
}

func readOptimistically(t *testing.T, rng *rand.Rand, raw []byte, o csvOptions) {
	t.Helper()
	none := false
	o.Header = &none
	path := tableFile(t, raw)
	for _, policy := range []Malformed{FailFast, DropMalformed, KeepMalformed} {
		o.Malformed = string(policy)
		want := readParts(t, path, o, 0)
		for range 3 {
			size := int64(1 + len(raw)/50 + rng.IntN(1+len(raw)/2))
			got := readParts(t, path, o, size)
			switch {
			case got.refused != nil || errors.Is(got.err, errSpans):
				continue
			case (got.err == nil) != (want.err == nil):
				t.Fatalf("%q: parts of %d: %v, whole: %v; %.2000q", policy, size, got.err, want.err, raw)
			case got.err != nil && got.err.Error() != want.err.Error():
				t.Fatalf("%q: parts of %d: %v, whole: %v; %.2000q", policy, size, got.err, want.err, raw)
			case got.err == nil && (unlike(got.records, want.records) != "" || got.malformed != want.malformed):
				t.Fatalf("%q: parts of %d: %s, %d malformed, want %d; %.2000q", policy, size,
					unlike(got.records, want.records), got.malformed, want.malformed, raw)
			}
		}
	}
}

// readParts reads a table in parts of a size, of 0 in one.
func readParts(t *testing.T, path string, o csvOptions, size int64) (got csvRead) {
	table, err := openCSV(path, o.read())
	if err != nil {
		return csvRead{refused: err}
	}
	if size > 0 {
		table.smallParts(t, size)
	} else {
		table.parts = []files.Range{{File: table.file, Length: table.file.Size, Skip: table.parts[0].Skip}}
	}
	for _, rng := range table.parts {
		err := got.part(table, rng)
		if got.err == nil || errors.Is(err, errSpans) {
			got.err = err
		}
	}
	return got
}
