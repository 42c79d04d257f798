package rdd

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/volley-engine/volley/internal/fault"
)

// Estimate is what an aggregate over a pack came to when not all of its rows were
// read: what it would be of all, and how sure that is.
type Estimate struct {
	Sum, Mean, Count Interval
	Coverage         float64 // share of the rows that were read
}

// Interval is an estimate with the bounds of its confidence interval, which are
// the estimate itself where all rows were read.
type Interval struct{ Value, Low, High float64 }

// sample is what is known of the rows of a pack: of those read, and, once Scale
// has said how many rows they stand for, of all. Each split is a stratum, of
// which the rows read are a random sample without replacement, since rows are
// shuffled within a split.
type sample struct {
	Read           float64 // rows read
	Rows           float64 // that they stand for
	Sum, Square    float64 // of the values of the rows read that count
	Hits           float64 // rows read that count
	TotalX, TotalN float64 // estimates for all rows
	VarX, VarN     float64 // their variances
	Cov            float64
	scaled         bool
}

// MarshalBinary writes a sample.
func (a sample) MarshalBinary() ([]byte, error) {
	flag := 0.0
	if a.scaled {
		flag = 1
	}
	return AppendFloats(nil, []float64{a.Read, a.Rows, a.Sum, a.Square, a.Hits, a.TotalX, a.TotalN, a.VarX, a.VarN,
		a.Cov, flag}), nil
}

// UnmarshalBinary reads a sample.
func (a *sample) UnmarshalBinary(raw []byte) error {
	x, err := ParseFloats(raw)
	if err != nil || len(x) != 11 {
		return fault.New(fault.Corrupt, "read", "an estimate", cmp.Or(err, errors.New("it is of another length")))
	}
	*a = sample{x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10] == 1}
	return nil
}

// settled returns a sample whose estimates stand: as it is, where all its rows were
// read.
func (a sample) settled() sample {
	if !a.scaled {
		a.TotalX, a.TotalN, a.Rows, a.scaled = a.Sum, a.Hits, a.Read, true
	}
	return a
}

// scale makes the rows read stand for f times as many.
func (a sample) scale(f float64) sample {
	if a.scaled || f <= 1 || a.Read == 0 {
		return a
	}
	n, all := a.Read, a.Read*f
	a.Rows, a.scaled = all, true
	a.TotalX, a.TotalN = a.Sum*f, a.Hits*f
	if n > 1 {
		// The variance of a total of a sample without replacement: N²(1−n/N)s²/n.
		k := all * all * (1 - 1/f) / n / (n - 1)
		a.VarX = k * max(0, a.Square-a.Sum*a.Sum/n)
		a.VarN = k * max(0, a.Hits-a.Hits*a.Hits/n)
		a.Cov = k * (a.Sum - a.Sum*a.Hits/n)
	}
	return a
}

func (a sample) join(b sample) sample {
	if !a.scaled && !b.scaled {
		a.Read, a.Sum, a.Square, a.Hits = a.Read+b.Read, a.Sum+b.Sum, a.Square+b.Square, a.Hits+b.Hits
		return a
	}
	a, b = a.settled(), b.settled()
	return sample{Read: a.Read + b.Read, Rows: a.Rows + b.Rows, TotalX: a.TotalX + b.TotalX,
		TotalN: a.TotalN + b.TotalN,
		VarX:   a.VarX + b.VarX, VarN: a.VarN + b.VarN, Cov: a.Cov + b.Cov, scaled: true}
}

// Estimated is a step that estimates sum, mean and count over a pack.
type Estimated struct {
	step Step[struct{}, sample]
	z    float64
}

// EstimateOf declares sum, mean and count of what f says of the rows of a pack: a
// value, and whether the row counts. With Aggressive it ends early, like a
// training step, and comes with confidence intervals of the given level, such as
// 0.95: by the normal approximation, for a sample that is stratified by split.
func EstimateOf[T any](pk Packed[T], level float64, f func(T) (value float64, counts bool),
	options ...StepOption) Estimated {
	if !(level > 0 && level < 1) {
		pk.g.fail("estimate: a confidence of %v does not lie between 0 and 1", level)
	}
	agg := Aggregator[struct{}, T, sample]{
		Zero: func(struct{}) sample { return sample{} },
		Add: func(a sample, _ struct{}, row T) sample {
			a.Read++
			if x, counts := f(row); counts {
				a.Sum, a.Square, a.Hits = a.Sum+x, a.Square+x*x, a.Hits+1
			}
			return a
		},
		Merge: sample.join, Scale: sample.scale,
	}
	return Estimated{step: Aggregate(pk, agg, options...), z: math.Sqrt2 * math.Erfinv(level)}
}

// Run makes the estimate.
func (e Estimated) Run(ctx context.Context, s *Session) (Estimate, error) {
	a, err := e.step.Run(ctx, s, struct{}{})
	if err != nil {
		return Estimate{}, err
	}
	info := s.LastInfo()
	if !a.scaled && a.Read > 0 && a.Read < float64(info.Rows) {
		a = a.scale(float64(info.Rows) / a.Read) // weighting=rows: one sample of all
	}
	a = a.settled()
	// Splits that had nothing merged are taken to be like the others.
	f := 1.0
	if a.Rows > 0 {
		f = float64(info.Rows) / a.Rows
	}
	x, n := a.TotalX*f, a.TotalN*f
	out := Estimate{Coverage: info.Share, Sum: e.around(x, a.VarX*f*f), Count: e.around(n, a.VarN*f*f)}
	if n == 0 {
		out.Mean = Interval{math.NaN(), math.NaN(), math.NaN()}
		return out, nil
	}
	mean := x / n
	// Of a ratio of two estimates, to the first order (the delta method).
	out.Mean = e.around(mean, f*f*max(0, a.VarX-2*mean*a.Cov+mean*mean*a.VarN)/(n*n))
	return out, nil
}

func (e Estimated) around(value, variance float64) Interval {
	d := e.z * math.Sqrt(variance)
	return Interval{value, value - d, value + d}
}
