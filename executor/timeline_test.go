package executor

import (
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// told returns the spans of a run that ends.
func told(t *Timeline, l *Loads, now plan.Time) []*wire.Span { return t.Tell(&Folded{}, l, now).Spans }

// TestSpansAreWhatWasDone: what goes on is one span, a pause between two stays, spans are bounded, in order and do not
// overlap, and of kinds that alternate the shortest are left out.
func TestSpansAreWhatWasDone(t *testing.T) {
	ms := time.Millisecond
	line := NewTimeline(5, 1, 0)
	line.Did(0, plan.Folding, 3, 0, 10*ms)
	line.Did(0, plan.Folding, 3, 10*ms+time.Microsecond, 20*ms)
	line.Did(0, plan.Folding, 3, 40*ms, 50*ms)
	all := told(line, &Loads{}, 60*ms)
	if len(all) != 2 || all[0].ToNs != uint64(20*ms) || all[1].FromNs != uint64(40*ms) {
		t.Errorf("%v", all)
	}
	for _, kinds := range [][]plan.SpanKind{{plan.Folding}, {plan.Folding, plan.Helping}} {
		line, worked, alone := NewTimeline(5, 1, 0), plan.Time(0), plan.Time(0)
		for k := range plan.Time(200) {
			took := ms + k%7*10*time.Microsecond
			line.Did(0, kinds[int(k)%len(kinds)], int(k), 10*k*ms, 10*k*ms+took)
			worked += took
		}
		all := told(line, &Loads{}, 2*time.Second)
		last := uint64(0)
		for _, s := range all {
			if s.FromNs < last || s.ToNs < s.FromNs {
				t.Errorf("%v begins before %d", s, last)
			}
			last = s.ToNs
			alone += plan.Time(s.WorkedNs)
		}
		if len(all) > plan.MostSpans || alone > worked || len(kinds) == 1 && alone < worked || alone < worked/2 {
			t.Errorf("%d kinds: %d spans of %v, of %v of work", len(kinds), len(all), alone, worked)
		}
	}
}

// TestLoadsAreToldOfOnce: by the run that ends first, of those of its own pack that went on beside it.
func TestLoadsAreToldOfOnce(t *testing.T) {
	var l Loads
	for k := range plan.Time(100) {
		l.Did(5+int(k%2), int(k), k, k+1)
	}
	first, second := NewTimeline(5, 2, 95), NewTimeline(5, 2, 0)
	if all := told(first, &l, 200); len(all) != 2 || all[0].Slot != 2 || all[0].Split != 96 {
		t.Errorf("%v", all)
	}
	if all := told(second, &l, 200); len(all) != 0 {
		t.Errorf("told of again: %v", all)
	}
}
