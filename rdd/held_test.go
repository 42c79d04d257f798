package rdd

import (
	"context"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/shuffle"
)

// heldPacks are those of a task that may hold a number of bytes as a whole.
type heldPacks struct {
	onePacks
	held int
}

func (p heldPacks) Held() int { return p.held }

// TestValuesThatDoNotFitAreRefused, by name of the operation and the key, and others are
// handed out as they came.
func TestValuesThatDoNotFitAreRefused(t *testing.T) {
	store, err := shuffle.NewOutputs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := keyedOf[string, string](NewGraph(), "test")
	grouped := func(held int) (n int, err error) {
		g := newGrouper("group by key", c, heldPacks{onePacks{store: store, memory: 1 << 16}, held}, 2)
		defer g.close()
		g.spill()
		for i := range 3000 {
			key := "hot"
			if i%3 == 0 {
				key = strings.Repeat("k", i%70)
			}
			if err := g.spilled.add(&Pair[string, string]{key, strings.Repeat("v", 100)}); err != nil {
				t.Fatal(err)
			}
		}
		err = g.each(context.Background(), func(_ string, values []string) error { n += len(values); return nil })
		return n, err
	}
	for _, enough := range []int{0, 1 << 20} {
		if n, err := grouped(enough); err != nil || n != 3000 {
			t.Errorf("%d bytes: %d values, %v", enough, n, err)
		}
	}
	_, err = grouped(100 << 10)
	if fault.KindOf(err) != fault.NoResources || !strings.Contains(err.Error(), "group by key key hot") ||
		!strings.Contains(err.Error(), "raise --memory") {
		t.Errorf("2000 values of 100 bytes in 100 KiB: %v", err)
	}
}

// TestFewRowsAreTakenAtATime, as many as fit, each once and in their order.
func TestFewRowsAreTakenAtATime(t *testing.T) {
	c, err := codecOf[string]()
	if err != nil {
		t.Fatal(err)
	}
	all := make([]string, 1000)
	for i := range all {
		all[i] = strings.Repeat("x", i)
	}
	const most = 20_000
	next := 0
	err = someAtATime(most, c, func(yield func([]string) error) error { return inBatches(all, yield) },
		func(some []string) error {
			bytes := 0
			for _, s := range some {
				if len(s) != next {
					t.Fatalf("row %d comes where %d should", len(s), next)
				}
				next, bytes = next+1, bytes+len(s)
			}
			if bytes > most+1000 {
				t.Errorf("%d bytes at a time", bytes)
			}
			return nil
		})
	if err != nil || next != len(all) {
		t.Errorf("%d rows, %v", next, err)
	}
}

// TestRecordsOfTablesAreCutByBytes, and those of short rows by rows only.
func TestRecordsOfTablesAreCutByBytes(t *testing.T) {
	for _, long := range []int{8, 10_000} {
		c, err := columnsOf[string]()
		if err != nil {
			t.Fatal(err)
		}
		s, records := newRecordSink(c), 0
		s.end = func() error { return nil }
		s.write = func(bytes int) error {
			rec := s.b.NewRecord()
			defer rec.Release()
			records++
			if bytes > recordBytes+20*long || rec.NumRows() > 2*recordRows {
				t.Errorf("rows of %d bytes: a record of %d bytes, %d rows", long, bytes, rec.NumRows())
			}
			return nil
		}
		rows := make([]string, 1000)
		for i := range rows {
			rows[i] = strings.Repeat("x", long)
		}
		for range 40 {
			if err := s.add(rows); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		if least := 40 * 1000 * long / recordBytes; records < max(3, least) || records > max(3, least+least/4) {
			t.Errorf("rows of %d bytes: %d records", long, records)
		}
	}
}
