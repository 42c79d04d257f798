package input

import (
	"context"
	"math"
	"runtime"
	"slices"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/storage/input/rows"
	"github.com/volley-engine/volley/storage/input/text"
)

// prepare fits the preparation to a table's data, by a pass over the rows that
// are read; or takes the one of a model.
func (s *Source) prepare(ctx context.Context, o Options) error {
	columns := s.layout() != nil
	if o.Fitted == nil && columns && len(o.Prepare.IDs) > 0 {
		var err error
		if o.Prepare.IDs, err = s.textIDs(ctx, o.Prepare.IDs); err != nil {
			return err
		}
	}
	if o.Fitted == nil && !o.Prepare.Asked() && (!columns || len(o.Prepare.IDs) == 0) {
		return nil
	}
	if !columns {
		return fault.Newf(fault.Usage, "prepare", s.Files[0].Path,
			"single columns are prepared, of CSV, TSV, Parquet and Arrow, and it has none").
			WithHint("--standardize scales any format")
	}
	if s.Prepared = o.Fitted; s.Prepared != nil {
		s.KeepRows = true
		_, err := s.Prepared.places(s.layout(), s.Files[0].Path)
		return err
	}
	p, err := o.Prepare.plan(s.layout(), s.Files[0].Path)
	if err != nil {
		return err
	}
	return s.CutAgain(ctx, func() error { return s.fit(ctx, p, o.Prepare.Scale) })
}

