package executor

import (
	"slices"

	"github.com/volley-engine/volley/internal/wire"
)

// sameRun reports whether leases are for a run.
func (r *activeRun) sameRun(job string, step uint32, epoch uint64) bool {
	return r.step.Leased && r.step.Job == job && r.step.Step == step && r.step.Epoch == epoch
}

// runOf returns the leased run of a step under an epoch, if there is one.
func (a *Agent) runOf(job string, step uint32, epoch uint64) *activeRun {
	for _, id := range a.active() {
		if r := a.runs[id]; r.sameRun(job, step, epoch) {
			return r
		}
	}
	return nil
}

// beginLeases hands a run the leases that came before it.
func (a *Agent) beginLeases(r *activeRun) []Command {
	r.leases = map[uint32]bool{}
	early := a.leases
	a.leases = nil
	var out []Command
	for _, m := range early {
		switch {
		case r.sameRun(m.Job, m.Step, m.Epoch):
			out = append(out, a.onLeases(m)...)
		case m.Epoch > r.step.Epoch: // the others are of runs that are over
			a.leases = append(a.leases, m)
		}
	}
	return out
}

// onLeases gives a run more to fold, each lease once however often it comes.
func (a *Agent) onLeases(m *wire.Leases) []Command {
	r := a.runOf(m.Job, m.Step, m.Epoch)
	if r == nil {
		a.leases = append(a.leases, m)
		return nil
	}
	leases := slices.DeleteFunc(slices.Clone(m.Leases),
		func(l *wire.Lease) bool { return plantedHad(r.leases[l.Id]) })
	for _, l := range leases {
		r.leases[l.Id] = true
	}
	if r.stopped || len(leases) == 0 {
		return nil
	}
	return []Command{{Lease: &LeaseRun{Run: r.id, Leases: leases, States: m.States}}}
}

// onPieces reports leases that have been folded.
func (a *Agent) onPieces(p *PiecesFolded) []Command {
	r := a.runs[p.Run]
	if r == nil || r.stopped {
		return nil
	}
	return []Command{{Send: &wire.ToDriver{Body: &wire.ToDriver_PiecesFolded{PiecesFolded: &wire.PiecesFolded{
		Job: r.step.Job, Step: r.step.Step, Epoch: r.step.Epoch, Ids: p.IDs}}}}}
}

// onInclude ends a run with the results requested.
func (a *Agent) onInclude(m *wire.Include) []Command {
	r := a.runOf(m.Job, m.Step, m.Epoch)
	if r == nil || r.stopped {
		return nil
	}
	r.stopped = true
	return []Command{{Include: &IncludeRun{Run: r.id, IDs: plantedIncluded(r, m.Ids)}}}
}
