package kmeans

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/rows"
)

// Model is K centres, rows of Features columns. A saved one is plain data,
// as a linear one's.
type Model struct {
	K         int       `json:"k"`
	Features  int       `json:"features"`
	Distance  Distance  `json:"distance"`
	IndexBase int       `json:"index_base"`
	Names     []string  `json:"names,omitempty"`
	Label     string    `json:"label,omitempty"`  // column that is set aside
	Weight    string    `json:"weight,omitempty"` // that of rows' weights
	Centres   []float64 `json:"-"`
	// Prepared takes raw rows to those that the centres are of; nil where they are
	// the same.
	Prepared *input.Prepared `json:"preparation,omitempty"`
}

func (m *Model) known() model.Known {
	return model.Known{Features: m.Features, IndexBase: m.IndexBase, Label: m.Label, Weight: m.Weight,
		Prepared: m.Prepared}
}

type file struct {
	model.Head
	*Model
}

// Save writes the model's directory.
func (m *Model) Save(dir string, overwrite bool) error {
	numbers := make([]int64, m.K)
	for i := range numbers {
		numbers[i] = int64(i)
	}
	var c model.Columns
	return model.Save(dir, overwrite, file{model.Head{Version: model.Version, Job: "kmeans"}, m},
		c.Ints("cluster", numbers).Vectors("centre", m.Centres, m.Features))
}

// kmeansKind is what is known of clusterings.
var Kind = model.Kind{Is: model.JobIs("kmeans"),
	Load: func(head, numbers []byte) (model.Model, *input.Prepared, error) {
		m := &Model{}
		err := m.load(head, numbers)
		return m, m.Prepared, err
	}}

func (m *Model) load(head, numbers []byte) error {
	if err := json.Unmarshal(head, m); err != nil {
		return err
	}
	if _, err := ParseDistance(string(m.Distance)); err != nil || m.K < 1 || m.Features < 0 || m.K > 1<<30 ||
		m.Features > 1<<30 {
		return fault.Newf(fault.Corrupt, "read", "model.json", "%d centres of %d features by %q distance cannot be",
			m.K, m.Features, m.Distance)
	}
	return model.LoadColumns(numbers, m.K, func(s *model.Stored) { m.Centres = s.Vectors("centre", m.Features) })
}

// InputOf returns how data are to be read; they may have labels, which count for nothing.
func (m *Model) InputOf(ctx context.Context, in rdd.Input, uris []string) (rdd.Input, error) {
	if in.Label == "" && m.Label == "" {
		in.NoLabel = true
	}
	return m.known().InputOf(ctx, in, uris)
}

// eachPart reads data as the model was trained on it, adds its rows to the results of their parts, and hands these
// out in input order.
func eachPart[R any](ctx context.Context, m *Model, in rdd.Input, uris []string, begin func() *R,
	add func(to *R, b *rdd.Batch) error, take func(*R) error) error {
	in, err := m.InputOf(ctx, in, uris)
	if err != nil {
		return err
	}
	src, err := input.Open(ctx, in, uris...)
	if err != nil {
		return err
	}
	batchOf, err := m.batches(src, uris)
	if err != nil {
		return err
	}
	return model.Reading[R]{Begin: begin, Take: take, Chunk: func(to *R, c *rows.Chunk, _ int) error {
		b, err := batchOf(c)
		if err != nil {
			return err
		}
		return add(to, b)
	}}.Each(ctx, src)
}

// batches returns what makes batches of a source's chunks.
func (m *Model) batches(src *input.Source, uris []string) (func(*rows.Chunk) (*rdd.Batch, error), error) {
	columns, err := model.AlignedPlaces(m.Names, src.FeatureNames(), uris)
	return func(c *rows.Chunk) (*rdd.Batch, error) {
		b, err := m.batchOf(c, uris)
		if err == nil && columns != nil && c.Dense() {
			b.X64 = arranged(b.X64, columns)
		}
		return b, err
	}, err
}

// arranged returns dense rows with their columns at other places.
func arranged(x []float64, places []int) []float64 {
	out, d := make([]float64, len(x)), len(places)
	for r := 0; r+d <= len(x); r += d {
		for i, j := range places {
			out[r+j] = x[r+i]
		}
	}
	return out
}

