package exec

import (
	"context"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd/internal/row"
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
	c, err := KeyedOf[string, string]()
	if err != nil {
		t.Fatal(err)
	}
	grouped := func(held int) (n int, err error) {
		g := NewGrouper("group by key", c, heldPacks{onePacks{store: store, memory: 1 << 16}, held}, 2)
		defer g.Close()
		g.Spill()
		for i := range 3000 {
			key := "hot"
			if i%3 == 0 {
				key = strings.Repeat("k", i%70)
			}
			if err := g.Spilled.Add(&row.Pair[string, string]{Key: key, Value: strings.Repeat("v", 100)}); err != nil {
				t.Fatal(err)
			}
		}
		err = g.Each(context.Background(), func([]Ranked) {},
			func(_ string, values []string) error { n += len(values); return nil })
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
	c, err := row.CodecOf[string]()
	if err != nil {
		t.Fatal(err)
	}
	all := make([]string, 1000)
	for i := range all {
		all[i] = strings.Repeat("x", i)
	}
	const most = 20_000
	next := 0
	err = someAtATime(most, c, func(yield func([]string) error) error { return row.InBatches(all, yield) },
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
