package exec

import (
	"cmp"
	"slices"
	"strings"

	"github.com/volley-engine/volley/rdd/internal/row"
)

// Texts are sorted by numbers that stand for eight bytes of them. Where many begin
// alike, as URLs do, the first eight say nothing: what they all begin with is passed
// over, and the next eight are sorted by, until few are left that are the same so far.

// sharedText is the prefix that all texts of a sorter share, as far as is known: ranks are of the bytes after
// it. When it turns out to be shorter, ranks are computed again; once that has cost too much, the prefix is
// empty.
type sharedText struct {
	known bool
	text  string
	again int // ranks made again
}

// sharedWorth bounds the ranks computed again, as a multiple of the rows.
const sharedWorth = 4

// rank returns the rank of a row that is about to be added.
func (s *Sorter[T]) rank(row *T) (uint64, error) {
	if s.order.text == nil {
		return s.order.rank(row), nil
	}
	text := s.order.text(row)
	if !s.shared.known {
		s.shared = sharedText{known: true, text: strings.Clone(text)}
	}
	if !strings.HasPrefix(text, s.shared.text) {
		if err := s.shareLess(SharedPrefix(text, s.shared.text)); err != nil {
			return 0, err
		}
	}
	return s.order.rankPast(row, len(s.shared.text)), nil
}

// shareLess shortens the shared prefix, and computes all ranks again.
func (s *Sorter[T]) shareLess(shared int) error {
	if s.shared.again += len(s.list); s.shared.again > sharedWorth*len(s.list)+fewTexts {
		shared = 0
	}
	s.shared.text = s.shared.text[:shared]
	var text row.Arena
	for i := range s.list {
		var r T
		if _, err := s.row.Parse(s.bytesAt(s.list[i].row), &r, &text); err != nil {
			return row.Corrupt(err)
		}
		s.list[i].Rank = s.order.rankPast(&r, shared)
	}
	return nil
}

// SharedPrefix returns how many bytes two texts have in common at their beginning.
func SharedPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// sortTexts sorts rows of equal rank by their keys, which are texts, and keeps the order of equal ones.
func (s *Sorter[T]) sortTexts(list []Ranked) error {
	var text row.Arena
	keys := make([]string, len(list))
	for i := range list {
		var r T
		if _, err := s.row.Parse(s.bytesAt(list[i].row), &r, &text); err != nil {
			return row.Corrupt(err)
		}
		keys[i] = s.order.text(&r)
	}
	at := make([]Ranked, len(list))
	for i := range at {
		at[i].row = uint32(i)
	}
	t := textSorter{keys: keys, down: s.order.down, spare: make([]Ranked, len(list))}
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

// textSorter sorts the indices of texts.
type textSorter struct {
	keys  []string
	down  bool
	spare []Ranked
}

// sort sorts texts whose first bytes are equal up to from.
func (t *textSorter) sort(at []Ranked, from int) {
	if len(at) < fewTexts {
		t.compare(at)
		return
	}
	from, same := t.common(at, from)
	if same {
		return
	}
	for i := range at {
		at[i].Rank = textRank(t.keys[at[i].row][from:])
		if t.down {
			at[i].Rank = ^at[i].Rank
		}
	}
	copy(at, sortRankedIn(at, t.spare[:len(at)]))
	for a := 0; a < len(at); {
		b, ended := a, false
		for ; b < len(at) && at[b].Rank == at[a].Rank; b++ {
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

// common returns up to which byte all texts are equal, given that they are up to from, and whether they are
// equal altogether.
func (t *textSorter) common(at []Ranked, from int) (to int, same bool) {
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

func (t *textSorter) compare(at []Ranked) {
	slices.SortStableFunc(at, func(a, b Ranked) int {
		c := cmp.Compare(t.keys[a.row], t.keys[b.row])
		if t.down {
			return -c
		}
		return c
	})
}