// batchOf returns a chunk as kernels see it; features that the model has not are
// left out of sparse rows.
func (m *Model) batchOf(c *rows.Chunk, uris []string) (*rdd.Batch, error) {
	b := &rdd.Batch{Features: m.Features, Labels: c.Labels, Weights: c.Weights, X64: c.Values}
	for r := range c.Rows() {
		b.Rows = append(b.Rows, int32(r))
	}
	if c.Dense() {
		if c.Width != m.Features {
			return nil, fault.Newf(fault.BadInput, "predict", strings.Join(uris, " "),
				"rows have %d features, the model %d", c.Width, m.Features).
				WithHint("set --label where there is a column beside the features")
		}
		return b, nil
	}
	base := int32(m.IndexBase)
	if c.ZeroBased {
		base = 0
	}
	b.X64, b.Offsets = nil, []int32{0}
	for r := range c.Rows() {
		for k := c.Offsets[r]; k < c.Offsets[r+1]; k++ {
			if j := c.Indices[k] - base; j >= 0 && int(j) < m.Features {
				b.Indices, b.X64 = append(b.Indices, j), append(b.X64, c.Values[k])
			}
		}
		b.Offsets = append(b.Offsets, int32(len(b.Indices)))
	}
	return b, nil
}

// param returns the centres, with distances taken about their mean.
func (m *Model) param() centres {
	c := centres{K: m.K, D: m.Features, At: m.Centres}
	if m.Distance != Cosine {
		c.Shift = make([]float64, m.Features)
		for k := range m.K {
			kernel.Axpy(1/float64(m.K), m.Centres[k*m.Features:(k+1)*m.Features], c.Shift)
		}
	}
	return c
}

// Predict writes one line a row as CSV: the number of the nearest centre, and the
// distance from it.
func (m *Model) Predict(ctx context.Context, in rdd.Input, uris []string, w io.Writer) (rows int64, err error) {
	return model.Predict(ctx, m, in, uris, w, false)
}

// Says returns what is said of a row: the number of the nearest centre, and the distance from it.
func (m *Model) Says(each bool) (*model.Says, error) {
	if each {
		return nil, fault.Newf(fault.Usage, "predict", "probabilities", "a model of kmeans has none").
			WithHint("logistic, softmax and mlp have them")
	}
	a, param := &assigner{cosine: m.Distance == Cosine}, m.param()
	lines := func(src *input.Source, uris []string) (model.ChunkLines, error) {
		batchOf, err := m.batches(src, uris)
		return func(to *model.Lines, c *rows.Chunk) error {
			b, err := batchOf(c)
			if err == nil {
				a.lines(to, &param, b)
			}
			return err
		}, err
	}
	return &model.Says{Header: "cluster,distance", Of: lines}, nil
}

// lines adds the nearest centre of each row, and the distance from it.
func (a *assigner) lines(to *model.Lines, param *centres, b *rdd.Batch) {
	work := a.work(len(b.Rows))
	defer a.pool.Put(work)
	a.assign(work, param, b)
	for i, at := range work.at {
		d := math.Sqrt(work.squared[i])
		if a.cosine {
			d = work.squared[i] / 2
		}
		to.Text = append(strconv.AppendInt(to.Text, int64(at), 10), ',')
		to.End(d)
	}
}

