package kmeans

import (
	"math"
	"slices"
	"sync"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/rdd"
)

// Bounds on distances spare passes of k-means the look for the nearest centre of most
// rows once few of them change theirs (Hamerly, Making k-means even faster, SDM 2010):
// of a row it is known how much farther than the nearest centre all others were, and
// since then no centre has moved farther than it has. Which centre is the nearest, and
// how far it is, comes out the same, bit for bit; what is known lies with the rows, and
// may be lost.
//
// Bounds cost a pass what it takes to find the second nearest centre, too. So they are
// made only where there are many centres, after some passes, and once hardly any of a
// run of rows change theirs; where they turn out to spare too few, they are not made
// again for some passes. BenchmarkBounds measures what they could save.
const (
	boundedAfter   = 16   // passes, of which the first ones move all centres
	boundedCentres = 32   // least number of centres
	boundedColumns = 1500 // least number of all centres' columns
	settledShare   = 0.1  // of rows that change their centre
	sparedShare    = 0.2
	sparedAgain    = 5 // passes until it is looked again whether bounds spare more
)

// What stands in the place of a gap that is not known.
const (
	unsettled float32 = -1 // many of the rows around changed their centre
	settled   float32 = -2 // few did; lower: the same, but that many passes are to go by
)

// rowNotes are what is known of the rows of a batch.
type rowNotes struct {
	mu    sync.Mutex
	reach float64 // no row that a gap is known of is longer
	row   []rowNote
}

// rowNote is what is known of a row.
type rowNote struct {
	at    int32   // the centre that was the nearest
	gap   float32 // how much farther all others were, at the least, or one of the above
	under uint32  // the number of the centres, 0 for none
}

func newRowNotes(n int) any { return &rowNotes{row: make([]rowNote, n)} }

// read copies the notes of some rows.
func (r *rowNotes) read(out []rowNote, rows []int32) (reach float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, row := range rows {
		out[i] = r.row[row]
	}
	return r.reach
}

// write puts them back.
func (r *rowNotes) write(notes []rowNote, rows []int32, reach float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, row := range rows {
		r.row[row] = notes[i]
	}
	r.reach = max(r.reach, reach)
}

// centreSets numbers centres of passes, of which it knows the last ones.
type centreSets struct {
	mu   sync.Mutex
	last []centreSet
	next uint32
}

type centreSet struct {
	number    uint32
	at, shift []float64
}

const knownSets = 8

// number returns the number of some centres, which must not change any more, counted from 1.
func (s *centreSets) number(c *centres) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range s.last {
		if set.about(c) && (&set.at[0] == &c.At[0] || slices.Equal(set.at, c.At)) {
			return set.number
		}
	}
	if len(s.last) == knownSets {
		s.last = slices.Delete(s.last, 0, 1)
	}
	s.next++
	s.last = append(s.last, centreSet{s.next, c.At, c.Shift})
	return s.next
}

// about reports whether distances are taken about the same, and centres are as many.
func (s *centreSet) about(c *centres) bool {
	return len(s.at) == len(c.At) && slices.Equal(s.shift, c.Shift)
}

// before returns the centres of a number; nil where they are not known any more, or
// have nothing to do with those of now.
func (s *centreSets) before(number uint32, c *centres) []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range s.last {
		if set.number == number && set.about(c) {
			return set.at
		}
	}
	return nil
}

// movement is how far centres have moved from one pass to another.
type movement struct {
	from, to  uint32
	by        []float64
	first     int32   // the centre that has moved the farthest
	far, next float64 // how far it and the one after it have
}

func movementOf(from, to uint32, before, now []float64, d int) *movement {
	m := &movement{from: from, to: to, by: make([]float64, len(now)/d)}
	for c := range m.by {
		var sq float64
		for j := c * d; j < (c+1)*d; j++ {
			sq = math.FMA(now[j]-before[j], now[j]-before[j], sq)
		}
		m.by[c] = math.Sqrt(sq)
		if m.by[c] > m.far {
			m.first, m.far, m.next = int32(c), m.by[c], m.far
		} else {
			m.next = max(m.next, m.by[c])
		}
	}
	return m
}

