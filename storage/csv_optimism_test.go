package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// smallParts makes parts of a source's files of some bytes, cut as if no newline were
// within quotes.
func smallParts(t *testing.T, src *Source, size int64) {
	t.Helper()
	skip := src.Parts[0].Skip
	parts, err := Ranges(src.Files, size)
	if err != nil {
		t.Fatal(err)
	}
	for i := range parts {
		parts[i].Skip = skip
	}
	src.Parts = parts
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
				t.Fatalf("%q: parts of %d: %s, %d malformed, want %d; %.2000q", policy, size, unlike(got.records, want.records), got.malformed, want.malformed, raw)
			}
		}
	}
}

// readParts reads a table in parts of a size, of 0 in one.
func readParts(t *testing.T, path string, o csvOptions, size int64) (got csvRead) {
	src, err := OpenSource(o.read(), path)
	if err != nil {
		return csvRead{refused: err}
	}
	if size > 0 {
		smallParts(t, src, size)
	} else {
		src.Parts = []Range{{File: src.Files[0], Length: src.Files[0].Size, Skip: src.Parts[0].Skip}}
	}
	for part := range src.Len() {
		err := got.part(src, part)
		if got.err == nil || errors.Is(err, errSpans) {
			got.err = err
		}
	}
	return got
}

// spoken are texts that look like rows once they are begun in the middle.
var spoken = []string{"plain", "a, b", "1,2,x", "7,8,9\n", "\n", "\n1,2,3\n", "\n3,4,y\n5,6,z\n", "\"\"", "\"\"\n1,1,1\n", "\nspam,5,t\n", "x\nham,-1e300,\"\"q\"\"\n",
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

// pointsOf loads a table with small parts, cut as if no newline were within quotes.
func pointsOf(t *testing.T, path string, o ReadOptions, size int64) (rows []string, l *loaded, err error) {
	t.Helper()
	src, err := OpenSource(o, path)
	if err != nil {
		t.Fatal(err)
	}
	if size > 0 {
		smallParts(t, src, size)
		src.Prepared = nil
		if err := src.prepare(o); err != nil {
			return nil, nil, fmt.Errorf("prepare: %w", err)
		}
		src.cuts.Store(nil) // as where a plan's inputs are bound to another process
	}
	l, err = load(context.Background(), src, t.TempDir(), nil, PackOptions{Workers: 2}, func(int) {})
	if err != nil {
		return nil, nil, err
	}
	defer l.spool.close()
	for part := range src.Len() {
		err := src.Read(context.Background(), part, func(c *Chunk) error {
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
				rows = append(rows, fmt.Sprint(label, indices, values))
			}
			return nil
		})
		if err != nil {
			return nil, nil, fmt.Errorf("read after load: %w", err)
		}
	}
	return rows, l, nil
}

// TestLoadingFindsPartsCutWithinQuotes reports whether tables whose parts were cut within
// quotes are loaded as they are when read in one part.
func TestLoadingFindsPartsCutWithinQuotes(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	labels := map[string]func() string{
		"numbers": func() string { return fmt.Sprint(rng.IntN(3)) },
		"texts":   func() string { return []string{"ham", "spam", "eggs"}[rng.IntN(3)] },
	}
	for name, label := range labels {
		t.Run(name, func(t *testing.T) {
			failed := map[string]int{}
			for range few(60) {
				text := spokenTable(rng, 2+rng.IntN(60), label)
				path := tableFile(t, []byte("y,x,t\n"+text))
				for _, policy := range []Malformed{FailFast, DropMalformed} {
					o := ReadOptions{Prepare: Prepare{Hash: []string{"t"}, Buckets: 50, Scale: ScaleStandard}, Malformed: policy}
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
					if !slices.Equal(got, want) || wl.malformed != gl.malformed {
						t.Errorf("parts of %d: %d rows and %d malformed, want %d and %d of %.3000q", size, len(got), gl.malformed, len(want), wl.malformed, text)
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
