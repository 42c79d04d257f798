package rdd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
)

// maxRounds is how often what was lost is made again before an action fails.
const maxRounds = 8

// callAll runs a node's tasks on all partitions of its input, once it is settled
// how many those are.
func callAll(ctx context.Context, s *Session, id int, parts func() int) ([][]byte, error) {
	if err := s.settleAction(ctx, id); err != nil {
		return nil, err
	}
	return s.call(ctx, id, NoPack, make([][]byte, parts()))
}

// settleAction settles an action's node; where rows of a loop are lost meanwhile,
// they are made again.
func (s *Session) settleAction(ctx context.Context, id int) error {
	for again := 0; ; again++ {
		err := s.settle(ctx, id)
		if !errors.Is(err, errRoundLost) || again == maxRounds {
			return err
		}
		if err := s.replayLoops(ctx); err != nil {
			return err
		}
	}
}

// call runs an action's tasks on partitions of a node, and before them the
// shuffles that they read.
func (s *Session) call(ctx context.Context, node, pack int, args [][]byte) ([][]byte, error) {
	parts := make([]int, len(args))
	for i := range parts {
		parts[i] = i
	}
	if pack != NoPack {
		return s.callOn(ctx, node, pack, parts, args)
	}
	return s.callParts(ctx, node, parts, args)
}

// callParts is call on some of the partitions.
func (s *Session) callParts(ctx context.Context, node int, parts []int, args [][]byte) ([][]byte, error) {
	for again := 0; ; again++ {
		out, err := s.callOn(ctx, node, NoPack, parts, args)
		if !errors.Is(err, errRoundLost) || again == maxRounds {
			return out, err
		}
		if err := s.replayLoops(ctx); err != nil {
			return nil, err
		}
	}
}

func (s *Session) callOn(ctx context.Context, node, pack int, parts []int, args [][]byte) ([][]byte, error) {
	out := make([][]byte, len(parts))
	left := make([]int, len(parts))
	for i := range left {
		left[i] = i
	}
	var last error
	for round := 0; len(left) > 0; round++ {
		if round == maxRounds {
			return nil, fault.New(fault.LostInput, "run", s.g.name(node), fmt.Errorf("what it reads was lost %d times: %w", round, last))
		}
		if err := s.prepare(ctx, node); err != nil {
			return nil, err
		}
		req, err := s.request(node, pack, parts, args, left)
		if err != nil {
			return nil, err
		}
		data, lost, err := s.cluster.RunCall(ctx, req)
		if err != nil {
			return nil, err
		}
		var again, unfinished []int
		for k, i := range left {
			if lost[k] != nil {
				again, last = append(again, i), lost[k]
				s.lose(node, lost[k])
				if s.forgetPieces(node, parts[i]) {
					s.whole[[2]int{node, parts[i]}] = true
				}
				continue
			}
			a, err := s.take(data[k])
			if err != nil {
				return nil, err
			}
			s.forgetPieces(node, parts[i])
			if out[i] = a.Data; a.Rest != nil {
				s.pieced[[2]int{node, parts[i]}] = &pieced{a.Rest, []*mapOutput{&a.Rest.Kept}}
				again, unfinished = append(again, i), append(unfinished, parts[i])
			}
		}
		if len(unfinished) > 0 {
			if err := s.finishPieces(ctx, node, unfinished); err != nil {
				return nil, err
			}
		}
		if len(again) < len(left) || len(unfinished) > 0 {
			round = 0 // it gets on
		}
		left = again
	}
	return out, nil
}

// take notes what a task says beside its result.
func (s *Session) take(raw []byte) (answer, error) {
	var a answer
	if err := cborReading.Unmarshal(raw, &a); err != nil {
		return a, fault.New(fault.Corrupt, "read", "a task's answer", err)
	}
	for _, t := range a.Says.Tallies {
		if s.tallies[t.Node] == nil {
			s.tallies[t.Node] = map[int]int64{}
		}
		s.tallies[t.Node][t.Part] = t.N
	}
	return a, nil
}

