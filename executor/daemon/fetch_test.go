package daemon

import (
	"testing"

	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// holdOf asks for a split from a peer.
func holdOf(split uint32, from string) *wire.Hold {
	digest := plan.DigestOf([]byte{byte(split)})
	return &wire.Hold{Job: "j", Pack: 1, Split: split, From: from, Node: 3, Sha256: digest[:], Bytes: 100}
}

func holding(h *wire.Hold) executor.Event {
	return executor.Event{Message: &wire.ToExecutor{Body: &wire.ToExecutor_Hold{Hold: h}}}
}

// fetches are the splits that commands fetch, and answers what the driver is told.
func fetches(cmds []executor.Command) (out []*wire.Hold) {
	for _, c := range cmds {
		if c.Fetch != nil {
			out = append(out, c.Fetch)
		}
	}
	return out
}

func answers(cmds []executor.Command) (out []*wire.Holding) {
	for _, c := range cmds {
		if h := c.Send.GetHolding(); h != nil {
			out = append(out, h)
		}
	}
	return out
}

// fetched says that a split has arrived as it was announced.
func fetched(h *wire.Hold) executor.Event {
	return executor.Event{Fetched: &executor.Fetched{Hold: h, SHA256: plan.DigestFromBytes(h.Sha256)}}
}

// TestASplitIsFetchedOnceAtATime, however often it is asked for: two passes one after
// the other ask for what is on its way already.
func TestASplitIsFetchedOnceAtATime(t *testing.T) {
	a := executor.NewAgent("e", 1)
	first := fetches(a.Step(holding(holdOf(1, "peer")), 0))
	if len(first) != 1 {
		t.Fatalf("%d fetches of a split that is asked for", len(first))
	}
	if again := fetches(a.Step(holding(holdOf(1, "peer")), 0)); len(again) > 0 {
		t.Errorf("a split that is on its way is fetched %d times more", len(again))
	}
	if other := fetches(a.Step(holding(holdOf(2, "peer")), 0)); len(other) != 1 {
		t.Errorf("%d fetches of another split", len(other))
	}
	if said := answers(a.Step(fetched(first[0]), 0)); len(said) == 0 || said[0].Fault != nil || said[0].Split != 1 {
		t.Errorf("the driver is told %v", said)
	}
	if late := fetches(a.Step(holding(holdOf(1, "peer")), 0)); len(late) != 1 {
		t.Errorf("asked for a split that has arrived, it looks at it %d times", len(late))
	}
}

// TestASplitOfTwoPacksIsTwo: what is on its way of one pack is not what is asked for
// of another.
func TestASplitOfTwoPacksIsTwo(t *testing.T) {
	a := executor.NewAgent("e", 1)
	a.Step(holding(holdOf(1, "peer")), 0)
	other := holdOf(1, "peer")
	other.Pack, other.Node = 2, 4
	if got := fetches(a.Step(holding(other), 0)); len(got) != 1 {
		t.Errorf("%d fetches of the other pack's split", len(got))
	}
}

// TestAnotherSourceIsNotForgotten: the driver asks for a split from somebody else while
// one is on its way that then fails. It is fetched, from there, and the driver hears of
// an end.
func TestAnotherSourceIsNotForgotten(t *testing.T) {
	a := executor.NewAgent("e", 1)
	first := fetches(a.Step(holding(holdOf(1, "dead")), 0))
	after := a.Step(holding(holdOf(1, "alive")), 0)
	failed := executor.Event{Fetched: &executor.Fetched{Hold: first[0],
		Err: fault.Newf(fault.FetchFailed, "fetch", "split 1", "dead is gone")}}
	after = append(after, a.Step(failed, 0)...)
	var from []string
	for _, h := range fetches(after) {
		from = append(from, h.From)
		after = append(after, a.Step(fetched(h), 0)...)
	}
	if len(from) != 1 || from[0] != "alive" {
		t.Errorf("it is fetched from %q", from)
	}
	said := answers(after)
	if len(said) == 0 || said[len(said)-1].Fault != nil {
		t.Errorf("the driver is told %v", said)
	}
}
