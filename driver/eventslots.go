package driver

import (
	"encoding/json"
	"fmt"
)

// LogSlots is what the slots of executors did in the last step, or pass of the method, before it. Only some of these
// have such a line.
type LogSlots struct {
	Event     string       `json:"event"` // "slots"
	Line      int          `json:"line"`  // of the log: that of the step, or pass
	Executors []LogSlotsOf `json:"executors"`
}

// LogSlotsOf is what the slots of an executor did.
type LogSlotsOf struct {
	Executor  string    `json:"executor"`
	Slots     int       `json:"slots"`
	Rows      int64     `json:"rows"`             // of what was merged
	Helped    int64     `json:"helped,omitempty"` // of these, rows of splits that others own
	BusyNs    int64     `json:"busy_ns"`          // folding them, per slot
	ArrivedNs int64     `json:"arrived_ns"`       // when its last result was here, since the step began
	Spans     []LogSpan `json:"spans,omitempty"`  // by slot, and time
}

// LogSpan is what a slot did for a while: the slot (the one after the last is what was loaded beside them), the kind
// (of plan.SpanKind), the split (-1 is several, or none), from when until when, in nanoseconds since the step began,
// and for how long of that it was done, where several are one.
type LogSpan [6]int64

// UnmarshalJSON reads as many numbers as a span has.
func (s *LogSpan) UnmarshalJSON(raw []byte) error { return numbersOf("a span", s[:], raw) }

// numbersOf reads a list of numbers, no more and no fewer than there is room for.
func numbersOf(what string, into []int64, raw []byte) error {
	var all []int64
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	if len(all) != len(into) {
		return fmt.Errorf("%s has %d numbers, and %d are written", what, len(into), len(all))
	}
	copy(into, all)
	return nil
}

// SlotsLine returns the line of what slots did in the step, or pass, of another line.
func SlotsLine(line int, of []ExecutorSlots) *LogSlots {
	l := &LogSlots{Event: "slots", Line: line, Executors: []LogSlotsOf{}}
	for _, e := range of {
		one := LogSlotsOf{Executor: string(e.Executor), Slots: e.Slots, Rows: e.Rows, Helped: e.Helped,
			BusyNs: int64(e.Busy), ArrivedNs: int64(e.Arrived)}
		for _, s := range e.Spans {
			one.Spans = append(one.Spans, LogSpan{int64(s.Slot), int64(s.Kind), int64(s.Split), int64(s.From),
				int64(s.To), int64(s.Worked)})
		}
		l.Executors = append(l.Executors, one)
	}
	return l
}
