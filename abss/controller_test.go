package abss

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/volley-engine/volley/internal/plan"
)

// TestStories runs the stories in testdata. Commands:
//
//	step policy=absp ratio=0.5 rows=1000/1000/1000 [lost=SPLIT] [largest=F] [learned=D] [start=D] [grace=D] [timeout=D] [missing=F] [least=N] [share=F]
//	at T     then one event a line: progress SPLIT COUNT, arrived SPLIT COUNT, lost SPLIT, assigned SPLIT, tick
//	stats; waits; defaults
//	wants SPLIT COUNT
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var c *Controller
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "step":
				var decisions []Decision
				c, decisions = begin(t, d)
				return show(decisions)
			case "at":
				now, err := time.ParseDuration(d.CmdArgs[0].Key)
				if err != nil {
					t.Fatal(err)
				}
				var out strings.Builder
				for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
					out.WriteString(show(c.Step(event(t, line), now)))
				}
				return out.String()
			case "defaults":
				return fmt.Sprintf("%+v\n", Config{}.EnsureDefaults())
			case "wants":
				ev := event(t, "arrived "+d.CmdArgs[0].Key+" "+d.CmdArgs[1].Key)
				return fmt.Sprintln(c.Wants(ev.Split, ev.Count))
			case "waits":
				return waits(c)
			case "stats":
				s := c.Stats()
				return fmt.Sprintf("cut %v at %v, share %.3f; first finish %v, share %.3f; missing %v\n",
					s.Cut, s.StopAt, s.ShareStop, s.FirstFinish, s.ShareFirst, c.Missing())
			}
			t.Fatalf("unknown command %q", d.Cmd)
			return ""
		})
	})
}

// waits are those that have ended, and what the step waits for now.
func waits(c *Controller) string {
	var out strings.Builder
	for _, w := range c.Stats().Waits {
		fmt.Fprintf(&out, "%s: from %v, %v of %v\n", w.For, w.Since, w.Took, w.Bound)
	}
	fmt.Fprintf(&out, "recovering %v, given up %v\n", c.Recovering(), c.GaveUp())
	return out.String()
}

func begin(t *testing.T, d *datadriven.TestData) (*Controller, []Decision) {
	cfg := Config{Grace: 50 * time.Millisecond, MinRows: 10}
	var tasks []Task
	held := map[string]bool{}
	var largest float64
	var learned, start time.Duration
	for _, a := range d.CmdArgs {
		v := a.Vals[0]
		var err error
		switch a.Key {
		case "policy":
			cfg.Policy, err = ParsePolicy(v)
		case "ratio":
			cfg.Ratio, err = strconv.ParseFloat(v, 64)
		case "grace":
			cfg.Grace, err = time.ParseDuration(v)
		case "least":
			cfg.MinRows, err = strconv.ParseInt(v, 10, 64)
		case "share":
			cfg.MinShare, err = strconv.ParseFloat(v, 64)
		case "missing":
			cfg.MaxMissing, err = strconv.ParseFloat(v, 64)
		case "largest":
			largest, err = strconv.ParseFloat(v, 64)
		case "learned":
			learned, err = time.ParseDuration(v)
		case "start":
			start, err = time.ParseDuration(v)
		case "timeout":
			cfg.StepTimeout, err = time.ParseDuration(v)
		case "lost":
			held[v] = true
		case "rows":
			for i, r := range strings.Split(v, "/") {
				n, err := strconv.ParseInt(r, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				tasks = append(tasks, Task{Split: plan.SplitID(i), Rows: n, Held: true})
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range tasks {
		tasks[i].Held = !held[strconv.Itoa(i)]
	}
	c := NewController(cfg, tasks, largest, learned, start)
	return c, c.Step(Event{Kind: Began}, start)
}

func event(t *testing.T, line string) Event {
	f := strings.Fields(line)
	kinds := map[string]EventKind{"progress": Progress, "arrived": Arrived, "lost": Lost, "assigned": Assigned,
		"tick": Tick}
	ev := Event{Kind: kinds[f[0]]}
	if len(f) > 1 {
		n, err := strconv.Atoi(f[1])
		if err != nil {
			t.Fatal(err)
		}
		ev.Split = plan.SplitID(n)
	}
	if len(f) > 2 {
		n, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ev.Count = n
	}
	return ev
}

func show(ds []Decision) string {
	var out strings.Builder
	for _, d := range ds {
		switch d.Kind {
		case Stop:
			out.WriteString("stop\n")
		case Recover:
			fmt.Fprintf(&out, "recover %v\n", d.Splits)
		case Complete:
			out.WriteString("complete\n")
		case Fail:
			fmt.Fprintf(&out, "fail waiting for %s\n", d.Waited)
		case WakeAt:
			fmt.Fprintf(&out, "wake at %v\n", d.At)
		}
	}
	return out.String()
}