// narrowed returns how much of a gap is left for a row of centre at.
func (m *movement) narrowed(gap float64, at int32) float64 {
	others := m.far
	if at == m.first {
		others = m.next
	}
	return gap - m.by[at] - others
}

// bounds is what a worker of bounded passes keeps from one run of rows to the next.
type bounds struct {
	notes      []rowNote
	movements  []*movement
	kept, open subset
	asked      []float64 // centres of the last run
	pass       uint32    // their number
	longest    float64   // the greatest length of one
	spared     bool      // the last run was found by bounds
}

// subset are some rows of a run: their places in it, and what is asked about them.
type subset struct {
	place, rows, at       []int32
	squared, second, size []float64
}

func (s *subset) clear() {
	s.place, s.rows, s.at, s.size = s.place[:0], s.rows[:0], s.at[:0], s.size[:0]
}

func (s *subset) add(place int, row, at int32, scale []float64) {
	s.place, s.rows, s.at = append(s.place, int32(place)), append(s.rows, row), append(s.at, at)
	if scale != nil {
		s.size = append(s.size, scale[place])
	}
}

// ready allocates answers, and returns the scales of rows.
func (s *subset) ready(scale []float64) []float64 {
	n := len(s.rows)
	s.squared, s.second = slices.Grow(s.squared[:0], n)[:n], slices.Grow(s.second[:0], n)[:n]
	if scale == nil {
		return nil
	}
	return s.size
}

// movement returns how centres have moved from a pass to this one; nil where that is not known.
func (w *bounds) movement(sets *centreSets, from uint32, c *centres) *movement {
	for _, m := range w.movements {
		if m.from == from && m.to == w.pass {
			return m
		}
	}
	before := sets.before(from, c)
	if before == nil {
		return nil
	}
	m := movementOf(from, w.pass, before, c.At, c.D)
	if len(w.movements) == knownSets {
		w.movements = w.movements[:0]
	}
	w.movements = append(w.movements, m)
	return m
}

// pays reports whether bounds may pay for centres.
func pays(c *centres) bool { return c.K >= boundedCentres && c.K*c.D >= boundedColumns }

// ask returns the number of some centres; a worker mostly asks again about the same ones.
func (w *bounds) ask(sets *centreSets, c *centres) uint32 {
	if len(w.asked) != len(c.At) || &w.asked[0] != &c.At[0] {
		w.asked, w.pass, w.longest = c.At, sets.number(c), math.Sqrt(longest(c))
	}
	return w.pass
}

// findBounded does what kernel.FindNearest does for the rows of a batch, by bounds
// where these may pay.
func findBounded[T kernel.Float](a *assigner, w *assignWork, c *centres, b *rdd.Batch, x []T, scale []float64) {
	w.near.Set(c.At, c.K, c.D, c.Shift)
	if pays(c) && w.bounds.ask(&a.sets, c) > boundedAfter {
		if notes, ok := b.Notes(a, newRowNotes).(*rowNotes); ok {
			findNoted(a, w, c, x, b.Rows, notes, scale)
			return
		}
	}
	kernel.FindNearest(&w.near, w.at, w.squared, x, b.Rows, c.Shift, scale)
}

// findNoted does what kernel.FindNearest does for some rows of x, by notes of all
// rows of it, for centres that were asked about.
func findNoted[T kernel.Float](a *assigner, w *assignWork, c *centres, x []T, rows []int32, notes *rowNotes,
	scale []float64) {
	v := &w.bounds
	v.notes = slices.Grow(v.notes[:0], len(rows))[:len(rows)]
	reach := notes.read(v.notes, rows)
	first := v.notes[0].gap
	if v.notes[0].under == 0 {
		first = unsettled
	}
	v.sort(a, c, rows, margin(c.D)*(v.longest+reach), scale)
	v.spared = float64(len(v.kept.rows)) >= float64(sparedShare*float64(len(rows)))
	switch {
	case v.spared:
		reach = findAround(w, c, x, scale)
	case first == settled:
		reach = findTwo(w, c, rows, x, scale)
	default:
		findAll(w, c, rows, x, scale, first)
	}
	for i := range v.notes {
		v.notes[i].under = v.pass
	}
	notes.write(v.notes, rows, reach)
}

