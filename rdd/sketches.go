package rdd

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/axiomhq/hyperloglog"
	"github.com/influxdata/tdigest"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// Number is what can be computed with.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Summary describes numbers. Of none, all but Count is NaN.
type Summary struct {
	Count          int64
	Mean, Min, Max float64
	Variance       float64 // of the population: divided by Count
}

// Sum returns the sum of the numbers.
func (s Summary) Sum() float64 {
	if s.Count == 0 {
		return 0
	}
	return s.Mean * float64(s.Count)
}

// StdDev returns the standard deviation of the population.
func (s Summary) StdDev() float64 { return math.Sqrt(s.Variance) }

// SampleVariance returns the variance of what the numbers are a sample of: divided by one less than Count.
func (s Summary) SampleVariance() float64 { return s.Variance * float64(s.Count) / float64(s.Count-1) }

// SampleStdDev returns the standard deviation of what the numbers are a sample of.
func (s Summary) SampleStdDev() float64 { return math.Sqrt(s.SampleVariance()) }

// moments are what a Summary is made of, in the form of Welford; partial ones
// are joined by the formula of Chan et al.
type moments struct {
	N           int64
	Mean, M2    float64
	Least, Most float64
}

func (m moments) add(x float64) moments {
	if m.N == 0 {
		return moments{N: 1, Mean: x, Least: x, Most: x}
	}
	m.N++
	if math.IsInf(x, 0) || math.IsInf(m.Mean, 0) {
		m.Mean, m.M2 = m.Mean+x, math.NaN()
		m.Least, m.Most = min(m.Least, x), max(m.Most, x)
		return m
	}
	d := x - m.Mean
	m.Mean += d / float64(m.N)
	m.M2 += d * (x - m.Mean)
	m.Least, m.Most = min(m.Least, x), max(m.Most, x)
	return m
}

func (m moments) join(o moments) moments {
	switch {
	case m.N == 0:
		return o
	case o.N == 0:
		return m
	}
	n := float64(m.N + o.N)
	d := o.Mean - m.Mean
	return moments{N: m.N + o.N, Mean: m.Mean + d*float64(o.N)/n, M2: m.M2 + o.M2 + d*d*float64(m.N)*float64(o.N)/n,
		Least: min(m.Least, o.Least), Most: max(m.Most, o.Most)}
}

// Stats describes numbers in one pass.
func Stats[N Number](ds Dataset[N]) Action[Summary] {
	all := Aggregated(ds, func() moments { return moments{} },
		func(m moments, x N) moments { return m.add(float64(x)) }, moments.join)
	return Then(all, moments.summary)
}

func (m moments) summary() Summary {
	if m.N == 0 {
		return Summary{Mean: math.NaN(), Min: math.NaN(), Max: math.NaN(), Variance: math.NaN()}
	}
	return Summary{Count: m.N, Mean: m.Mean, Min: m.Least, Max: m.Most, Variance: m.M2 / float64(m.N)}
}

// Bins are how many numbers lie between neighbouring bounds: each from its lower
// bound on up to the upper one, which only the last has in it too.
type Bins struct {
	Bounds []float64
	Counts []int64 // one less than Bounds
}

// Histogram counts numbers between ascending bounds; others are left out.
func Histogram[N Number](ds Dataset[N], bounds ...float64) Action[Bins] {
	if len(bounds) < 2 || !slices.IsSortedFunc(bounds, cmp.Compare[float64]) {
		ds.g.fail("histogram: bounds %v are not two or more that ascend", bounds)
	}
	return histogram(ds, func(context.Context, *Session) ([]float64, error) { return bounds, nil })
}

// HistogramOf counts numbers in n bins of the same width, from the least number to
// the greatest, which are found in a pass of their own.
func HistogramOf[N Number](ds Dataset[N], n int) Action[Bins] {
	if n < 1 {
		ds.g.fail("histogram: %d bins are too few", n)
	}
	stats := Stats(Filter(ds, func(x N) bool { return x == x })) // without NaN
	return histogram(ds, func(ctx context.Context, s *Session) ([]float64, error) {
		all, err := stats.Run(ctx, s)
		if err == nil && all.Count == 0 {
			err = fault.Newf(fault.BadInput, "compute", "a histogram", "there are no numbers")
		}
		bounds := make([]float64, n+1)
		for i := range bounds {
			bounds[i] = all.Min + (all.Max-all.Min)*float64(i)/float64(n)
		}
		bounds[n] = all.Max // not what rounding makes of it
		return bounds, err
	})
}

