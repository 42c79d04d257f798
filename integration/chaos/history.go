package chaos

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Kind is what a client has asked for.
type Kind string

// A client submits a job that no other has submitted, cancels one, or lists all.
const (
	Submit Kind = "submit"
	Cancel Kind = "cancel"
	List   Kind = "list"
)

// Call is one call of a client and what came of it.
type Call struct {
	Client int    `json:"client"`
	Kind   Kind   `json:"kind"`
	Tag    string `json:"tag,omitempty"` // distinguishes the job from all others
	Begun  int64  `json:"begun"`         // nanoseconds of the machine's clock
	Ended  int64  `json:"ended"`
	// Failed says why the client does not know whether the call has had an effect; empty where it does.
	Failed string `json:"failed,omitempty"`
	// Before is, of such a call, when it must have had its effect at the latest; 0 is at any time.
	Before int64 `json:"-"`
	// Jobs are, of a list, the jobs that clients have submitted: their states by tag.
	Jobs map[string]string `json:"jobs,omitempty"`
	// Twice has tags that a list has more than once.
	Twice []string `json:"twice,omitempty"`
}

// Read reads calls, a JSON object each line.
func Read(r io.Reader) (out []Call, err error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var c Call
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			return out, fmt.Errorf("%w: %s", err, s.Text())
		}
		out = append(out, c)
	}
	return out, s.Err()
}

// The states of a job that the model knows: it has not ended, or it was cancelled.
const (
	live      = "live"
	cancelled = "cancelled"
)

// known returns the state of a job as the model has it; empty is one that no job of a client may be in.
func known(state string) string {
	switch state {
	case "waiting", "running":
		return live
	case "cancelled":
		return cancelled
	}
	return ""
}

// model returns a cluster of one machine that never fails: its state has each job, and whether it was cancelled.
func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return "" },
		Step: func(state, input, _ any) (bool, any) { return apply(state.(string), input.(Call)) },
		DescribeOperation: func(input, _ any) string {
			c := input.(Call)
			return strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Kind, c.Tag, c.Failed))
		},
	}
}

// apply returns whether a call can have had its outcome in a state, and the state after it. A state is a text, so that
// states are compared at once: the live jobs after a +, the cancelled ones after a -, in order.
func apply(state string, c Call) (bool, string) {
	jobs := parse(state)
	switch c.Kind {
	case Submit:
		if _, twice := jobs[c.Tag]; twice {
			return false, state
		}
		jobs[c.Tag] = live
	case Cancel:
		if _, there := jobs[c.Tag]; !there {
			return c.Failed != "", state
		}
		jobs[c.Tag] = cancelled
	case List:
		if !maps.Equal(jobs, c.Jobs) {
			return false, state
		}
		return true, state
	}
	return true, format(jobs)
}

func parse(state string) map[string]string {
	out := map[string]string{}
	for _, f := range strings.Fields(state) {
		out[f[1:]] = map[byte]string{'+': live, '-': cancelled}[f[0]]
	}
	return out
}

func format(jobs map[string]string) string {
	var b strings.Builder
	for _, tag := range slices.Sorted(maps.Keys(jobs)) {
		mark := byte('+')
		if jobs[tag] == cancelled {
			mark = '-'
		}
		b.WriteByte(mark)
		b.WriteString(tag + " ")
	}
	return b.String()
}

// Check reports whether a cluster of one machine that never fails could have answered so. It returns why not, and what
// the answer rests on: all jobs together, or, where that takes longer than patience, each job for itself.
func Check(calls []Call, patience time.Duration) (how string, err error) {
	for _, c := range calls {
		if len(c.Twice) > 0 {
			return "", fmt.Errorf("client %d was told of jobs twice: %v", c.Client, c.Twice)
		}
		for tag, state := range c.Jobs {
			if known(state) == "" {
				return "", fmt.Errorf("client %d was told that job %s, which never ends, is %s", c.Client, tag, state)
			}
		}
	}
	calls = narrowed(settled(calls))
	whole := operations(calls)
	switch porcupine.CheckOperationsTimeout(model(), whole, patience) {
	case porcupine.Ok:
		return "all jobs together", nil
	case porcupine.Illegal:
		if err := explain(calls); err != nil {
			return "", err
		}
		return "", fmt.Errorf("the calls of all jobs together do not fit into any order:\n%s", tell(calls))
	}
	return "each job for itself", explain(calls)
}

