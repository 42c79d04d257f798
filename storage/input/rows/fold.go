package rows

import (
	"math"
	"math/rand/v2"

	"github.com/cespare/xxhash/v2"
)

// Fold leaves one of n parts of the rows out: those whose place in the input a
// seeded hash sends there. Stratified deals the rows of each label out in turn, so that all parts have their share of
// it. Held reads exactly these. Of the rows that are not left out, the share Stop is held out of training for early
// stopping; Stopping reads exactly these. It depends on the input's files and their order only.
type Fold struct {
	Number     int     `json:"number"` // from 0
	Of         int     `json:"of"`
	Stratified bool    `json:"stratified,omitempty"`
	Held       bool    `json:"held,omitempty"`
	Stop       float64 `json:"stop,omitempty"`
	Stopping   bool    `json:"stopping,omitempty"`
}

// Asked reports whether any row is left out.
func (f *Fold) Asked() bool { return f.Of > 0 || f.Stop > 0 }

// Class is a row's label: a number, or a text.
type Class struct {
	Bits uint64 // of the number
	Text string
}

// ClassOf returns the label of a row of points.
func (c *Chunk) ClassOf(r int) Class {
	switch {
	case r < 0 || r >= len(c.Labels):
		return Class{}
	case c.Texts != nil:
		return Class{Text: c.Texts[int(c.Labels[r])]}
	}
	return Class{Bits: math.Float64bits(c.Labels[r])}
}

// Sieve decides which rows of a part of the input a fold keeps, one row after the other.
type Sieve struct {
	fold Fold
	part uint64
	row  uint64
	of   map[Class]*deal
}

// deal deals the rows of a label out.
type deal struct {
	seed, block uint64
	parts       []int // of the rows to come, up to the end of the block
}

// Sieve returns what decides which rows of a part are kept.
func (f *Fold) Sieve(part int) *Sieve {
	return &Sieve{fold: *f, part: uint64(part), of: map[Class]*deal{}}
}

// Seeds that make the hashes for early stopping, and for labels, different from that of folds.
const (
	stopSeed  = 1 << 40
	labelSeed = 1 << 41
)

// Keeps reports whether the next row is read.
func (s *Sieve) Keeps(label Class) bool {
	f, row := &s.fold, s.row
	s.row++
	if f.Of > 0 && (s.partOf(row, label) == f.Number) != f.Held {
		return false
	}
	return f.Held || f.Stop == 0 ||
		(float64(Mix(stopSeed+s.part, row)>>11)/(1<<53) < f.Stop) == f.Stopping
}

// partOf returns which part of the fold a row is in.
func (s *Sieve) partOf(row uint64, label Class) int {
	n := uint64(s.fold.Of)
	if !s.fold.Stratified {
		return int(Mix(s.part, row) % n)
	}
	d := s.of[label]
	if d == nil {
		// Parts are dealt alike, each from one place further on: of few rows in each of many parts no fold gets more.
		d = &deal{seed: Mix(labelSeed, label.Bits^xxhash.Sum64String(label.Text)), block: s.part / n}
		for range s.part % n {
			d.next(int(n))
		}
		s.of[label] = d
	}
	return d.next(int(n))
}

// next returns the part of the next row: of each n rows one is in each part, and which one has no rhythm.
func (d *deal) next(n int) int {
	if len(d.parts) == 0 {
		d.parts = rand.New(rand.NewPCG(d.seed, d.block)).Perm(n)
		d.block++
	}
	first := d.parts[0]
	d.parts = d.parts[1:]
	return first
}

// Through yields the rows of a part that the fold keeps and that are not dropped.
func (f *Fold) Through(part int, yield func(*Chunk) error) func(*Chunk) error {
	sieve := f.Sieve(part)
	return func(c *Chunk) error {
		kept := make([]bool, c.Rows())
		for r := range kept {
			keeps := sieve.Keeps(c.ClassOf(r))
			if kept[r] = keeps && !c.dropped[r]; keeps && c.dropped[r] {
				c.Missing++
			}
		}
		c.filter(func(r int) bool { return kept[r] })
		if c.Rows() == 0 && c.Malformed+c.Missing == 0 {
			return nil
		}
		return yield(c)
	}
}

// filter drops the rows of a chunk of points that are not to be kept.
func (c *Chunk) filter(keep func(r int) bool) {
	n, values := 0, int64(0)
	for r := range c.Rows() {
		if !keep(r) {
			continue
		}
		c.Labels[n] = c.Labels[r]
		if c.Weights != nil {
			c.Weights[n] = c.Weights[r]
		}
		switch {
		case c.Dense():
			copy(c.Values[n*c.Width:(n+1)*c.Width], c.Values[r*c.Width:(r+1)*c.Width])
		case c.Offsets != nil:
			from, to := c.Offsets[r], c.Offsets[r+1]
			copy(c.Values[values:], c.Values[from:to])
			copy(c.Indices[values:], c.Indices[from:to])
			c.Offsets[n] = values // no later row begins before
			values += to - from
		}
		n++
	}
	c.Labels = c.Labels[:n]
	if c.Weights != nil {
		c.Weights = c.Weights[:n]
	}
	switch {
	case c.Dense():
		c.Values = c.Values[:n*c.Width]
	case c.Offsets != nil:
		c.Offsets[n] = values
		c.Offsets, c.Values, c.Indices = c.Offsets[:n+1], c.Values[:values], c.Indices[:values]
	}
}

// Mix returns a seeded hash of a row's ordinal (the finalizer of splitmix64).
func Mix(seed, ordinal uint64) uint64 {
	z := seed*0x9e3779b97f4a7c15 + ordinal + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
