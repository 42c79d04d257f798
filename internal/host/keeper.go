package host

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// keeper decides when a job's state is kept, and has what it goes on from.
type keeper struct {
	cfg      Config
	plan     plan.Digest
	resumed  *checkpoint // nil where the job begins anew
	life     uint32      // counts the processes that the job has had
	loops    []loopMark  // as the last checkpoint has them
	sequence int         // of the last checkpoint
	kept     time.Time
	keeping  time.Duration  // how long the last checkpoint took
	unsaid   []*wire.Commit // steps that no checkpoint has yet
	trouble  string         // why no checkpoint has them
}

// openKeeper finds what the job goes on from, if anything; term counts the processes that a cluster has
// started for the job.
func openKeeper(cfg Config, p plan.Digest, term uint32) (*keeper, error) {
	k := &keeper{cfg: cfg, plan: p, life: term}
	if !cfg.Resume {
		if files := checkpointFiles(cfg.Checkpoints); len(files) > 0 {
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

// loop returns what the checkpoint that the job goes on from has of a loop, if any.
func (k *keeper) loop(number int) (iteration int, state []byte, ended bool) {
	if k.resumed == nil || number > len(k.resumed.Loops) {
		return 0, nil, false
	}
	l := k.resumed.Loops[number-1]
	return l.Iteration, l.State, l.Ended
}

// sameData returns an error where a checkpoint was not written over the pack's data.
func (k *keeper) sameData(m *pack.Meta, mark *packMark) error {
	if slices.Equal(hashes(m), mark.Splits) {
		return nil
	}
	return fault.Newf(fault.BadInput, "resume from", k.cfg.Checkpoints,
		"the data is not what the checkpoint was written over")
}

// commitEvery is the shortest time between two states of a job that a cluster
// keeps.
const commitEvery = 100 * time.Millisecond

// keepShare is how many times as long as a checkpoint took the job works before
// the next one.
const keepShare = 10

// due reports whether a commit is to be kept.
func (k *keeper) due(ctx context.Context, c rdd.Commit, seldom bool) bool {
	if k.cfg.Checkpoints == "" || c.Iteration%k.cfg.CheckpointEach != 0 && !c.Last && ctx.Err() == nil {
		return false
	}
	return c.Last || !seldom || time.Since(k.kept) >= max(commitEvery, keepShare*k.keeping)
}

// keep writes a checkpoint, and tells the cluster's driver of the steps that are in it:
// what is called committed is never done again. A checkpoint for which there is no
// room is tried again at the next commit; until then no step is called
// committed.
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

// keepLast writes the checkpoint after which there is none, and waits for room for it.
func (j *Job) keepLast(ctx context.Context, c rdd.Commit) error {
	var final error
	_ = driver.AwaitRoom(ctx, func() error { // what it is troubled by is said
		final = j.keep(c)
		if j.keeper.trouble == "" || final != nil {
			return nil
		}
		return errNoRoom
	})
	return final
}

var errNoRoom = errors.New("there is no room for a checkpoint")

// checkpoint writes a checkpoint, unless the state cannot be encoded, as the session is
// about to say.
func (j *Job) checkpoint(c rdd.Commit) error {
	state := c.State()
	if state == nil {
		return nil
	}
	k := j.keeper
	for len(k.loops) < c.Loop {
		k.loops = append(k.loops, loopMark{})
	}
	k.loops[c.Loop-1] = loopMark{Iteration: c.Iteration, Ended: c.Stopped, State: state}
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
	for number, node := range j.packs.nodes {
		all = append(all, packMark{Node: node, Splits: hashes(j.packs.metas[node]), Ledger: *j.cluster.Ledger(number),
			Maker: j.packs.makers[node]})
	}
	return all
}

// troubled notes what keeps steps from being committed, and tells the cluster's driver
// where that is news.
func (j *Job) troubled(what string) {
	if j.remote != nil && what != j.keeper.trouble {
		j.remote.troubled(what)
	}
	j.keeper.trouble = what
}
