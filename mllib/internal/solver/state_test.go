package solver

import (
	"encoding"
	"reflect"
	"testing"
)

// TestStatesOfSeveralPassesSurviveTheirEncoding, and those that are cut short are refused.
func TestStatesOfSeveralPassesSurviveTheirEncoding(t *testing.T) {
	type state interface {
		encoding.BinaryMarshaler
		encoding.BinaryUnmarshaler
	}
	for _, c := range []struct{ state, other state }{
		{&Growing{Share: 0.2, F: 3, Err: 0.1, Whole: 1, Direction: []float64{4, 5}, Slope: -1, Length: 0.5, Tries: 2},
			&Growing{}},
		{&Inner{Affine: []float64{1, 2}, Direction: []float64{3}, Mu: 0.5, Length: 0.9, Lower: 7, Stuck: 1, Assumed: 1},
			&Inner{}},
		{&Progressive{Share: 0.2, Steps: 3, quasiNewton: quasiNewton{lineSearch: lineSearch{F: 1, G: []float64{2},
			Direction: []float64{3}, Slope: -4, Length: 0.5, Tries: 1}, Moves: [][]float64{}, Turns: [][]float64{}}},
			&Progressive{}},
		{ledBy(Newton), NewLed()}, {ledBy(Interior), NewLed()}, {ledBy(""), NewLed()},
	} {
		raw, err := c.state.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.other.UnmarshalBinary(raw); err != nil || !reflect.DeepEqual(c.state, c.other) {
			t.Errorf("%+v became %+v: %v", c.state, c.other, err)
		}
		for cut := 0; cut < len(raw); cut += 8 {
			if err := c.other.UnmarshalBinary(raw[:cut]); err == nil {
				t.Errorf("%T: %d bytes of %d are taken", c.state, cut, len(raw))
			}
		}
	}
}

// ledBy returns a method that goes on from dual ascent by another, or does not yet.
func ledBy(name Name) *Led {
	q := NewLed()
	if name != "" {
		q.GoOn(name)
	}
	return q
}

// TestASampleThatHasNothingToGainIsNoEnd: all rows are to say so.
func TestASampleThatHasNothingToGainIsNoEnd(t *testing.T) {
	q, p := NewGrowing(1e6, 2), &Point{X: make([]float64, 2), Y: make([]float64, 2)}
	if q.Share != firstShare {
		t.Fatalf("the first sample is %v of the rows", q.Share)
	}
	still := func(share float64) *Seen {
		return &Seen{F: 1, G: make([]float64, 2), H: []float64{1, 0, 0, 1}, Share: share, Err: 0.1}
	}
	if done := q.Step(p, still(0.05)); done.Over || q.Share != 1 {
		t.Errorf("%+v, and the next pass has %v of the rows", done, q.Share)
	}
	if done := q.Step(p, still(1)); !done.Over {
		t.Errorf("%+v: all rows have nothing to gain", done)
	}
}
