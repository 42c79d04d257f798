package input_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/pack"
)

// textFile writes text to a file of its own.
func textFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// packedText packs text.
func packedText(t *testing.T, text string, ro input.Options, o pack.Options) (*pack.Pack, error) {
	t.Helper()
	src, err := input.Open(context.Background(), ro, textFile(t, text))
	if err != nil {
		return nil, err
	}
	return packed(t, src, o)
}

// packed packs what a source reads in a fresh cache.
func packed(t *testing.T, src *input.Source, o pack.Options) (*pack.Pack, error) {
	t.Helper()
	cache, err := pack.OpenCache(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	id, err := pack.ID(src, o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := cache.Get(context.Background(), id, src, o, func(int) {})
	if p != nil {
		t.Cleanup(func() { p.Close() })
	}
	return p, err
}
