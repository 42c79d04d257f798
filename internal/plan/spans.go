package plan

// SpanKind is what a slot did for a while.
type SpanKind int

// The kinds of spans.
const (
	Loading  SpanKind = iota // opened its splits, or had one brought to it
	Folding                  // rows of splits that its executor owns
	Helping                  // rows of splits that others own
	Merging                  // what was folded, and encoding it
	Carrying                 // nothing: work or a result was on its way
	SpanKinds
)

// SlotSpan is what a slot of an executor did for a while. The slot after the last is what was loaded beside them.
type SlotSpan struct {
	Slot     int
	Kind     SpanKind
	Split    SplitID // -1 is several, or none
	From, To Time
	Worked   Time // the part of it that it was done for, where several are one
}

// MostSpans is how many spans of a slot are told of in a run.
const MostSpans = 32

// MostSlots is how many slots all executors of a job may have.
const MostSlots = 1 << 16

// MostToldOf returns how many spans of an executor are told of in a step: of two whole runs at most, and of what was on
// its way. One that takes over splits of others has several.
func MostToldOf(slots int) int { return 2 * (min(slots, MostSlots) + 1) * MostSpans }
