package linear

import (
	"bytes"
	"testing"

	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
)

func TestTheStateOfALinearModelSurvivesItsEncoding(t *testing.T) {
	wide := state{train.NewState(2, 6, solver.Of(solver.Adam).New()), 9, 4, true}
	wide.Ending = train.Ending{StoppedBy: "tolerance", Iterations: 12}
	raw, err := wide.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	again := state{State: train.NewState(0, 0, solver.Of(solver.Adam).New())}
	if err := again.UnmarshalBinary(raw); err != nil || again.Width != 9 || again.Best != 4 || !again.Ahead ||
		again.Ending != wide.Ending {
		t.Errorf("%+v, %v", again, err)
	}
	if twice, err := again.MarshalBinary(); err != nil || !bytes.Equal(twice, raw) {
		t.Errorf("%v, %v", twice, err)
	}
}
