package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/shuffle"
)

// TestNothingIsHandedOutAfterAFailure: a reader of keys that has failed, or has
// enough, is given no part of the next key's values.
func TestNothingIsHandedOutAfterAFailure(t *testing.T) {
	store, err := shuffle.NewOutputs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	packs := onePacks{store: store, memory: 1 << 16}
	grouped, err := KeyedOf[string, int64]()
	if err != nil {
		t.Fatal(err)
	}
	both, err := KeyedOf[string, Either[int64, int64]]()
	if err != nil {
		t.Fatal(err)
	}
	errEnough := errors.New("enough")
	taken := 0
	enough := func() error {
		if taken++; taken > 3 {
			t.Errorf("handed out %d times", taken)
		}
		if taken == 3 {
			return errEnough
		}
		return nil
	}
	g := NewGrouper("group by key", grouped, heldPacks{onePacks: packs}, 2)
	defer g.Close()
	g.Spill()
	c := NewGrouper("cogroup", both, heldPacks{onePacks: packs}, 2)
	defer c.Close()
	c.Spill()
	for i := range 100 {
		key := fmt.Sprint("key ", i%10)
		if err := cmp.Or(g.Spilled.Add(&row.Pair[string, int64]{Key: key, Value: 1}),
			c.Spilled.Add(&row.Pair[string, Either[int64, int64]]{Key: key})); err != nil {
			t.Fatal(err)
		}
	}
	err = g.Each(context.Background(), func([]Ranked) {}, func(string, []int64) error { return enough() })
	if !errors.Is(err, errEnough) {
		t.Error(err)
	}
	taken = 0
	err = EachCoGrouped(context.Background(), c,
		func(row.Pair[string, CoGrouped[int64, int64]]) error { return enough() })
	if !errors.Is(err, errEnough) {
		t.Error(err)
	}
}