// request tells each task where its inputs lie.
func (s *Session) request(node, pack int, parts []int, args [][]byte, left []int) (CallRequest, error) {
	req := CallRequest{Node: node, Pack: pack}
	s.attempt++
	common, err := s.commonArgs(node)
	if err != nil {
		return req, err
	}
	shared := &told{outputs: map[int][]byte{}, holders: map[int][]string{}}
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
		if failed = firstError(failed, err); failed != nil {
			return req, failed
		}
		for _, h := range pieces {
			held[h] = true
		}
		if pack == NoPack && pieces == nil {
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

// commonArgs are what all tasks of a node are told alike.
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

// prepare runs the map tasks whose outputs a node needs and that are not there.
// While those of one shuffle are made, those of another may be lost.
func (s *Session) prepare(ctx context.Context, node int) error {
	for range maxRounds {
		missing := false
		for _, id := range s.g.shufflesOf(node) {
			made, err := s.runMaps(ctx, id)
			if err != nil {
				return err
			}
			missing = missing || made > 0
		}
		if !missing {
			return nil
		}
	}
	return fault.Newf(fault.LostInput, "run", s.g.name(node), "what it reads was lost %d times", maxRounds)
}

// runMaps runs the map tasks of a shuffle whose outputs are not there, and says
// how many those were.
func (s *Session) runMaps(ctx context.Context, id int) (int, error) {
	if s.shuffled[id] == nil {
		if err := s.settleInputs(ctx, id); err != nil {
			return 0, err
		}
		s.shuffled[id] = make([]*mapOutput, s.g.nodes[id].shuffle.maps())
		s.digests[id] = map[int]uint64{}
		s.sums[id] = &outputSums{noted: make([]bool, len(s.shuffled[id]))}
	}
	var parts []int
	for m, o := range s.shuffled[id] {
		if o == nil {
			parts = append(parts, m)
		}
	}
	if len(s.shuffled[id]) == 0 { // of no partitions: no map task will be the last
		return 0, s.afterMaps(id)
	}
	if len(parts) == 0 {
		return 0, nil
	}
	if r := s.loopRuns[id]; r != nil && r.rounds > 0 {
		return 0, errRoundLost
	}
	raws, err := s.callOn(ctx, id, NoPack, parts, make([][]byte, len(parts)))
	if err != nil {
		return 0, err
	}
	for k, raw := range raws {
		o := &mapOutput{}
		if err := cborReading.Unmarshal(raw, o); err != nil {
			return 0, fault.New(fault.Corrupt, "read", "what a map task says", err)
		}
		if err := s.sameRows(id, parts[k], o.Digest); err != nil {
			return 0, err
		}
		s.noteOutput(id, parts[k], o)
		raws[k] = nil
	}
	if err := s.copyOutputs(ctx, id, parts); err != nil {
		return 0, err
	}
	return len(parts), s.afterMaps(id)
}

// sameRows compares what a map task has made with what it made before that was lost.
// Rows that were computed from the first rows may be in results, or in other
// outputs: where the second are others, no result could be right.
func (s *Session) sameRows(id, m int, digest uint64) error {
	if before, made := s.digests[id][m]; made && before != digest {
		return fault.Newf(fault.UserCode, "make again", fmt.Sprintf("map task %d of %s", m, s.g.name(id)),
			"what it had made was lost, and made again its rows are others: the functions before it are not deterministic").
			WithHint("let functions depend on their arguments only (seed random numbers by the partition, sort what comes out of a Go map), or Checkpoint the rows before")
	}
	s.digests[id][m] = digest
	return nil
}

// copyOutputs has other executors hold copies of outputs, where that is asked for
// and there are others.
func (s *Session) copyOutputs(ctx context.Context, id int, parts []int) error {
	d := s.g.nodes[id].shuffle
	for n := 1; n < d.copies && s.cfg.Copies; n++ {
		args, avoid := make([][]byte, len(parts)), make([][]string, len(parts))
		for k, m := range parts {
			o := s.shuffled[id][m]
			if o == nil {
				return nil // it was lost meanwhile, and will be made again
			}
			var err error
			if args[k], err = cborMode.Marshal(o); err != nil {
				return err
			}
			avoid[k] = o.Holders
		}
		raws, err := s.copyTo(ctx, d.copier, parts, args, avoid)
		if err != nil {
			return err
		}
		for k, raw := range raws {
			var holder string
			if err := cborReading.Unmarshal(raw, &holder); err == nil && holder != "" {
				o := s.shuffled[id][parts[k]]
				o.Holders = append(o.Holders, holder)
			}
		}
	}
	return nil
}

// copyTo runs the tasks that copy outputs. A copy that fails for want of its
// original is none.
func (s *Session) copyTo(ctx context.Context, node int, parts []int, args [][]byte, avoid [][]string) ([][]byte, error) {
	s.attempt++
	req := CallRequest{Node: node, Pack: NoPack, Partitions: parts, Avoid: avoid}
	for _, a := range args {
		raw, err := cborMode.Marshal(taskArgs{Attempt: s.attempt, Args: a})
		if err != nil {
			return nil, err
		}
		req.Args = append(req.Args, raw)
	}
	req.Holders = append(req.Holders, avoid...) // whom it is read from
	data, _, err := s.cluster.RunCall(ctx, req)
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

// afterMaps looks at what all map tasks of a shuffle have made.
func (s *Session) afterMaps(id int) error {
	if s.seen[id] || slices.Contains(s.shuffled[id], nil) {
		return nil
	}
	s.seen[id] = true
	n := &s.g.nodes[id]
	if key, share := hotOf(s.shuffled[id]); key != "" && s.cfg.Warn != nil {
		s.cfg.Warn(fmt.Sprintf("hot key: %.0f %% of the rows of %s have the key %q: one task gets them all", 100*share, s.g.name(id), key))
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

// lose forgets the outputs that an error says are gone: all of a holder that
// cannot be reached, or those of it that the node reads.
func (s *Session) lose(node int, err error) {
	var f *fault.Error
	if !errors.As(err, &f) {
		return
	}
	for id, outputs := range s.shuffled {
		if f.Op != "reach" && !slices.Contains(s.g.shufflesOf(node), id) {
			continue
		}
		for m, o := range outputs {
			if o == nil || !slices.Contains(o.Holders, f.Subject) {
				continue
			}
			o.Holders = slices.DeleteFunc(slices.Clone(o.Holders), func(h string) bool { return h == f.Subject })
			if len(o.Holders) == 0 {
				outputs[m] = nil
			}
		}
	}
}

// settle decides what is still open about a node and what it is computed from:
// which of its alternatives is taken, and which small partitions are joined.
func (s *Session) settle(ctx context.Context, id int) error {
	n := &s.g.nodes[id]
	if s.settled[id] {
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
		if _, err := s.runMaps(ctx, sh); err != nil {
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

// joinNeighbours is where runs of partitions begin that have up to a number of bytes
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
