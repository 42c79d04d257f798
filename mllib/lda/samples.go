package lda

import (
	"math"

	"github.com/volley-engine/volley/tables"
)

// mostSamples is of how many samples a model is the mean: those of the last ticks, of the second half of training. One
// alone gives a word to the topics that its tokens happen to be of; a few more foretell other documents better by three
// of a hundred (docs/adr/0024-topics.md), and take no sweep more.
const mostSamples = 5

// samples are the counts of several samples of all tokens' topics, summed: a state that is committed with each tick, so
// that a run that goes on from one has the mean of those before, too.
type samples struct {
	Clock int // of the last
	N     int
	Words []tables.Row[int32]
}

// due reports whether the model at a clock is one of the samples, of a run that ends at the last: those of ticks about
// as far apart as they are, and none of the first half.
func due(clock, last int) bool {
	const nearest, farthest = ticksEvery / 2, mostSamples*ticksEvery - ticksEvery/2
	before := last - clock
	return before == 0 || before >= nearest && before < farthest && 2*clock > last
}

// add adds a sample, unless a run that goes on has it already, or counts would be more than a model holds.
func (s *samples) add(m *Model, clock int) {
	if clock <= s.Clock {
		return
	}
	if m.Tokens > math.MaxInt32/mostSamples {
		*s = samples{}
	}
	if s.Words == nil {
		s.Words = make([]tables.Row[int32], len(m.words))
	}
	for w, row := range m.words {
		s.Words[w] = merged(s.Words[w], row)
	}
	s.Clock, s.N = clock, s.N+1
}

// mean returns the last sample's model with the counts of all.
func (s *samples) mean(m *Model) *Model {
	m.Samples, m.words = s.N, s.Words
	clear(m.totals)
	for _, row := range m.words {
		for i, k := range row.Columns {
			m.totals[k] += int64(row.Values[i])
		}
	}
	return m
}

// merged returns the sum of two rows.
func merged(a, b tables.Row[int32]) tables.Row[int32] {
	if len(a.Columns) == 0 {
		return b
	}
	out := tables.Row[int32]{Columns: make([]int32, 0, len(a.Columns)), Values: make([]int32, 0, len(a.Values))}
	for i, j := 0, 0; i < len(a.Columns) || j < len(b.Columns); {
		switch {
		case j == len(b.Columns) || i < len(a.Columns) && a.Columns[i] < b.Columns[j]:
			out.Columns, out.Values = append(out.Columns, a.Columns[i]), append(out.Values, a.Values[i])
			i++
		case i == len(a.Columns) || b.Columns[j] < a.Columns[i]:
			out.Columns, out.Values = append(out.Columns, b.Columns[j]), append(out.Values, b.Values[j])
			j++
		default:
			out.Columns, out.Values = append(out.Columns, a.Columns[i]), append(out.Values, a.Values[i]+b.Values[j])
			i, j = i+1, j+1
		}
	}
	return out
}
