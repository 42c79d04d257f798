package rdd

import (
	"context"
	"io"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/exec"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/shuffle"
)

// A sort's map tasks sort their rows and write them as one run, cut into parts
// of which they tell the first keys. From these the session chooses where the
// result is to be cut: exactly, since the parts are in order, and without
// another pass over the input.

// SortBy sorts all rows by the key that f makes of them: the partitions of the
// result follow one another. Rows of equal keys keep the order of the input. All
// rows move.
func SortBy[T any, K Ordered](ds Dataset[T], f func(T) K, options ...ShuffleOption) Dataset[T] {
	o := sortOptionsOf(ds.g, "sort by", options)
	codec, err := row.CodecOf[T]()
	if err != nil {
		ds.g.fail("sort by: the rows cannot be encoded: %v", err)
	}
	k := exec.KeyOrderOf[K](o.descending)
	order := exec.OrderBy(k, func(r *T) K { return f(*r) })
	return (&sortPlan[T, K]{ds: ds, row: codec, keys: k, of: f, order: order, n: o.count(ds.g, ds.id)}).dataset(
		"sort-by", o)
}

// OrderBy sorts all rows by an order of one key or several (Spark's orderBy): the partitions of the result follow
// one another. Rows that are equal by it keep the order of the input. All rows move.
func OrderBy[T any](ds Dataset[T], by Order[T], options ...ShuffleOption) Dataset[T] {
	o := sortOptionsOf(ds.g, "order by", options)
	codec, err := row.CodecOf[T]()
	if err != nil {
		ds.g.fail("order by: the rows cannot be encoded: %v", err)
	}
	keys := by.keysOf(ds.g, "order by", o.descending)
	return (&sortPlan[T, T]{ds: ds, row: codec, keys: exec.RowOrder(codec, keys), of: func(r T) T { return r },
		order: exec.OrderByKeys(keys), n: o.count(ds.g, ds.id)}).dataset("order-by", o)
}

// dataset adds the sort to the plan.
func (s *sortPlan[T, K]) dataset(kind string, o shuffleOptions) Dataset[T] {
	s.id = s.ds.g.shuffle(kind, row.TypeName[T](), o.String(), s.ds.id,
		&shuffleDecl{maps: s.ds.parts, write: s.write, bounds: s.bounds, cuts: s.cuts, limits: s.limits})
	return Dataset[T]{g: s.ds.g, id: s.id, parts: s.n, produce: s.each}
}

// SortByKey sorts pairs by key.
func SortByKey[K interface {
	comparable
	Ordered
}, V any](ds Dataset[Pair[K, V]], options ...ShuffleOption) Dataset[Pair[K, V]] {
	return SortBy(ds, func(p Pair[K, V]) K { return p.Key }, options...)
}

type sortPlan[T, K any] struct {
	ds    Dataset[T]
	row   row.Codec[T]
	keys  exec.KeyOrder[K]
	of    func(T) K
	order exec.Order[T]
	n     func() int
	id    int
}

// What a run is cut into, at the most, and the bytes that a part has at least: a reader
// of a partition reads whole parts. Blocks of a part are no larger than runBlock.
const (
	runParts     = 256
	runPartBytes = 8 << 10
	runBlock     = 64 << 10
)

