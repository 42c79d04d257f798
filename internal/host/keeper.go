package host

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/objects"
	"github.com/volley-engine/volley/storage/pack"
)

// keeper decides when a checkpoint is written, and has the one that the job continues from.
type keeper struct {
	cfg      Config
	plan     plan.Digest
	resumed  *checkpoint    // nil where the job starts from the beginning
	life     uint32         // counts the processes that the job has had
	loops    []rdd.LoopMark // as the last checkpoint has them
	sequence int            // of the last checkpoint
	kept     time.Time
	keeping  time.Duration  // how long the last checkpoint took
	unsaid   []*wire.Commit // steps that no checkpoint has yet
	trouble  string         // why no checkpoint has them
}

// openKeeper finds the checkpoint that the job continues from, if any; term counts the processes that a
// cluster has started for the job.
func openKeeper(cfg Config, p plan.Digest, term uint32) (*keeper, error) {
	k := &keeper{cfg: cfg, plan: p, life: term}
	if objects.Is(cfg.Checkpoints) {
		if err := objects.CanWrite(cfg.Checkpoints); err != nil {
			return nil, err
		}
	}
	if !cfg.Resume {
		found, err := checkpointFiles(cfg.Checkpoints)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			return nil, fault.Newf(fault.Usage, "keep checkpoints in", cfg.Checkpoints,
				"it holds those of another run").
				WithHint("add --resume to go on from them, or remove the directory")
		}
		return k, nil
	}
	c, err := latestCheckpoint(cfg.Checkpoints, p, cfg.Identity)
	if c != nil {
		k.resumed, k.life, k.loops, k.sequence = c, max(term, c.Life+1), slices.Clone(c.Loops), c.Sequence
	}
	return k, err
}

// loop returns where the checkpoint that the job continues from left a loop, if there is one.
func (k *keeper) loop(number int) (m rdd.LoopMark) {
	if k.resumed != nil && number <= len(k.resumed.Loops) {
		m = k.resumed.Loops[number-1]
	}
	return m
}

// iterations returns how many turns all loops have done, one that is committed included: what counts as steps where
// there are none.
func (k *keeper) iterations(c rdd.Commit) (n uint64) {
	for _, l := range k.loops[:min(len(k.loops), c.Loop-1)] {
		n += uint64(l.Iteration)
	}
	return n + uint64(c.Iteration)
}

// ended reports whether the program had ended the last loop that the checkpoint knows.
func (k *keeper) ended() bool {
	n := len(k.resumed.Loops)
	return n > 0 && k.resumed.Loops[n-1].Ended
}

// last reports whether a loop is the last that the checkpoint knows, or a later one.
func (k *keeper) last(number int) bool { return k.resumed == nil || number >= len(k.resumed.Loops) }

// sameData returns an error where a checkpoint was not written over the pack's data.
func (k *keeper) sameData(m *pack.Meta, mark *packMark) error {
	if slices.Equal(hashes(m), mark.Splits) {
		return nil
	}
	return fault.Newf(fault.BadInput, "resume from", k.cfg.Checkpoints,
		"the data is not what the checkpoint was written over")
}

// commitEvery is the shortest time between two checkpoints of a job on a
// cluster.
const commitEvery = 100 * time.Millisecond

// keepShare is how many times as long as the last checkpoint took the job works
// before the next one.
const keepShare = 10

// due reports whether a commit gets a checkpoint.
func (k *keeper) due(ctx context.Context, c rdd.Commit, seldom bool) bool {
	if k.cfg.Checkpoints == "" || c.Iteration%k.cfg.CheckpointEach != 0 && !c.Last && ctx.Err() == nil {
		return false
	}
	return c.Last || !seldom || time.Since(k.kept) >= max(commitEvery, keepShare*k.keeping)
}

// keep writes a checkpoint, and reports its steps to the cluster's driver: a step
// reported as committed is never repeated. On a full disk the checkpoint is retried at
// the next commit; until then no step is reported as committed.
func (j *Job) keep(c rdd.Commit) error {
	k := j.keeper
	k.kept = time.Now()
	defer func() { k.keeping = time.Since(k.kept) }()
	err := j.checkpoint(c)
	switch {
	case fault.KindOf(err) == fault.NoResources && j.record.log.Err() == nil:
		j.cfg.Logger.Warn("no checkpoint could be written; it is tried again at the next commit", "error", err)
		j.troubled("no step is committed: " + err.Error())
		return nil
	case err != nil:
		return err
	}
	j.troubled("")
	if j.remote != nil {
		j.remote.committed(k.unsaid)
		k.unsaid = nil
	}
	return nil
}

// keepLast writes the last checkpoint, and waits for space on a full disk.
func (j *Job) keepLast(ctx context.Context, c rdd.Commit) error {
	var final error
	_ = driver.AwaitRoom(ctx, func() error { // the trouble is reported
		final = j.keep(c)
		if j.keeper.trouble == "" || final != nil {
			return nil
		}
		return errNoRoom
	})
	return final
}

var errNoRoom = errors.New("there is no room for a checkpoint")

// checkpoint writes a checkpoint, unless the state cannot be encoded, which the session
// reports.
func (j *Job) checkpoint(c rdd.Commit) error {
	state := c.State()
	if state == nil {
		return nil
	}
	k := j.keeper
	for len(k.loops) < c.Loop {
		k.loops = append(k.loops, rdd.LoopMark{})
	}
	k.loops[c.Loop-1] = rdd.LoopMark{Iteration: c.Iteration, Ended: c.Stopped, State: state, Took: c.Took}
	mark, err := j.record.log.Mark()
	if err != nil {
		return err
	}
	k.sequence++
	return writeCheckpoint(j.cfg.Checkpoints,
		&checkpoint{Version: checkpointVersion, Plan: k.plan, Job: j.cfg.Identity, Packs: j.marks(),
			Sequence: k.sequence, Loops: k.loops, Life: k.life, Executors: j.cfg.Executors, Log: mark})
}

// marks returns the packs that are open, as a checkpoint keeps them.
func (j *Job) marks() (all []packMark) {
	for _, number := range slices.Sorted(maps.Keys(j.packs.nodes)) {
		node := j.packs.nodes[number]
		all = append(all, packMark{Node: node, Splits: hashes(j.packs.metas[node]), Ledger: *j.cluster.Ledger(number),
			Maker: j.packs.makers[node]})
	}
	return all
}

// troubled notes what keeps steps from being committed, and reports changes to the
// cluster's driver.
func (j *Job) troubled(what string) {
	if j.remote != nil && what != j.keeper.trouble {
		j.remote.troubled(what)
	}
	j.keeper.trouble = what
}
