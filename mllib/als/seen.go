package als

import (
	"math"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/rdd"
)

// seenItems are the items that each user has rated in training, by their places:
// those of user u are Items[Ends[u-1]:Ends[u]], ascending. The zero value is not known.
type seenItems struct {
	Ends  []int64
	Items []int32
}

// known reports whether it is known what users have rated.
func (s *seenItems) known() bool { return len(s.Ends) > 0 }

// of returns the places of what a user has rated.
func (s *seenItems) of(user int) []int32 {
	if user >= len(s.Ends) {
		return nil
	}
	from := int64(0)
	if user > 0 {
		from = s.Ends[user-1]
	}
	return s.Items[from:s.Ends[user]]
}

// addSeen appends, of each user's row, its number, how many items it has, and their
// places.
func addSeen(out []float64, _ int, b *rdd.Batch) []float64 {
	for _, r := range b.Rows {
		items := b.Indices[b.Offsets[r]:b.Offsets[r+1]]
		out = append(out, b.Labels[r], float64(len(items)))
		for _, i := range items {
			out = append(out, float64(i))
		}
	}
	return out
}

// gatherSeen puts what splits know of users, whose numbers are users, together.
func gatherSeen(splits [][]float64, users []float64) (s seenItems, err error) {
	rows := make([][]float64, len(users))
	total := 0
	for _, v := range splits {
		for len(v) > 1 {
			n := int(v[1])
			u, ok := slices.BinarySearch(users, v[0])
			if !ok || n < 0 || 2+n > len(v) {
				return s, fault.Newf(fault.Internal, "gather", "ratings", "user %v is not one of the model", v[0])
			}
			rows[u], v = v[2:2+n], v[2+n:]
			total += n
		}
	}
	s.Items = make([]int32, 0, total)
	for _, row := range rows {
		from := len(s.Items)
		for _, i := range row {
			s.Items = append(s.Items, int32(i))
		}
		slices.Sort(s.Items[from:])
		s.Items = append(s.Items[:from], slices.Compact(s.Items[from:])...)
		s.Ends = append(s.Ends, int64(len(s.Items)))
	}
	return s, nil
}

// parse takes what each user has rated over, from the numbers of the items.
func (s *seenItems) parse(from *model.Stored, rated [][]int64, m *Model) {
	for _, items := range rated[:min(len(rated), m.Users)] {
		for _, id := range items {
			place, ok := slices.BinarySearch(m.items.IDs, float64(id))
			if !ok {
				from.Fail("a user has rated an item that is not there")
			}
			s.Items = append(s.Items, int32(place))
		}
		s.Ends = append(s.Ends, int64(len(s.Items)))
	}
	if int64(len(s.Items)) != m.Seen {
		from.Fail("it has not as many pairs of users and items as model.json says")
	}
}

// leaveOut puts what a user has rated in training, or who has rated an item, below
// everything else, unless it is to be kept.
func (m *Model) leaveOut(id float64, forUsers bool, scores []float64, keep func(id, other float64) bool) {
	if forUsers {
		u, _ := slices.BinarySearch(m.users.IDs, id)
		for _, i := range m.seen.of(u) {
			if keep == nil || !keep(id, m.items.IDs[i]) {
				scores[i] = math.Inf(-1)
			}
		}
		return
	}
	i, _ := slices.BinarySearch(m.items.IDs, id)
	for u := range scores {
		if _, rated := slices.BinarySearch(m.seen.of(u), int32(i)); rated &&
			(keep == nil || !keep(id, m.users.IDs[u])) {
			scores[u] = math.Inf(-1)
		}
	}
}
