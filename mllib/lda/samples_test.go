package lda

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/volley-engine/volley/tables"
)

// TestSamplesAreOfTheSecondHalf of training, about as far apart as ticks, and the last is the run's last.
func TestSamplesAreOfTheSecondHalf(t *testing.T) {
	for last, want := range map[int]string{
		2:   "[2]",
		21:  "[21]",
		31:  "[20 31]",
		51:  "[30 40 51]",
		100: "[60 70 80 90 100]",
		201: "[160 170 180 190 201]",
		207: "[170 180 190 200 207]",
	} {
		var got []int
		for clock := range last {
			if tick := clock + 1; (tick%ticksEvery == 0 || tick == last) && due(tick, last) {
				got = append(got, tick)
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("of %d clocks: samples %v, want %s", last, got, want)
		}
	}
}

// TestAMeanSharesAsItsSamplesDo: a word's share of a topic is that of both samples' tokens, of which a run that goes on
// counts none twice.
func TestAMeanSharesAsItsSamplesDo(t *testing.T) {
	of := func(counts ...[3]int32) *Model { // by word
		m := &Model{Topics: 3, Vocabulary: len(counts), Beta: 0.5, Tokens: 9, totals: make([]int64, 3)}
		for _, by := range counts {
			var row tables.Row[int32]
			for k, n := range by {
				if m.totals[k] += int64(n); n > 0 {
					row.Columns, row.Values = append(row.Columns, int32(k)), append(row.Values, n)
				}
			}
			m.words = append(m.words, row)
		}
		return m
	}
	var s samples
	s.add(of([3]int32{4, 0, 1}, [3]int32{0, 2, 2}, [3]int32{}), 10)
	second := of([3]int32{0, 5, 0}, [3]int32{1, 2, 1}, [3]int32{})
	s.add(second, 20)
	s.add(second, 20)
	m, share := s.mean(second), make([]float64, 3)
	for w, counts := range [][3]float64{{4, 5, 1}, {1, 4, 3}, {0, 0, 0}} {
		m.share(int32(w), share)
		for k, n := range counts { // each half of it, beside a β of 0.5 for each of 3 words
			totals := [3]float64{5, 9, 4}
			if want := (n/2 + 0.5) / (totals[k]/2 + 1.5); math.Abs(share[k]-want) > 1e-12 {
				t.Errorf("word %d: the share of topic %d is %v, want %v", w, k, share[k], want)
			}
		}
	}
	if m.Samples != 2 || !slices.Equal(m.words[0].Columns, []int32{0, 1, 2}) {
		t.Errorf("%d samples, the first word's topics %v", m.Samples, m.words[0].Columns)
	}
}

// TestTooManyTokensAreOneSample: counts whose sums might not fit are those of the last sample alone.
func TestTooManyTokensAreOneSample(t *testing.T) {
	var s samples
	for clock := range 3 {
		s.add(&Model{Topics: 2, Vocabulary: 1, Tokens: math.MaxInt32, totals: make([]int64, 2),
			words: []tables.Row[int32]{{Columns: []int32{1}, Values: []int32{math.MaxInt32}}}}, clock+1)
	}
	if s.N != 1 || s.Words[0].Values[0] != math.MaxInt32 || s.Clock != 3 {
		t.Errorf("%+v", s)
	}
}
