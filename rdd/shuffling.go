package rdd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/rdd/internal/exec"
	"github.com/volley-engine/volley/scheduler"
)

// callAll runs a node's tasks on all partitions of its input, once it is settled
// how many those are.
func callAll(ctx context.Context, s *Session, id int, parts func() int) ([][]byte, error) {
	if err := s.settleAction(ctx, id); err != nil {
		return nil, err
	}
	return s.call(ctx, id, plan.NoPack, make([][]byte, parts()))
}

// settleAction settles an action's node; where rows of a loop are lost meanwhile,
// they are made again.
func (s *Session) settleAction(ctx context.Context, id int) error {
	_, err := s.carryOut(ctx, s.stages.Settle(id), plan.NoPack, nil)
	return err
}

// call runs an action's tasks on partitions of a node, and before them the
// shuffles that they read.
func (s *Session) call(ctx context.Context, node, pack int, args [][]byte) ([][]byte, error) {
	return s.carryOut(ctx, s.stages.Call(node, allParts(len(args)), pack == plan.NoPack), pack, args)
}

// allParts returns the numbers of some partitions.
func allParts(n int) []int {
	parts := make([]int, n)
	for i := range parts {
		parts[i] = i
	}
	return parts
}

// callParts does what call does, on some of the partitions.
func (s *Session) callParts(ctx context.Context, node int, parts []int, args [][]byte) ([][]byte, error) {
	return s.carryOut(ctx, s.stages.Call(node, parts, true), plan.NoPack, args)
}

// makeStage has what is missing of a shuffle made.
func (s *Session) makeStage(ctx context.Context, id int, replays bool) error {
	_, err := s.carryOut(ctx, s.stages.Make(id, replays), plan.NoPack, nil)
	return err
}

// take notes what a task says beside its result.
func (s *Session) take(raw []byte) (taskResult, error) {
	var a taskResult
	if err := cborReading.Unmarshal(raw, &a); err != nil {
		return a, fault.New(fault.Corrupt, "read", "a task's answer", err)
	}
	s.tallies.note(a.Says.Tallies)
	return a, nil
}

// request passes each task where its inputs lie.
func (s *Session) request(node, pack int, parts []int, args [][]byte, left []int) (plan.CallRequest, error) {
	req := plan.CallRequest{Node: node, Pack: pack}
	s.attempt++
	common, err := s.commonArgs(node)
	if err != nil {
		return req, err
	}
	shared := &taskInputs{outputs: map[int][]byte{}, holders: map[int][]string{}}
	for _, i := range left {
		t := common
		t.Args, t.Shuffles = args[i], map[int]map[int]shuffleArgs{}
		held := map[string]bool{}
		var failed error
		s.g.needs(node, parts[i], func(id, part int) {
			a, holders, err := s.shuffleArgs(id, part, shared)
			if err != nil {
				failed = err
			}
			for _, h := range holders {
				held[h] = true
			}
			if t.Shuffles[id] == nil {
				t.Shuffles[id] = map[int]shuffleArgs{}
			}
			t.Shuffles[id][part] = a
		})
		pieces, err := s.takePieces(node, parts[i], &t)
		if failed = cmp.Or(failed, err); failed != nil {
			return req, failed
		}
		for _, h := range pieces {
			held[h] = true
		}
		if pack == plan.NoPack && pieces == nil {
			t.Split = s.maySplit(node, parts[i], len(left))
		}
		raw, err := cborMode.Marshal(t)
		if err != nil {
			return req, fault.New(fault.Internal, "encode", "a task's arguments", err)
		}
		req.Args, req.Partitions = append(req.Args, raw), append(req.Partitions, parts[i])
		req.Holders = append(req.Holders, slices.Sorted(maps.Keys(held)))
	}
	return req, nil
}

// commonArgs returns what all tasks of a node are told alike.
func (s *Session) commonArgs(node int) (t taskArgs, err error) {
	t = taskArgs{Attempt: s.attempt, Dropped: s.dropped}
	if d := s.g.allDecided(); len(d) > 0 {
		if t.Decided, err = d.MarshalBinary(); err != nil {
			return t, err
		}
	}
	if p := s.paramsOf(node); len(p) > 0 {
		if t.Params, err = cborMode.Marshal(p); err != nil {
			return t, fault.New(fault.Internal, "encode", "parameters", err)
		}
	}
	return t, nil
}

// sameRows compares what a map task has made with what it made before that was lost.
// Rows that were computed from the first rows may be in results, or in other
// outputs: where the second are others, no result could be right.
func (s *Session) sameRows(id, m int, digest uint64) error {
	if before, made := s.digests[id][m]; made && before != digest {
		return fault.Newf(fault.UserCode, "make again", fmt.Sprintf("map task %d of %s", m, s.g.name(id)),
			"what it had made was lost, and made again its rows are others: the functions before it are not "+
				"deterministic").
			WithHint("let functions depend on their arguments only (seed random numbers by the partition, sort what " +
				"comes out of a Go map), or Checkpoint the rows before")
	}
	s.digests[id][m] = digest
	return nil
}

