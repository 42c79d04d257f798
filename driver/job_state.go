package driver

import (
	"maps"
	"slices"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// stateKey names the row state of a split for a step's node.
type stateKey struct {
	node  int
	split plan.SplitID
}

// splitState is the row state of a split as last merged, and the executor that
// has it.
type splitState struct {
	version uint64
	data    []byte
	at      plan.ExecutorID
}

// keepState keeps the row state of a split that came with an accepted result.
func (s *step) keepState(from plan.ExecutorID, part *wire.Part) {
	if s.states == nil {
		s.states = map[plan.SplitID]splitState{}
	}
	s.states[plan.SplitID(part.Index)] = splitState{data: part.Data, at: from}
}

// commitStates makes the row states of merged results those that the next step
// continues with; a missing split keeps its old one.
func (j *Job) commitStates(s *step, p *pack) {
	for i, st := range s.states {
		if plantedKept(s.coverage[i] != nil) {
			st.version = wire.StateVersion(st.data)
			p.states[stateKey{s.req.Node, i}] = st
		}
	}
}

// stateFor returns what must be sent to an executor of the row state of a split.
func (j *Job) stateFor(p *pack, i plan.SplitID, to plan.ExecutorID) []*wire.Part {
	st := p.states[stateKey{j.step.req.Node, i}]
	if !j.step.req.State || st.version == 0 || st.at == to {
		return nil
	}
	j.step.bytes += int64(len(st.data))
	return []*wire.Part{{State: true, Index: uint32(i), Data: st.data}}
}

// forgetStates notes that an executor holds no row state any more.
func (p *pack) forgetStates(id plan.ExecutorID) {
	for k, st := range p.states {
		if st.at == id {
			st.at = ""
			p.states[k] = st
		}
	}
}

// forgetStates notes the same for row states from results of this step.
func (s *step) forgetStates(id plan.ExecutorID) {
	for i, st := range s.states {
		if st.at == id {
			st.at = ""
			s.states[i] = st
		}
	}
}

// resend marks the row state of a split to be sent to the executor that folds it next: the
// one that should have it has failed.
func (p *pack) resend(i plan.SplitID) {
	for k, st := range p.states {
		if k.split == i {
			st.at = ""
			p.states[k] = st
		}
	}
}

// keptStates returns all row states, for a checkpoint.
func (p *pack) keptStates() (out []RestoredState) {
	keys := slices.SortedFunc(maps.Keys(p.states), func(a, b stateKey) int {
		if a.node != b.node {
			return a.node - b.node
		}
		return int(a.split - b.split)
	})
	for _, k := range keys {
		out = append(out, RestoredState{Node: k.node, Split: int(k.split), Data: p.states[k].data})
	}
	return out
}

func (p *pack) restoreStates(states []RestoredState) {
	for _, st := range states {
		p.states[stateKey{st.Node, plan.SplitID(st.Split)}] = splitState{version: wire.StateVersion(st.Data),
			data: st.Data}
	}
}
