package executor

import (
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// copyKey names a split of a pack of a job.
type copyKey struct {
	job         string
	pack, split uint32
}

func copyOf(h *wire.Hold) copyKey { return copyKey{h.Job, h.Pack, h.Split} }

// onHold begins to fetch a split. One that is on its way is not asked for a second
// time: a second request is answered when it is here, and if it does not arrive the
// later request, which may name another source, is carried out.
func (a *Agent) onHold(h *wire.Hold) []Command {
	key := copyOf(h)
	a.coming[key] = append(a.coming[key], h)
	if plantedComing(len(a.coming[key]) > 1) {
		return nil
	}
	return []Command{{Fetch: h}}
}

// onFetched compares the hash of what has arrived with the one that was
// announced: a damaged copy is refused. Where it was asked for from elsewhere
// meanwhile, it is fetched from there.
func (a *Agent) onFetched(f *Fetched) []Command {
	err := f.Err
	want := plan.DigestFromBytes(f.Hold.Sha256)
	if err == nil && f.SHA256 != want {
		err = fault.Newf(fault.Corrupt, "fetch", "split", "split %d has hash %s, want %s", f.Hold.Split,
			f.SHA256.Short(), want.Short())
	}
	err = plantedFetched(f, err)
	out := []Command{{Send: &wire.ToDriver{Body: &wire.ToDriver_Holding{Holding: &wire.Holding{
		Job: f.Hold.Job, Pack: f.Hold.Pack, Split: f.Hold.Split, Sha256: f.SHA256[:], Fault: wire.FromError(err)}}}}}
	key := copyOf(f.Hold)
	later := a.coming[key]
	delete(a.coming, key)
	if err == nil || len(later) < 2 || later[len(later)-1].From == f.Hold.From {
		return out
	}
	last := later[len(later)-1]
	a.coming[key] = []*wire.Hold{last}
	return append(out, Command{Fetch: last})
}
