package daemon

import (
	"context"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/wire"
)

// TestTheEndOfARunnerNamesIt, however it comes: the driver may have asked for another since.
func TestTheEndOfARunnerNamesIt(t *testing.T) {
	for what, o := range map[string]*wire.OpenJob{
		"it ends":          {Job: "job-000001", Args: []string{"run", "logistic"}, Runner: 7},
		"it is no job":     {Job: "job-000001", Args: []string{"other"}, Runner: 7},
		"it has no runner": {Job: "job-000001", Runner: 7},
	} {
		d, told, out := alone(t, "exit 1")
		d.open(o, &link{ctx: context.Background(), out: out, beat: time.Second})
		timer := time.NewTimer(bound)
		select {
		case m := <-told:
			if c := m.GetClosed(); c.GetRunner() != 7 {
				t.Errorf("%s: it says %v", what, m)
			}
		case <-timer.C:
			t.Errorf("%s: it says nothing", what)
		}
		timer.Stop()
	}
}
