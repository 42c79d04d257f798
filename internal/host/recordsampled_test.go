package host

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/rdd"
)

// TestLinesOfTablesFollowTheirIteration: in a program of several loops, of which some make passes, each such line is of
// the iteration before it, the second and fourth and the last of a loop have one, and more come with time.
func TestLinesOfTablesFollowTheirIteration(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	log, err := driver.CreateEventLog(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &record{log: log, header: driver.LogHeader{Event: "header"}}
	r.begin(&r.header)
	for loop, n := range []int{1: 5, 2: 3, 3: 1, 4: 40, 5: 3, 6: 4} {
		for k := range n {
			switch {
			case loop == 2 || k == 3: // which finds an objective
				r.step(&driver.StepReport{}, plan.Digest{}, false)
			case k == 4: // and is part of the method, whose slots have a line
				r.step(&driver.StepReport{Work: true}, plan.Digest{}, false)
			case loop == 5: // of steps alone
				r.step(&driver.StepReport{Train: true}, plan.Digest{}, true)
				r.commit(rdd.Commit{Loop: loop, Iteration: k + 1}, 0)
				r.flush()
				continue
			}
			r.commit(rdd.Commit{Loop: loop, Iteration: k + 1, Took: time.Duration(k) * 400 * time.Millisecond,
				Used: &plan.TablesUse{Clock: 100*loop + k}}, 0)
			r.flush()
		}
	}
	if err := r.finish(context.Background(), "end"); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last, loop, clocks := 0, 0, []int{}
	for i, line := range bytes.Split(bytes.TrimSpace(raw), []byte("\n")) {
		var l struct {
			Event       string
			Line, Clock int
			Loop        int // of a step
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		switch l.Event {
		case "iteration", "evaluation":
			last = i + 1
		case "step":
			if loop = l.Loop; loop != 5 {
				t.Errorf("line %d: a step of loop %d", i+1, loop)
			}
		case "tables":
			if loop > l.Clock/100 {
				t.Errorf("line %d, of clock %d, comes after loop %d has begun", i+1, l.Clock, loop)
			}
			if clocks = append(clocks, l.Clock); l.Line != last {
				t.Errorf("line %d says that it is of line %d, the last iteration is of line %d", i+1, l.Line, last)
			}
		}
	}
	for _, want := range []int{100, 101, 103, 104, 200, 201, 202, 300, 400, 401, 403, 439} {
		if !bytes.Contains(raw, []byte(`"clock":`+strconv.Itoa(want)+",")) {
			t.Errorf("clock %d has no line: %v", want, clocks)
		}
	}
	if len(clocks) < 20 || len(clocks) > 28 {
		t.Errorf("%d lines of 49 iterations: %v", len(clocks), clocks)
	}
}
