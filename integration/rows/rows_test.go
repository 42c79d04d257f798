package rows

import (
	"testing"

	"github.com/volley-engine/volley"
)

// testConfig is a run of three executors that leaves nothing behind.
func testConfig(t *testing.T) volley.Config {
	return volley.Config{Executors: 3, DataDir: t.TempDir(), OutDir: t.TempDir()}
}

// worded writes itself by its pointer.
type worded struct{ word string }

// MarshalBinary writes the word.
func (w *worded) MarshalBinary() ([]byte, error) { return []byte(w.word), nil }

// UnmarshalBinary reads the word.
func (w *worded) UnmarshalBinary(raw []byte) error {
	w.word = string(raw)
	return nil
}
