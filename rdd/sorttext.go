package rdd

import (
	"cmp"
	"slices"
	"strings"
)

// Texts are sorted by numbers that stand for eight bytes of them. Where many begin
// alike, as URLs do, the first eight say nothing: what they all begin with is passed
// over, and the next eight are sorted by, until few are left that are the same so far.

// sharedText is what all texts of a sorter begin with, as far as is known: ranks are of what
// comes after it. When it turns out to be less they are made again, unless that has cost
// too much already: then it is nothing.
type sharedText struct {
	known bool
	text  string
	again int // ranks made again
}

// sharedWorth is how many times as many ranks may be made again as there are rows.
const sharedWorth = 4

// rank is the rank of a row that is about to be added.
func (s *sorter[T]) rank(row *T) (uint64, error) {
	if s.order.text == nil {
		return s.order.rank(row), nil
	}
	text := s.order.text(row)
	if !s.shared.known {
		s.shared = sharedText{known: true, text: strings.Clone(text)}
	}
	if !strings.HasPrefix(text, s.shared.text) {
		if err := s.shareLess(sharedPrefix(text, s.shared.text)); err != nil {
			return 0, err
		}
	}
	return s.order.rankPast(row, len(s.shared.text)), nil
}

// shareLess makes ranks again of rows that share less than was known.
func (s *sorter[T]) shareLess(shared int) error {
	if s.shared.again += len(s.list); s.shared.again > sharedWorth*len(s.list)+fewRanked {
		shared = 0
	}
	s.shared.text = s.shared.text[:shared]
	var text arena
	for i := range s.list {
		var row T
		if _, err := s.row.parse(s.bytesAt(s.list[i].row), &row, &text); err != nil {
			return corruptRow(err)
		}
		s.list[i].rank = s.order.rankPast(&row, shared)
	}
	return nil
}

// sharedPrefix is how many bytes two texts have in common.
func sharedPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// sortTexts puts rows of one rank in the order of their keys, which are texts; equal ones
// keep theirs.
func (s *sorter[T]) sortTexts(list []ranked) error {
	var text arena
	keys := make([]string, len(list))
	for i := range list {
		var row T
		if _, err := s.row.parse(s.bytesAt(list[i].row), &row, &text); err != nil {
			return corruptRow(err)
		}
		keys[i] = s.order.text(&row)
	}
	at := make([]ranked, len(list))
	for i := range at {
		at[i].row = uint32(i)
	}
	t := textSorter{keys: keys, down: s.order.down, spare: make([]ranked, len(list))}
	t.sort(at, 0)
	places := make([]uint32, len(list))
	for i := range list {
		places[i] = list[i].row
	}
	for i := range list {
		list[i].row = places[at[i].row]
	}
	return nil
}

// textSorter sorts numbers of texts.
type textSorter struct {
	keys  []string
	down  bool
	spare []ranked
}

// sort sorts some, which are the same up to a byte.
func (t *textSorter) sort(at []ranked, from int) {
	if len(at) < fewRanked {
		t.compare(at)
		return
	}
	from, same := t.common(at, from)
	if same {
		return
	}
	for i := range at {
		at[i].rank = textRank(t.keys[at[i].row][from:])
		if t.down {
			at[i].rank = ^at[i].rank
		}
	}
	copy(at, sortRankedIn(at, t.spare[:len(at)]))
	for a := 0; a < len(at); {
		b, ended := a, false
		for ; b < len(at) && at[b].rank == at[a].rank; b++ {
			ended = ended || len(t.keys[at[b].row]) < from+8
		}
		switch run := at[a:b]; {
		case len(run) == 1:
		case ended: // a rank does not tell the end from a zero
			t.compare(run)
		default:
			t.sort(run, from+8)
		}
		a = b
	}
}

// common returns up to where texts are the same that are so up to a byte, and whether
// they are the same to their ends.
func (t *textSorter) common(at []ranked, from int) (to int, same bool) {
	first := t.keys[at[0].row]
	to, same = len(first), true
	for i := range at {
		key := t.keys[at[i].row]
		same = same && len(key) == len(first)
		to = min(to, len(key))
		for k := from; k < to; k++ {
			if key[k] != first[k] {
				to, same = k, false
			}
		}
	}
	return max(to, from), same && to == len(first)
}

func (t *textSorter) compare(at []ranked) {
	slices.SortStableFunc(at, func(a, b ranked) int {
		c := cmp.Compare(t.keys[a.row], t.keys[b.row])
		if t.down {
			return -c
		}
		return c
	})
}