func histogram[N Number](ds Dataset[N], boundsOf func(ctx context.Context, s *Session) ([]float64,
	error)) Action[Bins] {
	task := func(ctx context.Context, part int, args []byte, _ runner.TaskContext) ([]byte, error) {
		var bounds []float64
		if err := Decode(args, &bounds); err != nil {
			return nil, err
		}
		counts := make([]int64, len(bounds)-1)
		err := ds.rows(ctx, part, func(x N) error {
			if at := binOf(bounds, float64(x)); at >= 0 {
				counts[at]++
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		return Encode(counts)
	}
	return action(ds, "histogram", task, func(ctx context.Context, s *Session, id int) (b Bins, err error) {
		if b.Bounds, err = boundsOf(ctx, s); err != nil {
			return b, err
		}
		if err := s.settleAction(ctx, id); err != nil {
			return b, err
		}
		raw, err := Encode(b.Bounds)
		if err != nil {
			return b, err
		}
		raws, err := s.call(ctx, id, plan.NoPack, slices.Repeat([][]byte{raw}, ds.parts()))
		b.Counts = make([]int64, len(b.Bounds)-1)
		for _, raw := range raws {
			var counts []int64
			if err := Decode(raw, &counts); err != nil {
				return b, err
			}
			for i := range counts {
				b.Counts[i] += counts[i]
			}
		}
		return b, err
	})
}

// binOf returns the bin of a number; −1 where it has none.
func binOf(bounds []float64, x float64) int {
	last := len(bounds) - 1
	if !(x >= bounds[0] && x <= bounds[last]) {
		return -1
	}
	at, found := slices.BinarySearch(bounds, x)
	if !found {
		at--
	}
	return min(at, last-1)
}

// digestSize is the compression of a t-digest: about how many centroids it has.
const digestSize = 1000

// Quantiles estimates the values below which the given shares of the numbers
// lie, by a t-digest (Dunning and Ertl): exact at the ends, and otherwise within
// about a thousandth in rank. NaN is left out; of no numbers all are NaN.
func Quantiles[N Number](ds Dataset[N], shares ...float64) Action[[]float64] {
	for _, q := range shares {
		if !(q >= 0 && q <= 1) {
			ds.g.fail("quantiles: %v is not a share from 0 to 1", q)
		}
	}
	task := func(ctx context.Context, part int, _ []byte, _ runner.TaskContext) ([]byte, error) {
		d := tdigest.NewWithCompression(digestSize)
		err := ds.rows(ctx, part, func(x N) error {
			d.Add(float64(x), 1)
			return nil
		})
		if err != nil {
			return nil, err
		}
		var flat []float64
		for _, c := range d.Centroids() {
			flat = append(flat, c.Mean, c.Weight)
		}
		return Encode(flat)
	}
	return action(ds, "quantiles", task, func(ctx context.Context, s *Session, id int) ([]float64, error) {
		raws, err := callAll(ctx, s, id, ds.parts)
		all := tdigest.NewWithCompression(digestSize)
		for _, raw := range raws {
			var flat []float64
			if err := Decode(raw, &flat); err != nil {
				return nil, err
			}
			for i := 0; i+1 < len(flat); i += 2 {
				all.Add(flat[i], flat[i+1])
			}
		}
		out := make([]float64, len(shares))
		for i, q := range shares {
			out[i] = all.Quantile(q)
		}
		return out, err
	})
}

// CountApproxDistinct estimates how many different rows there are, by a
// HyperLogLog of 16 bits (Flajolet et al.; Heule et al.): within about half a
// percent.
func CountApproxDistinct[T comparable](ds Dataset[T]) Action[int64] {
	codec, err := row.KeyCodecOf[T]()
	if err != nil {
		ds.g.fail("count approx distinct: the rows cannot be encoded: %v", err)
	}
	hash := row.HasherOf(codec)
	task := func(ctx context.Context, part int, _ []byte, _ runner.TaskContext) ([]byte, error) {
		sketch := hyperloglog.New16()
		var hashes []uint64
		var keys []Pair[T, struct{}]
		err := ds.each(ctx, part, func(rows []T) error {
			keys = keys[:0]
			for i := range rows {
				keys = append(keys, Pair[T, struct{}]{Key: rows[i]})
			}
			hashes = row.Hashes(hash, keys, hashes)
			for _, h := range hashes {
				sketch.InsertHash(h)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		return sketch.MarshalBinary()
	}
	return action(ds, "count-approx-distinct", task, func(ctx context.Context, s *Session, id int) (int64, error) {
		raws, err := callAll(ctx, s, id, ds.parts)
		all := hyperloglog.New16()
		for _, raw := range raws {
			var one hyperloglog.Sketch
			err := one.UnmarshalBinary(bytes.Clone(raw))
			if err == nil {
				err = all.Merge(&one)
			}
			if err != nil {
				return 0, fault.New(fault.Corrupt, "read", "a sketch", err)
			}
		}
		return int64(all.Estimate()), err
	})
}

// distinctSketch is a HyperLogLog of one key's values.
type distinctSketch struct{ s *hyperloglog.Sketch }

// MarshalBinary writes a sketch.
func (d distinctSketch) MarshalBinary() ([]byte, error) {
	if d.s == nil {
		return nil, nil
	}
	return d.s.MarshalBinary()
}

// UnmarshalBinary reads a sketch.
func (d *distinctSketch) UnmarshalBinary(raw []byte) error {
	d.s = nil
	if len(raw) == 0 {
		return nil
	}
	d.s = &hyperloglog.Sketch{}
	return d.s.UnmarshalBinary(bytes.Clone(raw))
}

// CountApproxDistinctByKey estimates how many different values each key has, by a HyperLogLog of 14 bits for each key:
// within about one percent; few values are counted exactly.
func CountApproxDistinctByKey[K, V comparable](ds Dataset[Pair[K, V]],
	options ...ShuffleOption) Dataset[Pair[K, int64]] {
	codec, err := row.KeyCodecOf[V]()
	if err != nil {
		ds.g.fail("count approx distinct by key: the values cannot be encoded: %v", err)
	}
	hash := row.HasherOf(codec)
	add := func(d distinctSketch, v V) distinctSketch {
		var out [1]uint64
		one := [1]Pair[V, struct{}]{{Key: v}}
		d.s.InsertHash(row.Hashes(hash, one[:], out[:0:1])[0])
		return d
	}
	sketches := CombineByKey(ds, Combiner[V, distinctSketch]{
		Create: func(v V) distinctSketch { return add(distinctSketch{hyperloglog.New14()}, v) }, Add: add,
		Merge: func(a, b distinctSketch) distinctSketch {
			if err := a.s.Merge(b.s); err != nil {
				panic(err) // both have 14 bits
			}
			return a
		}}, options...)
	return MapValues(sketches, func(d distinctSketch) int64 { return int64(d.s.Estimate()) })
}
