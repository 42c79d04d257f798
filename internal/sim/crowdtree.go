package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
)

// folded is an executor's result on its way: when it left, or was merged with those of others.
type folded struct {
	at    plan.Time
	parts []*wire.Part
}

// mergeRate is how many bytes a second an executor merges.
const mergeRate = 4e9

// gather merges results along a tree of executors, FanIn at a time, and then at the driver: what each group has is sent
// over the link of its first, one after the other, and merged into the largest subtrees. It lets the time pass that
// this takes beyond the driver's answer.
func (s *crowd) gather() []plan.EncodedPart {
	var level []folded
	for _, n := range s.order {
		if f, ok := s.folds[n.id]; ok && len(f.parts) > 0 {
			level = append(level, f)
		}
	}
	s.step.Hops = 1
	for len(level) > s.cfg.FanIn {
		var up []folded
		for i := 0; i < len(level); i += s.cfg.FanIn {
			up = append(up, s.mergeGroup(level[i:min(i+s.cfg.FanIn, len(level))]))
		}
		level = up
		s.step.Hops++
	}
	root := s.received(level)
	s.w.now = max(s.w.now, root.at)
	var out []plan.EncodedPart
	for _, p := range root.parts {
		s.step.Received += int64(len(p.Data))
		out = append(out, plan.EncodedPart{Level: int(p.Level), Index: int(p.Index), Data: p.Data})
	}
	return out
}

// received returns what comes over one link from others, one after the other.
func (s *crowd) received(group []folded) (all folded) {
	var link plan.Time
	for i, f := range group {
		if all.parts = append(all.parts, f.parts...); i == 0 {
			link = f.at
			continue
		}
		link = max(link, f.at) + plan.Time(float64(bytesOf(f.parts))/bandwidth*float64(time.Second))
	}
	all.at = link + messageDelay
	return all
}

func bytesOf(parts []*wire.Part) (n int) {
	for _, p := range parts {
		n += len(p.Data)
	}
	return n
}

// mergeGroup merges the results of a group on its first.
func (s *crowd) mergeGroup(group []folded) folded {
	all, f := s.received(group), adder{s.cfg.Accumulator}
	all.at += plan.Time(float64(bytesOf(all.parts)) / mergeRate * float64(time.Second))
	var parts []runner.Part
	for _, p := range all.parts {
		parts = append(parts, runner.Part{Level: int(p.Level), Index: int(p.Index),
			Acc: &runner.Acc{Value: decodeTotal(p.Data)}})
	}
	all.parts = f.parts(joined(f, len(s.rows), parts))
	return all
}

// joined merges parts into the largest subtrees that they make up, as one executor merges what it has: a subtree's left
// half with its right one, which is empty beyond the last split.
func joined(f runner.Folder, splits int, parts []runner.Part) []runner.Part {
	slices.SortFunc(parts, func(a, b runner.Part) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Index, b.Index))
	})
	for i := 0; i < len(parts); i++ {
		p := parts[i]
		beyond := p.Level >= 0 && (p.Index+1)<<p.Level >= splits
		pair := i+1 < len(parts) && parts[i+1].Level == p.Level && parts[i+1].Index == p.Index+1
		if p.Level >= runner.Levels(splits) || p.Index%2 == 1 || !pair && !beyond {
			continue
		}
		up, width := runner.Part{Level: p.Level + 1, Index: p.Index / 2, Acc: p.Acc}, 1
		if pair {
			up.Acc, width = &runner.Acc{Value: f.Merge(p.Acc.Value, parts[i+1].Acc.Value)}, 2
		}
		parts = slices.Delete(parts, i, i+width)
		at, _ := slices.BinarySearchFunc(parts, up, func(a, b runner.Part) int {
			return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Index, b.Index))
		})
		parts = slices.Insert(parts, at, up)
		i--
	}
	return parts
}