// fit reads all parts, several at a time, and adds up what they hold in the order
// of the parts.
func (s *Source) fit(ctx context.Context, p *Prepared, scale Scale) error {
	parts := make([]*fitter, s.Len())
	train := s.Fold
	train.Held, train.Stopping = false, false
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range parts {
		g.Go(func() error {
			f := newFitter(p, s.layout())
			f.sieve = train.Sieve(i)
			parts[i] = f
			return s.readFields(ctx, i, func(*rows.Chunk) rows.Taker { return f },
				func(*rows.Chunk) error { return nil })
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	all := newFitter(p, s.layout())
	for _, f := range parts {
		all.add(f)
	}
	if err := all.settle(p, scale, s.Files[0].Path); err != nil {
		return err
	}
	s.Prepared = p
	return nil
}

// columnFit is the statistics of a column.
type columnFit struct {
	n, sum, square, lo, hi float64
	shift                  float64 // sums are about it
	values                 map[string]bool
	documents              map[int32]float64
}

// fitter collects the statistics of rows that a Prepared needs.
type fitter struct {
	p      *Prepared
	places map[int]int // of columns among the Prepared's
	cols   []columnFit
	rows   float64
	sieve  *rows.Sieve
	row    []fieldOf
	drop   bool // the current row, which has no weight
	many   bool
}

// fieldOf is a field of the current row.
type fieldOf struct {
	k      int
	text   []byte
	v      float64
	number bool
}

func newFitter(p *Prepared, spec *layout) *fitter {
	f := &fitter{p: p, places: map[int]int{}, cols: make([]columnFit, len(p.Columns))}
	for k, i := range spec.Features {
		f.places[i] = k
	}
	for k := range f.cols {
		f.cols[k] = columnFit{lo: math.Inf(1), hi: math.Inf(-1), values: map[string]bool{},
			documents: map[int32]float64{}}
	}
	return f
}

// Field notes a field of the current row; ok is false where it must be a number and is not.
func (f *fitter) Field(col int, field []byte, v float64, number bool) bool {
	k := f.places[col]
	if f.p.Columns[k].Kind == idColumn && text.NoNumber(field) {
		return false
	}
	if f.p.Columns[k].Kind == numberColumn && !number && (!text.NoNumber(field) || f.p.Missing == MissingError) {
		return false
	}
	f.row = append(f.row, fieldOf{k, slices.Clone(field), v, number})
	return true
}

// Forget drops the current row, which is malformed.
func (f *fitter) Forget() { f.row, f.drop = f.row[:0], false }

// Weightless reports whether a row without a weight is dropped.
func (f *fitter) Weightless() bool {
	f.drop = f.p.Missing == MissingDrop
	return f.drop
}

// End adds the row to the statistics, if the fold keeps it.
func (f *fitter) End(c *rows.Chunk) {
	kept := f.sieve.Keeps(c.ClassOf(len(c.Labels) - 1))
	c.Labels, c.Weights, c.Values = c.Labels[:0], c.Weights[:0], c.Values[:0]
	row, drop := f.row, f.drop
	f.row, f.drop = f.row[:0], false
	if !kept || drop {
		return
	}
	for _, x := range row {
		if f.p.Missing == MissingDrop && f.p.Columns[x.k].Kind == numberColumn && !x.number {
			return // it is not trained on
		}
	}
	f.rows++
	for _, x := range row {
		f.cols[x.k].take(&f.p.Columns[x.k], x)
		f.many = f.many || len(f.cols[x.k].values) > mostOneHot
	}
}

func (c *columnFit) take(p *PreparedColumn, x fieldOf) {
	switch {
	case p.Kind == unusedColumn:
	case p.Kind == oneHotColumn || p.Kind == idColumn:
		c.values[string(x.text)] = true
	case p.Kind == textColumn:
		in := map[int32]bool{}
		words(x.text, func(w []byte) { in[int32(bucketOf(w, p.Width))] = true })
		for b := range in {
			c.documents[b]++
		}
	case x.number:
		if c.n == 0 {
			c.shift = x.v
		}
		d := x.v - c.shift
		c.n++
		c.sum += d
		c.square = math.FMA(d, d, c.square)
		c.lo, c.hi = min(c.lo, x.v), max(c.hi, x.v)
	}
}

// add adds what a later part holds.
func (f *fitter) add(o *fitter) {
	f.rows += o.rows
	f.many = f.many || o.many
	for k := range f.cols {
		a, b := &f.cols[k], &o.cols[k]
		if b.n > 0 {
			if a.n == 0 {
				a.shift = b.shift
			}
			by := b.shift - a.shift // from b's sums to those about a's shift
			a.square += math.FMA(float64(2*by), b.sum, b.square) + float64(b.n*float64(by*by))
			a.sum += math.FMA(b.n, by, b.sum)
			a.n += b.n
			a.lo, a.hi = min(a.lo, b.lo), max(a.hi, b.hi)
		}
		for v := range b.values {
			a.values[v] = true
		}
		for w, n := range b.documents {
			a.documents[w] += n
		}
	}
}

// settle completes the Prepared.
func (f *fitter) settle(p *Prepared, scale Scale, path string) error {
	if f.rows == 0 {
		return fault.Newf(fault.BadInput, "prepare", path, "it has no rows")
	}
	for k := range p.Columns {
		c, fit := &p.Columns[k], &f.cols[k]
		switch c.Kind {
		case oneHotColumn, idColumn:
			for v := range fit.values {
				c.Values = append(c.Values, v)
			}
			slices.Sort(c.Values)
			for _, v := range c.Values {
				if !utf8.ValidString(v) {
					return fault.Newf(fault.BadInput, "prepare", path, "column %q has the value %q, which is not UTF-8",
						c.Name, v).WithHint("a model is saved as text: convert the file to UTF-8")
				}
			}
			if c.Kind == oneHotColumn && len(c.Values) > mostOneHot {
				return fault.Newf(fault.BadInput, "prepare", path, "column %q has more than %d values", c.Name,
					mostOneHot).WithHint("hash it: --hash " + c.Name)
			}
		case textColumn:
			for b := range fit.documents {
				c.Seen = append(c.Seen, b)
			}
			slices.Sort(c.Seen)
			for _, b := range c.Seen {
				c.IDF = append(c.IDF, kernel.Log((f.rows+1)/(fit.documents[b]+1)))
			}
			c.Unseen = kernel.Log(f.rows + 1)
		case numberColumn:
			fit.settle(c, p.Missing, scale)
		}
	}
	p.lay()
	return nil
}

func (c *columnFit) settle(to *PreparedColumn, missing Missing, scale Scale) {
	if c.n == 0 {
		return
	}
	mean := c.shift + c.sum/c.n
	if missing == MissingMean || missing == MissingDrop {
		to.Fill = mean
	}
	size := 0.0
	switch off := c.sum / c.n; scale {
	case ScaleStandard:
		to.Shift, size = mean, math.Sqrt(max(0, math.FMA(-off, off, c.square/c.n)))
	case ScaleMinMax:
		to.Shift, size = c.lo, c.hi-c.lo
	case ScaleMaxAbs:
		size = max(math.Abs(c.lo), math.Abs(c.hi))
	}
	if size > 0 {
		to.Factor = 1 / size
	}
}
