package runner

// Part is one node of the merge tree over splits: its level (0 is a split)
// and its index within the level.
type Part struct {
	Level, Index int
	Acc          *Acc
}

// Reduce merges the results of the splits that one executor holds into its
// maximal complete subtrees. held says which splits it was given: a subtree is
// complete where every split below it was. A split without result, accs[i] ==
// nil, is the identity.
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

// allHeld says whether the splits [from, to) that exist are all held.
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

// Complete merges the parts of all executors to the root; nil where there is
// none.
func Complete(f Folder, splits int, parts []Part) *Acc {
	at := map[[2]int]*Acc{}
	for _, p := range parts {
		at[[2]int{p.Level, p.Index}] = p.Acc
	}
	return root(f, Levels(splits), 0, at)
}

func root(f Folder, level, index int, at map[[2]int]*Acc) *Acc {
	if acc, ok := at[[2]int{level, index}]; ok || level == 0 {
		return acc
	}
	return merge(f, root(f, level-1, 2*index, at), root(f, level-1, 2*index+1, at))
}
