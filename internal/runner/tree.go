package runner

import "github.com/volley-engine/volley/internal/fault"

// Part is one node of the merge tree: its level (0 is a split, those below are
// halves of splits, and their halves) and its index within the level.
type Part struct {
	Level, Index int
	Acc          *Acc
}

// Reduce merges the results of the splits that one executor holds into its
// maximal complete subtrees. held lists the splits that it was assigned: a
// subtree is complete where every split below it was. A split without result,
// accs[i] == nil, is the identity.
func Reduce(f Folder, splits int, held map[int]bool, accs map[int]*Acc) []Part {
	var parts []Part
	for level, index := range maximal(splits, held) {
		if acc := subtree(f, level, index, splits, accs); acc != nil {
			parts = append(parts, Part{Level: level, Index: index, Acc: acc})
		}
	}
	return parts
}

// maximal yields the largest subtrees whose splits are all held, left to
// right.
func maximal(splits int, held map[int]bool) func(yield func(level, index int) bool) {
	return func(yield func(int, int) bool) {
		for i := 0; i < splits; {
			if !held[i] {
				i++
				continue
			}
			level := 0
			for level < Levels(splits) && i%(2<<level) == 0 && allHeld(i, i+2<<level, splits, held) {
				level++
			}
			if !yield(level, i>>level) {
				return
			}
			i += 1 << level
		}
	}
}

// allHeld reports whether the splits [from, to) that exist are all held.
func allHeld(from, to, splits int, held map[int]bool) bool {
	for i := from; i < min(to, splits); i++ {
		if !held[i] {
			return false
		}
	}
	return true
}

// subtree merges the results below one node.
func subtree(f Folder, level, index, splits int, accs map[int]*Acc) *Acc {
	if index<<level >= splits {
		return nil
	}
	if level == 0 {
		return accs[index]
	}
	return merge(f, subtree(f, level-1, 2*index, splits, accs), subtree(f, level-1, 2*index+1, splits, accs))
}

// PartOf names a part of a split: the Part-th of Parts.
type PartOf struct{ Split, Part, Parts int }

// ReduceParts merges parts of splits that one executor has folded, as Reduce does
// with splits. A part without visited rows has a nil result. whole is called with
// the result of a split all of whose parts are there, before it is merged with
// others.
func ReduceParts(f Folder, splits int, pieces map[PartOf]*Acc, whole func(split int, acc *Acc)) []Part {
	held, accs := map[int]bool{}, map[int]*Acc{}
	var parts []Part
	bySplit := make([][]*Acc, splits)
	have := make([]map[int]bool, splits)
	for p, acc := range pieces {
		if bySplit[p.Split] == nil {
			bySplit[p.Split], have[p.Split] = make([]*Acc, p.Parts), map[int]bool{}
		}
		bySplit[p.Split][p.Part], have[p.Split][p.Part] = acc, true
	}
	for split, leaves := range bySplit {
		if leaves == nil {
			continue
		}
		if len(have[split]) == len(leaves) {
			held[split] = true
			if acc := mergeTree(f, leaves); acc != nil {
				whole(split, acc)
				accs[split] = acc
			}
			continue
		}
		parts = append(parts, halves(f, split, leaves, have[split])...)
	}
	return append(Reduce(f, splits, held, accs), parts...)
}

// halves returns the largest complete subtrees within a split.
func halves(f Folder, split int, leaves []*Acc, have map[int]bool) (parts []Part) {
	n := len(leaves)
	accs := map[int]*Acc{}
	for i, acc := range leaves {
		accs[i] = acc
	}
	for _, p := range Reduce(f, n, have, accs) {
		parts = append(parts, Part{Level: p.Level - Levels(n), Index: split*(n>>p.Level) + p.Index, Acc: p.Acc})
	}
	return parts
}

// Complete merges the parts of all executors to the root; nil where there is
// none. whole is called with the results of splits whose parts came from several
// executors. Parts that overlap, or that are no subtree of the root, are an error: no row counts twice or not at all.
func Complete(f Folder, splits int, parts []Part, whole func(split int, acc *Acc)) (*Acc, error) {
	t := &partial{f: f, at: map[[2]int]*Acc{}, lowest: 0, whole: whole}
	for _, p := range parts {
		t.at[[2]int{p.Level, p.Index}] = p.Acc
		t.lowest = min(t.lowest, p.Level)
	}
	acc := t.root(Levels(splits), 0)
	if t.merged != len(parts) {
		return nil, fault.Newf(fault.Corrupt, "merge", "the results of a step",
			"%d of %d parts are subtrees of their own", t.merged, len(parts))
	}
	return acc, nil
}

// partial is a merge tree with some of its nodes.
type partial struct {
	f      Folder
	at     map[[2]int]*Acc
	lowest int // level
	merged int // parts that root has taken
	whole  func(split int, acc *Acc)
}

func (t *partial) root(level, index int) *Acc {
	acc, ok := t.at[[2]int{level, index}]
	if ok {
		t.merged++
	}
	if ok || level == t.lowest {
		return acc
	}
	acc = merge(t.f, t.root(level-1, 2*index), t.root(level-1, 2*index+1))
	if level == 0 && acc != nil {
		t.whole(index, acc)
	}
	return acc
}
