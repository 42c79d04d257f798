//go:build !soak

package soak

import "time"

const tags = ""

// kinds are some kinds of rows, and every operation with keys that are numbers: all of them take a compiler minutes,
// which make soak has.
func kinds() []anyKind {
	return []anyKind{
		fullKind(wholes("int64", int64(-1)<<63, 1<<63-1), wholes("int", -1<<63, 1<<63-1)),
		kindOf(texts(), nesteds(), byKey[string, nested](), ofTwo[string, nested]()),
		kindOf(floats("float64", 5e-324, true), lists(texts()), sorting[float64, []string]()),
		kindOf(times(), texts(), byKey[time.Time, string]()),
		kindOf(hiddens(), halfHiddens(), kept[hidden, halfHidden]()),
		kindOf(wholes("uint16", uint16(0), 65535), bools(), narrow[uint16, bool]()),
	}
}