// margin returns what part of lengths gaps must have for rounding not to matter: the
// error of a difference of squared distances is a few units of the last place for
// each column.
func margin(d int) float64 { return 1e-6 * math.Sqrt(float64(d+8)) }

// longest returns the greatest squared length of a centre.
func longest(c *centres) (most float64) {
	for k := range c.K {
		var sq float64
		for j := range c.D {
			v := c.At[k*c.D+j]
			if c.Shift != nil {
				v -= c.Shift[j]
			}
			sq = math.FMA(v, v, sq)
		}
		most = max(most, sq)
	}
	return most
}

// sort parts the rows whose nearest centre is known from those that are open.
func (w *bounds) sort(a *assigner, c *centres, rows []int32, least float64, scale []float64) {
	w.kept.clear()
	w.open.clear()
	var m *movement
	for i := range w.notes {
		n := &w.notes[i]
		if n.gap > 0 && n.under > 0 {
			if m == nil || m.from != n.under {
				m = w.movement(&a.sets, n.under, c)
			}
			if m != nil {
				if gap := m.narrowed(float64(n.gap), n.at); gap > least {
					n.gap = rounded(gap)
					w.kept.add(i, rows[i], n.at, scale)
					continue
				}
			}
		}
		w.open.add(i, rows[i], n.at, scale)
	}
}

// rounded returns a little less than a gap, in single precision.
func rounded(gap float64) float32 {
	if gap < 1e-30 { // single precision has hardly any digits there
		return 0
	}
	return float32(min(gap, math.MaxFloat32/2) * (1 - 1e-6))
}

// findAround looks for the nearest centres of rows that are open only.
func findAround[T kernel.Float](w *assignWork, c *centres, x []T, scale []float64) (reach float64) {
	v := &w.bounds
	k, o := &v.kept, &v.open
	kernel.FindDistances(&w.near, k.at, k.squared, x, k.rows, c.Shift, k.ready(scale))
	for i, at := range k.place {
		w.at[at], w.squared[at] = k.at[i], k.squared[i]
	}
	by := o.ready(scale)
	kernel.FindNearestTwo(&w.near, o.at, o.squared, o.second, x, o.rows, c.Shift, by)
	for i, at := range o.place {
		w.at[at], w.squared[at] = o.at[i], o.squared[i]
		reach = max(reach, v.note(int(at), o.at[i], o.squared[i], o.second[i], c.D))
	}
	return reach
}

// findTwo looks for the second nearest centres, too.
func findTwo[T kernel.Float](w *assignWork, c *centres, rows []int32, x []T, scale []float64) (reach float64) {
	v := &w.bounds
	v.open.second = slices.Grow(v.open.second[:0], len(rows))[:len(rows)]
	kernel.FindNearestTwo(&w.near, w.at, w.squared, v.open.second, x, rows, c.Shift, scale)
	for i, second := range v.open.second {
		reach = max(reach, v.note(i, w.at[i], w.squared[i], second, c.D))
	}
	return reach
}

// note notes a row's two nearest centres, and says how long the row is at the most.
func (w *bounds) note(i int, at int32, squared, second float64, d int) (reach float64) {
	near, far := math.Sqrt(squared), math.Sqrt(second)
	reach = w.longest + near
	w.notes[i].at, w.notes[i].gap = at, rounded(far-near-margin(d)*reach)
	return reach
}

// findAll looks for the nearest centres of all rows, and notes whether they have
// settled.
func findAll[T kernel.Float](w *assignWork, c *centres, rows []int32, x []T, scale []float64, first float32) {
	kernel.FindNearest(&w.near, w.at, w.squared, x, rows, c.Shift, scale)
	changed, notes := 0, w.bounds.notes
	for i, at := range w.at {
		if notes[i].under == 0 || notes[i].at != at {
			changed++
		}
	}
	gap := unsettled
	switch {
	case first >= 0: // bounds have spared too few
		gap = settled - sparedAgain
	case first < settled:
		gap = first + 1
	case float64(changed) <= float64(settledShare*float64(len(rows))):
		gap = settled
	}
	for i, at := range w.at {
		notes[i].at, notes[i].gap = at, gap
	}
}
