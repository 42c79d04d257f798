package model

import (
	"fmt"
	"testing"

	"github.com/volley-engine/volley/storage/objects"
	"github.com/volley-engine/volley/storage/objects/storetest"
)

// TestTwoModelsInEveryOrder: of two saves of a model, whatever their steps' order, one is there, with its numbers.
func TestTwoModelsInEveryOrder(t *testing.T) {
	for _, numbers := range [][2]string{{"a", "b"}, {"old", "b"}, {"a", "a"}} {
		for n, order := range storetest.Orders(4, 4) {
			dir := fmt.Sprintf("%s/%d", storetest.S3(t), n)
			if err := PlaceObjects(dir, true, madeOf("old", "first")); err != nil {
				t.Fatal(err)
			}
			steps := make([][]func() error, 2)
			for k, text := range numbers {
				s := newStoredModel(dir, madeOf(text, fmt.Sprint(k)))
				steps[k] = []func() error{s.look, s.putNumbers, func() error { return s.putHead(true) }, s.settle}
			}
			for _, who := range order {
				if err := steps[who][0](); err != nil {
					t.Fatalf("%v in the order %v: %v", numbers, order, err)
				}
				steps[who] = steps[who][1:]
			}
			head, err := objects.Get(t.Context(), dir+"/"+headFile, headMost)
			if err != nil {
				t.Fatal(err)
			}
			names, err := objectsIn(dir)
			if err != nil || numbersOf(head, names) == numbersFile {
				t.Errorf("%v in the order %v: %s has no numbers: %q, %v", numbers, order, head, names, err)
			}
		}
	}
}

func madeOf(numbers, name string) map[string][]byte {
	head := fmt.Sprintf(`{"name": %q, "weights_sha256": %q}`, name, digestOf([]byte(numbers)))
	return map[string][]byte{numbersFile: []byte(numbers), headFile: []byte(head)}
}

// TestAModelThatWasCopiedIsReplaced: a directory that was uploaded has its numbers under another name.
func TestAModelThatWasCopiedIsReplaced(t *testing.T) {
	dir := storetest.S3(t)
	for name, raw := range madeOf("old", "copied") {
		if err := objects.Put(t.Context(), dir+"/"+name, raw); err != nil {
			t.Fatal(err)
		}
	}
	if raw, err := savedNumbers(dir, digestOf([]byte("old"))); err != nil || string(raw) != "old" {
		t.Errorf("%q %v", raw, err)
	}
	if err := PlaceObjects(dir, true, madeOf("new", "second")); err != nil {
		t.Fatal(err)
	}
	if raw, err := savedNumbers(dir, digestOf([]byte("new"))); err != nil || string(raw) != "new" {
		t.Errorf("%q %v", raw, err)
	}
	if names, err := objectsIn(dir); err != nil || len(names) != 2 {
		t.Errorf("%q %v", names, err)
	}
}
