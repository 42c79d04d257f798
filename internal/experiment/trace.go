package experiment

import (
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/pace"
)

// Measured is a speed of an executor in a pass that ended at a time.
type Measured struct {
	Executor      int
	Until         time.Duration
	RowsPerSecond float64
}

// Trace makes a law of measured speeds, as times of the mean of all; from a pass's end to the next an executor has the
// speed of the latter. Where nothing was measured of an executor it keeps the speed of before, or the mean.
func Trace(all []Measured) ([]pace.Traced, error) {
	sum, n := 0.0, 0
	for _, m := range all {
		if m.RowsPerSecond > 0 {
			sum, n = sum+m.RowsPerSecond, n+1
		}
	}
	if n == 0 {
		return nil, fault.Newf(fault.BadInput, "trace", "the log", "no executor's speed was measured in it")
	}
	mean, speed, from := sum/float64(n), map[int]float64{}, map[int]time.Duration{}
	var out []pace.Traced
	for _, m := range all {
		v, known := speed[m.Executor]
		now := m.RowsPerSecond / mean
		if now == 0 {
			if now = 1; known {
				now = v
			}
		}
		if !known || now != v {
			out = append(out, pace.Traced{Executor: m.Executor, From: from[m.Executor], Speed: now})
		}
		speed[m.Executor], from[m.Executor] = now, m.Until
	}
	return out, nil
}