// write sorts a partition of the input and writes it as one run.
func (s *sortPlan[T, K]) write(ctx context.Context, part int, packs runner.TaskContext) (*written, error) {
	in := exec.NewSorter(s.row, s.order, packs)
	defer in.Close()
	if err := s.ds.each(ctx, part, in.AddAll); err != nil {
		return nil, err
	}
	out := &runWriter[T, K]{sortPlan: s, Writer: packs.NewMapOutput(runParts + 1), at: -1,
		most: max(runPartBytes, in.Total/runParts+1)}
	defer out.Close()
	out.Block = int(min(runBlock, out.most)) // only one part is written at a time
	var err error
	if len(in.Runs) == 0 {
		err = in.EachEncoded(out.add)
	} else {
		var raw []byte
		err = in.Each(ctx, func(rows []T) error {
			for i := range rows {
				raw = s.row.Append(raw[:0], &rows[i])
				if err := out.add(raw); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return nil, err
	}
	b, err := out.Finish()
	return &written{output: b, first: out.first}, err
}

// runWriter writes sorted rows in parts, and notes with which key each begins.
type runWriter[T, K any] struct {
	*sortPlan[T, K]
	*shuffle.Writer
	at    int
	most  int64
	first [][]byte
}

func (w *runWriter[T, K]) add(raw []byte) error {
	if w.at < 0 || w.Raw[w.at]+int64(len(*w.Room(w.at))) >= w.most {
		if w.at >= 0 {
			if err := w.Flush(w.at); err != nil {
				return err
			}
		}
		w.at = min(w.at+1, runParts)
		var r T
		if _, err := w.row.Parse(raw, &r, &row.Arena{}); err != nil {
			return row.Corrupt(err)
		}
		w.first = append(w.first[:w.at], w.keys.Encode(w.of(r)))
	}
	room := w.Room(w.at)
	*room = append(*room, raw...)
	w.Rows[w.at]++
	if len(*room) >= w.Block {
		return w.Flush(w.at)
	}
	return nil
}

// bounds returns keys that cut what all map tasks have sorted into partitions of
// about as many bytes each.
func (s *sortPlan[T, K]) bounds(outputs []*mapOutput) (any, error) {
	type weighted struct {
		key   K
		bytes int64
	}
	var all []weighted
	var total int64
	for _, o := range outputs {
		for i, raw := range o.First {
			key, err := s.keys.Decode(raw)
			if err != nil || i >= len(o.Raw) {
				return nil, fault.Newf(fault.Corrupt, "read", "the keys of a sort", "%v", err)
			}
			all = append(all, weighted{key, o.Raw[i]})
			total += o.Raw[i]
		}
	}
	slices.SortStableFunc(all, func(a, b weighted) int { return s.keys.Cmp(a.key, b.key) })
	bounds := []K{}
	seen, parts := int64(0), s.n()
	for _, w := range all {
		if float64(seen) >= float64(total)*float64(len(bounds)+1)/float64(parts) && len(bounds) < parts-1 {
			if n := len(bounds); n == 0 || s.keys.Cmp(bounds[n-1], w.key) != 0 {
				bounds = append(bounds, w.key)
			}
		}
		seen += w.bytes
	}
	return bounds, nil
}

// limits are the keys between which a partition's lie: from lo on, and before
// hi, where there are such bounds.
type limits[K any] struct {
	lo, hi *K
}

func (s *sortPlan[T, K]) limitsOf(bounds []K, part int) (l limits[K]) {
	if part > 0 {
		if part-1 < len(bounds) {
			l.lo = &bounds[part-1]
		}
	}
	if part < len(bounds) {
		l.hi = &bounds[part]
	}
	return l
}

// cuts returns the parts of each run that may hold rows of each partition: a walk along
// both the run's keys and the bounds.
func (s *sortPlan[T, K]) cuts(bounds any, outputs []*mapOutput) ([][][2]uint16, error) {
	at := bounds.([]K)
	out := make([][][2]uint16, len(outputs))
	for m, o := range outputs {
		first := make([]K, len(o.First))
		for i, raw := range o.First {
			var err error
			if first[i], err = s.keys.Decode(raw); err != nil {
				return nil, err
			}
		}
		out[m] = s.cutsOf(first, at)
	}
	return out, nil
}

// cutsOf cuts one run, of whose parts the first keys are known.
func (s *sortPlan[T, K]) cutsOf(first, bounds []K) [][2]uint16 {
	out := make([][2]uint16, len(bounds)+1)
	below, from := 0, 0 // how many first keys are below the bound, and where its rows may begin
	for part := range out {
		through := len(first)
		if out[part][0] = uint16(from); part < len(bounds) {
			for below < len(first) && s.keys.Cmp(first[below], bounds[part]) < 0 {
				below++
			}
			through = below
			from = max(0, below-1) // its rows may begin in the part before
		}
		out[part][1] = uint16(through)
	}
	return out
}

// limits returns the keys between which a partition's are, encoded.
func (s *sortPlan[T, K]) limits(bounds any, part int) ([]byte, error) {
	at := bounds.([]K)
	if part > len(at) {
		return nil, nil // there were not as many different keys
	}
	l := s.limitsOf(at, part)
	return cborMode.Marshal([][]byte{s.encoded(l.lo), s.encoded(l.hi)})
}

func (s *sortPlan[T, K]) encoded(k *K) []byte {
	if k == nil {
		return nil
	}
	return append([]byte{1}, s.keys.Encode(*k)...)
}

func (s *sortPlan[T, K]) parseLimits(raw []byte) (l limits[K], err error) {
	if len(raw) == 0 {
		return l, nil
	}
	var both [][]byte
	if err = cborReading.Unmarshal(raw, &both); err != nil || len(both) != 2 {
		return l, fault.Newf(fault.Corrupt, "read", "the bounds of a sort", "%v", err)
	}
	for i, to := range []**K{&l.lo, &l.hi} {
		if len(both[i]) == 0 {
			continue
		}
		k, err := s.keys.Decode(both[i][1:])
		if err != nil {
			return l, err
		}
		*to = &k
	}
	return l, nil
}

// each merges the parts of all runs that a partition is in.
func (s *sortPlan[T, K]) each(ctx context.Context, part int, yield func([]T) error) error {
	r, err := openShuffle(ctx, s.id, part)
	if err != nil {
		return err
	}
	l, err := s.parseLimits(r.args.Bounds)
	if err != nil {
		return err
	}
	o := s.order.Past(s.sharedBy(l))
	var streams []*exec.Run[T]
	for _, ref := range r.refs {
		streams = append(streams, &exec.Run[T]{Order: o, Row: s.row, Within: s.within(l),
			Open: func() (io.ReadCloser, error) { return r.open(ctx, ref) },
			Lost: func(err error) error { return lostFrom(ref, err) }})
	}
	return exec.Merge(ctx, r.env.packs, s.row, o, streams, yield)
}

// sharedBy returns how many bytes the keys between two bounds have in common, where they are
// texts: those that the bounds have.
func (s *sortPlan[T, K]) sharedBy(l limits[K]) int {
	if s.keys.Text == nil || l.lo == nil || l.hi == nil {
		return 0
	}
	return exec.SharedPrefix(s.keys.Text(*l.lo), s.keys.Text(*l.hi))
}

// within returns which of rows in order lie between two bounds.
func (s *sortPlan[T, K]) within(l limits[K]) func(rows []T) (from, to int) {
	first := func(rows []T, bound *K) int {
		n, _ := slices.BinarySearchFunc(rows, *bound, func(r T, k K) int { return s.keys.Cmp(s.of(r), k) })
		return n
	}
	return func(rows []T) (from, to int) {
		if to = len(rows); l.hi != nil && to > 0 && s.keys.Cmp(s.of(rows[to-1]), *l.hi) >= 0 {
			to = first(rows, l.hi)
		}
		if l.lo != nil && to > 0 && s.keys.Cmp(s.of(rows[0]), *l.lo) < 0 {
			from = min(to, first(rows, l.lo))
		}
		return from, to
	}
}