// copyOutputs has other executors hold copies of outputs, where there are others, and says
// which do.
func (s *Session) copyOutputs(ctx context.Context, id int, parts []int) (holders [][]string, err error) {
	args, held := make([][]byte, len(parts)), make([][]string, len(parts))
	for k, m := range parts {
		held[k], _ = s.stages.Holders(id, m)
		o := *s.shuffled[id][m]
		o.Holders = held[k]
		if args[k], err = cborMode.Marshal(o); err != nil {
			return nil, err
		}
	}
	raws, err := s.copyTo(ctx, s.g.node(id).shuffle.copier, parts, args, held)
	if err != nil {
		return nil, err
	}
	holders = make([][]string, len(parts))
	for k, raw := range raws {
		var holder string
		if err := cborReading.Unmarshal(raw, &holder); err == nil && holder != "" {
			holders[k] = []string{holder}
		}
	}
	return holders, nil
}

// copyTo runs the tasks that copy outputs. A copy that fails for want of its
// original is none.
func (s *Session) copyTo(ctx context.Context, node int, parts []int, args [][]byte, avoid [][]string) ([][]byte,
	error) {
	s.attempt++
	req := plan.CallRequest{Node: node, Pack: plan.NoPack, Partitions: parts, Avoid: avoid}
	for _, a := range args {
		raw, err := cborMode.Marshal(taskArgs{Attempt: s.attempt, Args: a})
		if err != nil {
			return nil, err
		}
		req.Args = append(req.Args, raw)
	}
	req.Holders = append(req.Holders, avoid...) // whom it is read from
	data, _, err := s.runTasks(ctx, req)
	if err != nil {
		return nil, err
	}
	for i := range data {
		if len(data[i]) > 0 {
			a, err := s.take(data[i])
			if err != nil {
				return nil, err
			}
			data[i] = a.Data
		}
	}
	return data, nil
}

// lookAt looks at what all map tasks of a shuffle have made.
func (s *Session) lookAt(id int) error {
	n := s.g.node(id)
	if key, share := exec.HotOf(hotKeysOf(s.shuffled[id])); key != "" && s.cfg.Warn != nil {
		s.cfg.Warn(fmt.Sprintf("hot key: %.0f %% of the rows of %s have the key %q: one task gets them all", 100*share,
			s.g.name(id), key))
	}
	if n.shuffle.bounds == nil {
		return nil
	}
	b, err := n.shuffle.bounds(s.shuffled[id])
	if s.bounds[id] = b; err != nil {
		return err
	}
	s.cuts[id], err = n.shuffle.cuts(b, s.shuffled[id])
	return err
}

// lossOf returns what an error says is gone: all of a holder that cannot be reached, or what it
// held of what a task reads.
func lossOf(err error) scheduler.Loss {
	var f *fault.Error
	if !errors.As(err, &f) {
		return scheduler.Loss{}
	}
	return scheduler.Loss{Holder: f.Subject, All: f.Kind == fault.HolderLost}
}

// settle decides what is still open about a node and what it is computed from:
// which of its alternatives is taken, and which small partitions are joined.
func (s *Session) settle(ctx context.Context, id int) error {
	n := s.g.node(id)
	if s.settled[id] {
		return nil
	}
	release, waited, err := s.claim(ctx, settling, id)
	if err != nil {
		return err
	}
	defer release()
	if waited && s.settled[id] {
		return nil
	}
	if n.choice != nil && s.g.decisionOf(id) == nil {
		d, err := n.choice.decide(ctx, s)
		if err != nil {
			return err
		}
		s.g.decided.Store(id, []int{d})
	}
	if err := s.settleInputs(ctx, id); err != nil {
		return err
	}
	if n.settle != nil && s.g.decisionOf(id) == nil {
		d, err := n.settle(ctx, s)
		if err != nil {
			return err
		}
		s.g.decided.Store(id, d)
	}
	if len(n.joins) > 0 {
		if err := s.coalesce(ctx, id, n.joins); err != nil {
			return err
		}
	}
	s.settled[id] = true
	return nil
}

func (s *Session) settleInputs(ctx context.Context, id int) error {
	for _, in := range s.g.inputsOf(id) {
		if err := s.settle(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// joinedBytes is how many bytes neighbouring partitions have, at the most, when
// they are joined.
const joinedBytes = 1 << 20

// coalesce runs the map tasks of some shuffles whose partitions belong together,
// and joins those that are small.
func (s *Session) coalesce(ctx context.Context, id int, shuffles []int) error {
	if s.g.decisionOf(id) != nil {
		return nil
	}
	var sizes []int64
	for _, sh := range shuffles {
		if err := s.makeStage(ctx, sh, false); err != nil {
			return err
		}
		for p, n := range s.sums[sh].bytes {
			if p == len(sizes) {
				sizes = append(sizes, 0)
			}
			sizes[p] += n
		}
	}
	if len(sizes) > 0 {
		s.g.decided.Store(id, joinNeighbours(sizes, joinedBytes))
	}
	return nil
}

// joinNeighbours returns where runs of partitions begin that have up to a number of bytes
// together, and where the last one ends.
func joinNeighbours(sizes []int64, most int64) []int {
	bounds, sum := []int{0}, int64(0)
	for p, n := range sizes {
		if sum > 0 && sum+n > most {
			bounds, sum = append(bounds, p), 0
		}
		sum += n
	}
	return append(bounds, len(sizes))
}

// hotKeysOf returns the most frequent keys of map tasks' outputs.
func hotKeysOf(outputs []*mapOutput) (keys []exec.HotKey) {
	for _, o := range outputs {
		keys = append(keys, o.Hot)
	}
	return keys
}
