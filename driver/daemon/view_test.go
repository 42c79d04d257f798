package daemon

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/volley-engine/volley/internal/wire"
)

// TestHowAJobStandsIsShown: as it is known, of a job that runs with how fast it goes; no number spoils the list.
func TestHowAJobStandsIsShown(t *testing.T) {
	for _, c := range []struct {
		state     string
		objective float64
		want      string
	}{
		{"running", 0.5, `"iteration":7,"objective":0.5,"iterations_per_second":2,"left_seconds":1.5`},
		{"done", 0.5, `"iteration":7,"objective":0.5`},
		{"running", math.NaN(), `"iteration":7,"iterations_per_second":2,"left_seconds":1.5`},
		{"done", math.Inf(1), `"iteration":7`},
	} {
		i := &wire.JobInfo{State: c.state, Standing: &wire.LoopStanding{Iteration: 7, Objective: &c.objective,
			PerSecond: 2, LeftNs: 15e8}}
		raw, err := json.Marshal(ViewJob(i).LoopView)
		if err != nil || string(raw) != "{"+c.want+"}" {
			t.Errorf("%s, %v: %s, %v", c.state, c.objective, raw, err)
		}
	}
	ended := &wire.JobInfo{State: "done", Result: `{"iterations":5,"objective":0.25}`}
	raw, err := json.Marshal(ViewJob(ended).LoopView)
	if err != nil || string(raw) != `{"iteration":5,"objective":0.25}` {
		t.Errorf("of one that had ended before: %s, %v", raw, err)
	}
	if raw, err := json.Marshal(ViewJob(&wire.JobInfo{}).LoopView); err != nil || string(raw) != "{}" {
		t.Errorf("of one of which nothing is known: %s, %v", raw, err)
	}
}
