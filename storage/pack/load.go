package pack

import (
	"context"
	"math"
	"runtime/debug"
	"slices"
	"sort"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/rows"
)

// Rows is anything that can be packed: parts that can be read on their own,
// in order.
type Rows interface {
	Len() int
	Read(ctx context.Context, part int, yield func(*rows.Chunk) error) error
}

// loaded is the whole input, spooled, with the statistics of the whole.
type loaded struct {
	spool              *spool
	chunks             []*spooled
	rows               int64
	dense              bool
	width              int
	lo, hi             int32
	nnz                int64
	blobs              bool
	zero               bool  // indices count from zero by definition
	malformed, missing int64 // records that were left out
	weighs             bool  // rows have weights
	single             bool  // values are to be of single precision
	weight             float64
	labels             labelSet
}

// load reads all parts on `workers` goroutines; once more where they turn out to be
// cut within quotes.
func load(ctx context.Context, from Rows, dir string, disk *allowance, o Options,
	progress func(rows int)) (l *loaded, err error) {
	do := func() (err error) {
		l, err = loadParts(ctx, from, newSpool(dir, disk), o, progress)
		return err
	}
	if t, ok := from.(guessed); ok {
		err = t.CutAgain(ctx, do)
	} else {
		err = do()
	}
	return l, err
}

// guessed is input whose parts may be cut wrongly, which reading shows.
type guessed interface {
	// CutAgain runs a function over all parts, and once more where they were cut wrongly.
	CutAgain(ctx context.Context, do func() error) error
	// Sure returns an error about rows of a part, or the error that explains it.
	Sure(part int, err error) error
}

func loadParts(ctx context.Context, from Rows, to *spool, o Options, progress func(rows int)) (*loaded, error) {
	l := &loaded{spool: to, lo: math.MaxInt32, hi: -1, single: o.Float32}
	parts := make([][]*spooled, from.Len())
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, o.Workers))
	for part := range parts {
		g.Go(Guarded(func() error {
			return from.Read(ctx, part, func(c *rows.Chunk) error {
				if err := l.noteSafely(&mu, c); err != nil {
					return blamed(from, part, err)
				}
				n := c.Rows()
				if n == 0 {
					return nil
				}
				h, err := l.spool.add(c)
				if err == nil {
					parts[part] = append(parts[part], h)
					progress(n)
				}
				return err
			})
		}))
	}
	if err := g.Wait(); err != nil {
		l.spool.close()
		return nil, err
	}
	l.chunks = slices.Concat(parts...)
	return l, l.finish()
}

// blamed returns an error about rows of a part, unless that was cut wrongly.
func blamed(rows Rows, part int, err error) error {
	if t, ok := rows.(guessed); ok {
		return t.Sure(part, err)
	}
	return err
}

// Guarded turns a panic of the user's code that makes rows into an error: on another
// goroutine it would end the process.
func Guarded(do func() error) func() error {
	return func() (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fault.Newf(fault.UserCode, "make", "a pack", "panic: %v\n%s", r, debug.Stack())
			}
		}()
		return do()
	}
}

// noteSafely calls note for one reader at a time; a panic in one does not block the
// others.
func (l *loaded) noteSafely(mu *sync.Mutex, c *rows.Chunk) error {
	mu.Lock()
	defer mu.Unlock()
	return l.note(c)
}

// note adds a chunk to the statistics of the whole.
func (l *loaded) note(c *rows.Chunk) error {
	l.malformed, l.missing = l.malformed+c.Malformed, l.missing+c.Missing
	if c.Rows() == 0 {
		return nil
	}
	if l.rows > 0 && l.dense != c.Dense() {
		return fault.Newf(fault.BadInput, "read", place(c), "dense and sparse rows are mixed")
	}
	if l.rows > 0 && c.Dense() && c.Width != l.width {
		return fault.Newf(fault.BadInput, "read", place(c), "rows have %d features, those before them %d",
			c.Width, l.width)
	}
	l.dense, l.width, l.blobs = c.Dense(), c.Width, c.Blobs != nil
	l.zero = l.zero || c.ZeroBased
	l.rows += int64(c.Rows())
	if !c.Dense() {
		lo, hi := indexBounds(c)
		l.lo, l.hi = min(l.lo, lo), max(l.hi, hi)
	}
	l.nnz += int64(max(len(c.Values), len(c.Indices)))
	if l.single {
		values := c.Values
		if c.Same != nil {
			values = []float64{*c.Same}
		}
		if at := beyondSingle(values); at >= 0 {
			return fault.Newf(fault.BadInput, "read", place(c),
				"the value %v in a row from here on is beyond single precision", values[at]).
				WithHint("leave out --storage float32, or scale the column")
		}
	}
	l.weighs = l.weighs || c.Weights != nil
	for i, w := range c.Weights {
		if !(w >= 0) || math.IsInf(w, 0) {
			return fault.Newf(fault.BadInput, "read", place(c),
				"row %d from here has the weight %v: weights must be finite and not negative", i+1, w)
		}
		l.weight += w
	}
	return l.labels.add(c)
}

