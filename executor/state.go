package executor

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
)

// The row state of a split (SEMANTICS section 3) is kept by the executor that
// folded it last, under a version: a state that was folded and not merged has a
// version that is never requested. The driver has the merged states, and sends
// them to executors that lack them.

// stateKey names the row state of a split for a step's node.
type stateKey struct{ node, split uint32 }

// stateOf is one version.
type stateOf struct {
	version uint64
	data    []float64
}

// stateOf returns the version that a task continues with; nil is zeros.
func (e *Engine) stateOf(s *wire.StartStep, sent []*wire.Part, t *wire.Assignment, f runner.Folder) ([]float64, error) {
	if f.State() == 0 || t.State == 0 {
		return nil, nil
	}
	key := stateKey{s.Node, t.Split}
	for _, p := range sent {
		if p.Index == t.Split {
			data := DecodeState(p.Data)
			e.mu.Lock()
			e.mu.states[key] = []stateOf{{t.State, data}}
			e.mu.Unlock()
			return data, nil
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range e.mu.states[key] {
		if v.version == t.State {
			e.mu.states[key] = []stateOf{v}
			return v.data, nil
		}
	}
	return nil, fault.Newf(fault.FetchFailed, "fold", fmt.Sprintf("split %d", t.Split), "its row state is not here")
}

// keepState keeps the state that a task has made beside the one that it began with, and encodes it.
func (e *Engine) keepState(s *wire.StartStep, t *wire.Assignment, data []float64) *wire.Part {
	key, raw := stateKey{s.Node, t.Split}, EncodeState(data)
	e.mu.Lock()
	e.mu.states[key] = append(e.mu.states[key], stateOf{wire.StateVersion(raw), data})
	e.mu.Unlock()
	return &wire.Part{State: true, Index: t.Split, Data: raw}
}

// EncodeState encodes numbers for the wire.
func EncodeState(data []float64) []byte {
	out := make([]byte, 0, 8*len(data))
	for _, v := range data {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
	}
	return out
}

// DecodeState decodes what EncodeState wrote.
func DecodeState(raw []byte) []float64 {
	out := make([]float64, len(raw)/8)
	for i := range out {
		out[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
	}
	return out
}
