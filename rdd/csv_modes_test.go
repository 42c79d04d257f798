package rdd_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley/rdd"
)

// messy writes a table of several parts, of which some records are malformed and some
// fields hold newlines where parts are cut.
func messy(t *testing.T) (path string, good, bad int) {
	t.Helper()
	var b strings.Builder
	b.WriteString("id,text\n")
	for b.Len() < 9<<20 {
		switch id := good + bad; {
		case id%1000 == 7:
			fmt.Fprintf(&b, "x%d,none\n", id)
			bad++
		case id%1000 == 8:
			fmt.Fprintf(&b, "%d,\"a\"b\n", id)
			bad++
		default:
			fmt.Fprintf(&b, "%d,\"%s\n%d,\"\"quoted\"\"\"\n", id, strings.Repeat("line\n", id%40), id)
			good++
		}
	}
	path = filepath.Join(t.TempDir(), "messy.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, good, bad
}

// TestMalformedRecordsAreLeftOutOrKept and counted, in parts that are cut within quotes.
func TestMalformedRecordsAreLeftOutOrKept(t *testing.T) {
	type row struct {
		ID   int64  `col:"id"`
		Text string `col:"text"`
		Bad  rdd.Malformed
	}
	path, good, bad := messy(t)
	type counts struct {
		dropped, kept, marked, left rdd.Action[int64]
	}
	var got [4]int64
	err := failure(t, func(g *rdd.Graph) counts {
		drop, keep := rdd.CSVOptions{Malformed: rdd.DropMalformed}, rdd.CSVOptions{Malformed: rdd.KeepMalformed}
		kept := rdd.CSV[row](g, keep, path)
		marked := rdd.Filter(kept, func(r row) bool {
			return r.Bad != "" &&
				r.Text == "" == strings.Contains(string(r.Bad), `"a"b`)
		})
		return counts{rdd.Count(rdd.CSV[row](g, drop, path)), rdd.Count(kept), rdd.Count(marked),
			rdd.Count(rdd.CSVMalformed[row](g, drop, path))}
	}, func(ctx context.Context, s *rdd.Session, c counts) (err error) {
		for i, a := range []rdd.Action[int64]{c.dropped, c.kept, c.marked, c.left} {
			if got[i], err = a.Run(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
	if want := [4]int64{int64(good), int64(good + bad), int64(bad), int64(bad)}; err != nil || got != want {
		t.Errorf("%v of good, all, marked and malformed records, want %v: %v", got, want, err)
	}
	err = failure(t, func(g *rdd.Graph) rdd.Action[int64] { return rdd.Count(rdd.CSV[row](g, rdd.CSVOptions{}, path)) },
		func(ctx context.Context, s *rdd.Session, a rdd.Action[int64]) error {
			_, err := a.Run(ctx, s)
			return err
		})
	if err == nil || !strings.Contains(err.Error(), "messy.csv line") {
		t.Errorf("a malformed record: %v", err)
	}
}
