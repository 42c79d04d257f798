package exec

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/volley-engine/volley/rdd/internal/row"
)

// TestTextKeysAreTheTablesOwn: a key is not the caller's memory, and counts as many bytes as its encoding has.
func TestTextKeysAreTheTablesOwn(t *testing.T) {
	type name string
	k, err := KeyedOf[name, int]()
	if err != nil {
		t.Fatal(err)
	}
	table := newTable[name, int](k.Key, k.Hash, 0)
	want := 0
	for _, n := range []int{0, 1, 127, 128, 5000, 1 << 14, 1<<14 - 1, 1 << 20} {
		key := []byte(strings.Repeat("k", n))
		given := name(unsafe.String(unsafe.SliceData(key), n))
		got := table.own(&given)
		if want += len(k.Key.Append(nil, &given)); table.extra != want {
			t.Errorf("%d bytes count as %d, their encoding has %d", n, table.extra, want)
		}
		if got != given || row.TextSize(n) != len(k.Key.Append(nil, &got)) {
			t.Errorf("a key of %d bytes became one of %d", n, len(got))
		}
		if clear(key); strings.Trim(string(got), "k") != "" {
			t.Errorf("a key of %d bytes is the caller's memory", n)
		}
	}
}
