package rows

// Fold leaves one of n parts of the rows out: those whose place in the input a
// seeded hash sends there. Held reads exactly these. Of the rows that are not left
// out, the share Stop is held out of training for early stopping; Stopping reads
// exactly these. It depends on the input's files and their order only.
type Fold struct {
	Number   int     `json:"number"` // from 0
	Of       int     `json:"of"`
	Held     bool    `json:"held,omitempty"`
	Stop     float64 `json:"stop,omitempty"`
	Stopping bool    `json:"stopping,omitempty"`
}

// Asked reports whether any row is left out.
func (f *Fold) Asked() bool { return f.Of > 0 || f.Stop > 0 }

// stopSeed makes the hash for early stopping different from that of folds.
const stopSeed = 1 << 40

// Keeps reports whether a row of a part of the input is read.
func (f *Fold) Keeps(part, row int) bool {
	if f.Of > 0 && (Mix(uint64(part), uint64(row))%uint64(f.Of) == uint64(f.Number)) != f.Held {
		return false
	}
	return f.Held || f.Stop == 0 ||
		(float64(Mix(stopSeed+uint64(part), uint64(row))>>11)/(1<<53) < f.Stop) == f.Stopping
}

// Through yields the rows of a part that the fold keeps and that are not dropped.
func (f *Fold) Through(part int, yield func(*Chunk) error) func(*Chunk) error {
	row := 0
	return func(c *Chunk) error {
		first := row
		row += c.Rows()
		for r := range c.dropped {
			if f.Keeps(part, first+r) {
				c.Missing++
			}
		}
		c.filter(func(r int) bool { return !c.dropped[r] && f.Keeps(part, first+r) })
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