// Evaluate computes the cost of the model on data, how many centres have rows, and
// the mean silhouette by squared distances (of rows of length 1, under Cosine).
func (m *Model) Evaluate(ctx context.Context, in rdd.Input, uris []string) (map[string]float64, error) {
	a, param := &assigner{cosine: m.Distance == Cosine}, m.param()
	shift := param.Shift // rows are taken about it as a whole, so that no digits are lost
	param.At, param.Shift = about(param.At, shift), nil
	sparse := centres{K: param.K, D: param.D, At: m.Centres} // whose rows are not taken about it
	of := func(b *rdd.Batch) *centres {
		if !b.Dense() {
			return &sparse
		}
		b.X64 = about(b.X64, shift)
		return &param
	}
	all, read := a.clusters().Zero(param), 0
	squares := make([]float64, param.K) // the squared lengths of a cluster's rows
	type found struct {
		clusters
		squares []float64
		rows    int
	}
	err := eachPart(ctx, m, in, uris,
		func() *found { return &found{a.clusters().Zero(param), make([]float64, param.K), 0} },
		func(to *found, b *rdd.Batch) error {
			work := a.work(len(b.Rows))
			defer a.pool.Put(work)
			a.assign(work, of(b), b)
			to.clusters = a.addAssigned(to.clusters, work, b)
			for i, sq := range a.squaredLengths(b) {
				to.squares[work.at[i]] += float64(sq * b.WeightOf(b.Rows[i]))
			}
			to.rows += len(b.Rows)
			return nil
		}, func(part *found) error {
			all, read = a.clusters().Merge(all, part.clusters), read+part.rows
			kernel.Axpy(1, part.squares, squares)
			return nil
		})
	var total float64
	for _, n := range all.N {
		total += n
	}
	if err == nil {
		err = model.WeighsNothing(read, total, uris)
	}
	if err != nil {
		return nil, err
	}
	out := map[string]float64{"cost": all.Cost, "clusters": 0}
	for _, n := range all.N {
		if n > 0 {
			out["clusters"]++
		}
	}
	if out["clusters"] < 2 {
		return out, nil
	}
	type measured struct{ sum, weight float64 }
	var whole measured
	err = eachPart(ctx, m, in, uris, func() *measured { return &measured{} },
		func(to *measured, b *rdd.Batch) error {
			work := a.work(len(b.Rows))
			defer a.pool.Put(work)
			a.assign(work, of(b), b)
			to.sum += a.silhouettes(work, &all, squares, b)
			for _, r := range b.Rows {
				to.weight += b.WeightOf(r)
			}
			return nil
		}, func(part *measured) error {
			whole.sum, whole.weight = whole.sum+part.sum, whole.weight+part.weight
			return nil
		})
	out["silhouette"] = whole.sum / whole.weight
	return out, err
}

// about returns dense rows minus a shift (nil: nothing).
func about(x, shift []float64) []float64 {
	if shift == nil {
		return x
	}
	out, d := make([]float64, len(x)), len(shift)
	for i, v := range x {
		out[i] = v - shift[i%d]
	}
	return out
}

// silhouettes adds up (b − a) / max(a, b) of the rows of a batch, times their weights: a is the mean
// squared distance from the other rows of the row's own cluster, b the least of
// those from the rows of another; 0 where it is alone.
func (a *assigner) silhouettes(w *assignWork, all *clusters, squares []float64, b *rdd.Batch) (sum float64) {
	n := len(b.Rows)
	own, other := make([]float64, n), make([]float64, n)
	lengths := a.squaredLengths(b)
	for i := range other {
		other[i] = math.Inf(1)
	}
	d := len(all.Sum) / len(all.N)
	for c, count := range all.N {
		if count == 0 {
			continue
		}
		fold.Dots(w.dots, all.Sum[c*d:(c+1)*d], b, b.Rows)
		for i, z := range w.dots {
			if a.cosine {
				z *= w.scale[i]
			}
			total := math.FMA(-2, z, math.FMA(lengths[i], count, squares[c])) // of all rows of c
			if int(w.at[i]) == c {
				own[i] = 0
				if others := count - b.WeightOf(b.Rows[i]); others > 0 {
					own[i] = max(0, total) / others
				}
			} else {
				other[i] = min(other[i], max(0, total)/count)
			}
		}
	}
	for i, at := range w.at {
		weight := b.WeightOf(b.Rows[i])
		if all.N[at] > weight && max(own[i], other[i]) > 0 {
			sum += weight * ((other[i] - own[i]) / max(own[i], other[i]))
		}
	}
	return sum
}

// squaredLengths returns the squared lengths of the rows of a batch, brought to length 1 under cosine.
func (a *assigner) squaredLengths(b *rdd.Batch) []float64 {
	out := make([]float64, len(b.Rows))
	for i, r := range b.Rows {
		if out[i] = squaredLength(b, int(r)); a.cosine && out[i] > 0 {
			out[i] = 1
		}
	}
	return out
}

// Describe returns the model in a few lines: how large it is, and its centres.
func (m *Model) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d centres of %d features, by %s distance\n", m.K, m.Features, m.Distance)
	b.WriteString(m.Prepared.String())
	for k := range min(m.K, 10) {
		row := m.Centres[k*m.Features : (k+1)*m.Features]
		fmt.Fprintf(&b, "  %-4d", k)
		for _, v := range row[:min(len(row), 10)] {
			fmt.Fprintf(&b, " %.6g", v)
		}
		fmt.Fprintf(&b, "  (length %.6g)\n", math.Sqrt(kernel.Dot(row, row)))
	}
	return b.String()
}