// beyondSingle returns the first value that single precision makes infinite; −1
// without one.
func beyondSingle(values []float64) int {
	for i, v := range values {
		if s := float32(v); s-s != 0 {
			return i
		}
	}
	return -1
}

func (l *loaded) finish() error {
	if l.rows == 0 {
		l.spool.close()
		return fault.Newf(fault.BadInput, "read", "the input", "it holds no row")
	}
	if l.weighs && !(l.weight > 0 && l.weight < math.MaxFloat64) {
		l.spool.close()
		return fault.Newf(fault.BadInput, "read", "the input", "the weights of its rows sum to %v", l.weight)
	}
	return nil
}

// maxLabels is how many distinct labels are remembered; data with more is
// for regression and needs none of them.
const maxLabels = 1000

// labelSet gathers the distinct labels of the whole input.
type labelSet struct {
	text     bool
	seen     bool
	values   map[float64]bool
	texts    map[string]bool
	overflow bool
}

func (s *labelSet) add(c *rows.Chunk) error {
	if s.seen && s.text != (c.Texts != nil) && c.Rows() > 0 {
		return fault.Newf(fault.BadInput, "read", place(c), "some labels from here on are %s, others are not",
			map[bool]string{true: "text", false: "numbers"}[c.Texts != nil])
	}
	if !s.seen {
		s.seen, s.text, s.values, s.texts = true, c.Texts != nil, map[float64]bool{}, map[string]bool{}
	}
	for _, t := range c.Texts {
		s.texts[t] = true
	}
	if len(s.texts) > maxLabels {
		return fault.Newf(fault.BadInput, "read", place(c), "its labels are text of more than %d kinds, such as %.40q",
			maxLabels, c.Texts[0]).WithHint("name the column of labels by --label")
	}
	if s.text || s.overflow {
		return nil
	}
	last := math.NaN()
	for _, v := range c.Labels {
		if v != last {
			s.values[v], last = true, v
		}
	}
	if s.overflow = len(s.values) > maxLabels; s.overflow {
		s.values = map[float64]bool{}
	}
	return nil
}

// names returns the distinct labels in ascending order, as text; nil where
// there were too many to be classes.
func (s *labelSet) names() []string {
	var names []string
	if s.text {
		for t := range s.texts {
			names = append(names, t)
		}
		sort.Strings(names)
		return names
	}
	var values []float64
	for v := range s.values {
		values = append(values, v)
	}
	sort.Float64s(values)
	for _, v := range values {
		names = append(names, rows.FormatLabel(v))
	}
	return names
}

// recode maps a chunk's own text codes to positions in the sorted names.
func recode(c *rows.Chunk, names []string) []float64 {
	if c.Texts == nil {
		return c.Labels
	}
	to := make([]float64, len(c.Texts))
	for i, t := range c.Texts {
		to[i] = float64(sort.SearchStrings(names, t))
	}
	out := make([]float64, len(c.Labels))
	for i, code := range c.Labels {
		out[i] = to[int(code)]
	}
	return out
}

// indexBounds returns the least and greatest column index of a sparse chunk;
// (MaxInt32, -1) where there is none.
func indexBounds(c *rows.Chunk) (lo, hi int32) {
	lo, hi = math.MaxInt32, -1
	for r := range len(c.Offsets) - 1 { // indices ascend within a row
		if a, b := c.Offsets[r], c.Offsets[r+1]; a < b {
			lo, hi = min(lo, c.Indices[a]), max(hi, c.Indices[b-1])
		}
	}
	return lo, hi
}

// place names a chunk's first row, for errors about the whole.
func place(c *rows.Chunk) string {
	if c.Where == nil {
		return "the input"
	}
	return c.Where()
}