// settled returns calls with a cancellation for each submission that has failed: a driver that finds out late that the
// journal has the job, of which it had to say that this is not known, cancels it.
func settled(calls []Call) (out []Call) {
	for _, c := range calls {
		out = append(out, c)
		if c.Kind == Submit && c.Failed != "" {
			out = append(out, Call{Client: c.Client, Kind: Cancel, Tag: c.Tag, Begun: c.Begun, Ended: c.Ended,
				Failed: "if it is found to be there"})
		}
	}
	return out
}

// narrowed returns calls without those whose effect is not known and never shown, which is the same as that they had
// none; others must have had it before the first list that shows it has ended. What porcupine has to try is far less.
func narrowed(calls []Call) (out []Call) {
	shown := map[string]int64{} // when the first list has ended that shows a job, or that it is cancelled
	cancels := map[string]int{}
	note := func(what string, at int64) {
		if first, there := shown[what]; !there || at < first {
			shown[what] = at
		}
	}
	for _, c := range calls {
		if c.Kind == Cancel {
			cancels[c.Tag]++
			if c.Failed == "" {
				note(c.Tag, c.Ended) // it was there
			}
		}
		for tag, state := range c.Jobs {
			note(tag, c.Ended)
			if known(state) == cancelled {
				note(tag+cancelled, c.Ended)
			}
		}
	}
	for _, c := range calls {
		if c.Failed != "" && (c.Kind == Submit || c.Kind == Cancel && cancels[c.Tag] == 1) {
			what := c.Tag
			if c.Kind == Cancel {
				what += cancelled
			}
			at, there := shown[what]
			if !there {
				continue
			}
			c.Before = at
		}
		out = append(out, c)
	}
	return out
}

// explain checks each job for itself, and says of the first whose calls do not fit what they were; it is no error where
// those of each do.
func explain(calls []Call) error {
	tags := map[string]bool{}
	for _, c := range calls {
		if c.Tag != "" {
			tags[c.Tag] = true
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		if own := of(calls, tag); !porcupine.CheckOperations(model(), operations(own)) {
			return fmt.Errorf("the calls of job %s do not fit into any order:\n%s", tag, tell(own))
		}
	}
	return nil
}

// of returns what calls have to do with one job: of lists only that job.
func of(calls []Call, tag string) (out []Call) {
	for _, c := range calls {
		switch {
		case c.Kind == List:
			state, there := c.Jobs[tag]
			c.Jobs = map[string]string{}
			if there {
				c.Jobs[tag] = state
			}
		case c.Tag != tag:
			continue
		}
		out = append(out, c)
	}
	return out
}

// operations returns calls as porcupine has them. One of which the client does not know whether it has had an effect
// may have it at any time, or never, which is the same as after all others.
func operations(calls []Call) (out []porcupine.Operation) {
	for n, c := range calls {
		if c.Kind == List {
			if c.Failed != "" {
				continue
			}
			jobs := map[string]string{}
			for tag, state := range c.Jobs {
				jobs[tag] = known(state)
			}
			c.Jobs = jobs
		}
		end := c.Ended
		client := c.Client
		if c.Failed != "" {
			if end = c.Before; end <= c.Begun { // 0, or another call's effect
				end = math.MaxInt64
			}
			client = 1000 + n // which goes on meanwhile
		}
		out = append(out, porcupine.Operation{ClientId: client, Input: c, Call: c.Begun, Return: end})
	}
	return out
}

// tell lists calls in the order in which they were begun; of those lists that say the same the first and the last.
func tell(calls []Call) string {
	slices.SortFunc(calls, func(a, b Call) int { return int(a.Begun - b.Begun) })
	var b strings.Builder
	line := func(c Call) {
		fmt.Fprintf(&b, "%9.3f to %9.3f ms: client %d: %s %v %s\n", float64(c.Begun-calls[0].Begun)/1e6,
			float64(c.Ended-calls[0].Begun)/1e6, c.Client, c.Kind, c.Jobs, c.Failed)
	}
	for n, c := range calls {
		same := func(k int) bool {
			return k >= 0 && k < len(calls) && calls[k].Kind == List && maps.Equal(calls[k].Jobs, c.Jobs)
		}
		if c.Kind != List || !same(n-1) || !same(n+1) {
			line(c)
		}
	}
	return b.String()
}
