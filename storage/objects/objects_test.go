package objects_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/objects"
	"github.com/volley-engine/volley/storage/objects/storetest"
)

// random returns bytes of a seed.
func random(size int, seed uint64) []byte {
	raw := make([]byte, size)
	src := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = src.Read(raw) // never fails
	return raw
}

func put(t *testing.T, name string, raw []byte) {
	t.Helper()
	if err := objects.Put(t.Context(), name, raw); err != nil {
		t.Fatal(err)
	}
}

// TestWhatIsWrittenIsRead: objects of all sizes around those of blocks and of parts, read at random.
func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, root := range storetest.Roots(t) {
		for n, size := range []int{0, 1, 1<<20 - 1, 1 << 20, 3<<20 + 17, 20<<20 + 5} {
			raw := random(size, uint64(n))
			name := fmt.Sprintf("%s/of %d bytes/ä+ü%%20", root, size)
			put(t, name, raw)
			i, err := objects.Stat(t.Context(), name)
			if err != nil || i.Size != int64(size) || i.Tag == "" || i.ModTime.IsZero() {
				t.Fatalf("%+v %v", i, err)
			}
			readAtRandom(t, name, raw)
		}
	}
}

// readAtRandom compares what a reader returns, from many offsets, with bytes.
func readAtRandom(t *testing.T, name string, raw []byte) {
	t.Helper()
	r, err := objects.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if all, err := io.ReadAll(r); err != nil || !bytes.Equal(all, raw) {
		t.Fatalf("%s: %d bytes, %v", name, len(all), err)
	}
	for range 50 {
		from := rand.Int64N(int64(len(raw)) + 1)
		piece := make([]byte, rand.IntN(3<<20))
		n, err := r.ReadAt(piece, from)
		if want := raw[from:min(len(raw), int(from)+len(piece))]; !bytes.Equal(piece[:n], want) ||
			(err != nil) != (n < len(piece)) || err != nil && err != io.EOF {
			t.Fatalf("%s from %d: %d of %d bytes, %v", name, from, n, len(want), err)
		}
	}
}

// TestNoneIsThere: what is missing is told from what cannot be reached.
func TestNoneIsThere(t *testing.T) {
	for _, root := range storetest.Roots(t) {
		_, err := objects.Stat(t.Context(), root+"/none")
		if !errors.Is(err, fs.ErrNotExist) || fault.KindOf(err) != fault.BadInput {
			t.Error(err)
		}
		if _, err := objects.Open(root + "/none"); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		if err := objects.Remove(t.Context(), root+"/none"); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"s3://", "gs:///key", "https://user:secret@host/x"} {
		if _, err := objects.Stat(t.Context(), bad); fault.KindOf(err) != fault.BadInput ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestAnObjectAppearsWhole: nothing is seen of one that is being written, or is given up, and what was there stays.
func TestAnObjectAppearsWhole(t *testing.T) {
	for _, root := range storetest.Roots(t) {
		name := root + "/one"
		put(t, name, []byte("before"))
		for _, size := range []int{10, 20 << 20} {
			w, err := objects.Create(t.Context(), name)
			if err == nil {
				_, err = w.Write(random(size, 1))
			}
			if err != nil {
				t.Fatal(err)
			}
			if raw, err := objects.Get(t.Context(), name, 100); err != nil || string(raw) != "before" {
				t.Errorf("%q %v", raw, err)
			}
			w.Abort()
			if raw, err := objects.Get(t.Context(), name, 100); err != nil || string(raw) != "before" {
				t.Errorf("%q %v", raw, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		w, err := objects.Create(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte("never"))
		cancel()
		if err := w.Close(); err == nil {
			t.Error("it was written after its context had ended")
		}
		if raw, err := objects.Get(t.Context(), name, 100); err != nil || string(raw) != "before" {
			t.Errorf("%q %v", raw, err)
		}
	}
}

// TestOneOfTwoIsFirst: of two that write an object that must be new one is refused.
func TestOneOfTwoIsFirst(t *testing.T) {
	for _, root := range storetest.Roots(t) {
		if err := objects.PutNew(t.Context(), root+"/one", []byte("first")); err != nil {
			t.Error(err)
		}
		if err := objects.PutNew(t.Context(), root+"/one", []byte("second")); !errors.Is(err, fs.ErrExist) {
			t.Error(err)
		}
		if raw, err := objects.Get(t.Context(), root+"/one", 10); err != nil || string(raw) != "first" {
			t.Errorf("%q %v", raw, err)
		}
	}
}

// TestAllAreListed: more than a page has, in order, and only those below the name.
func TestAllAreListed(t *testing.T) {
	for _, root := range storetest.Roots(t) {
		var want []string
		for n := range 1100 {
			name := fmt.Sprintf("%s/d/%04d", root, n)
			put(t, name, []byte{1})
			want = append(want, name)
		}
		put(t, root+"/dd", []byte{1})
		var got []string
		err := objects.List(t.Context(), root+"/d/", func(i objects.Info) bool {
			got = append(got, i.Name)
			if len(got) == 1 {
				if asked, err := objects.Stat(t.Context(), i.Name); err != nil || !asked.Same(i) || asked.Tag != i.Tag {
					t.Errorf("in the list %+v, asked for %+v %v", i, asked, err)
				}
			}
			return true
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d of %d, %v", len(got), len(want), err)
		}
	}
}

// TestAChangedObjectIsRefused: one of as many bytes, too, while it is read.
func TestAChangedObjectIsRefused(t *testing.T) {
	for _, root := range storetest.Roots(t) {
		name := root + "/changing"
		put(t, name, random(5<<20, 1))
		r, err := objects.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := r.ReadAt(make([]byte, 100), 0); err != nil {
			t.Fatal(err)
		}
		put(t, name, random(5<<20, 2))
		if _, err := r.ReadAt(make([]byte, 100), 4<<20); fault.KindOf(err) != fault.BadInput ||
			!strings.Contains(err.Error(), "changed") {
			t.Errorf("%s: %v", root, err)
		}
	}
}
