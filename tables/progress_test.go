package tables

import (
	"testing"

	"github.com/volley-engine/volley/rdd"
)

// TestACheckpointWithoutKeptStateIsTaken: the program that wrote it kept none, and the state begins as it is.
func TestACheckpointWithoutKeptStateIsTaken(t *testing.T) {
	raw, err := rdd.Encode(encoded{Clock: 3})
	if err != nil {
		t.Fatal(err)
	}
	state := struct{ N int }{7}
	p := &progress{kept: Keep(&state).keeping}
	if err := p.UnmarshalBinary(raw); err != nil || p.Clock != 3 || state.N != 7 {
		t.Errorf("clock %d, state %d: %v", p.Clock, state.N, err)
	}
}
