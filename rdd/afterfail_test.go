package rdd

import (
	"context"
	"errors"
	"fmt"
	"testing"

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
	grouped, both := keyedOf[string, int64](NewGraph(), "test"),
		keyedOf[string, either[int64, int64]](NewGraph(), "test")
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
	g := newGrouper("group by key", grouped, heldPacks{onePacks: packs}, 2)
	defer g.close()
	g.spill()
	c := newGrouper("cogroup", both, heldPacks{onePacks: packs}, 2)
	defer c.close()
	c.spill()
	for i := range 100 {
		key := fmt.Sprint("key ", i%10)
		if err := firstError(g.spilled.add(&kv{key, 1}),
			c.spilled.add(&Pair[string, either[int64, int64]]{Key: key})); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.each(context.Background(), func(string, []int64) error { return enough() }); !errors.Is(err,
		errEnough) {
		t.Error(err)
	}
	taken = 0
	err = eachCoGrouped(context.Background(), c, func(Pair[string, CoGrouped[int64, int64]]) error { return enough() })
	if !errors.Is(err, errEnough) {
		t.Error(err)
	}
}
