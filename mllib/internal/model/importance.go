package model

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/rows"
)

// ImportanceConfig configures how the importance of columns is measured.
type ImportanceConfig struct {
	Metric  string // empty is the first that the model has of auc, accuracy, r2
	Repeats int    // permutations of each column
	Seed    uint64
	// Stored is how many bytes of data may be kept in memory, rather than read again for each permutation; 0 is 1 GiB.
	Stored int64
}

// mostStored returns how many bytes of data are kept.
func (c *ImportanceConfig) mostStored() int64 {
	if c.Stored > 0 {
		return c.Stored
	}
	return 1 << 30
}

// Importance is how much worse a metric of a model is where a column's values are those of other rows (Breiman, Random
// Forests, 2001, section 10): the mean over permutations, and their deviation.
type Importance struct {
	Column string  `json:"column"`
	Mean   float64 `json:"mean"`
	Std    float64 `json:"std"`
}

// Importances are the importances of columns, the greatest first, and the metric that they are of.
type Importances struct {
	Metric  string       `json:"metric"`
	Base    float64      `json:"base"` // with the columns as they are
	Columns []Importance `json:"columns"`
}

// mostImportances is the most columns whose importance is measured, by passes over the data for each.
const mostImportances = 10_000

// LessIsBetter are the metrics of which less is better.
var LessIsBetter = []string{"rmse", "mae", "log_loss", "brier", "calibration_error", "cost", "cold_rows",
	"false_positives", "false_negatives", "nonzeros"}

// reader is a model that uses some columns of its data only.
type reader interface {
	// Reads reports whether the model reads the column of a name, or number, to predict.
	Reads(name string, number int) bool
}

// ImportancesOf measures the importance of each column of data that a model reads, by an evaluation for each
// permutation and one more. Data that fit are read once.
func ImportancesOf(ctx context.Context, m Model, in rdd.Input, uris []string,
	c ImportanceConfig) (*Importances, error) {
	t := &importance{ctx: ctx, model: m, in: in, uris: uris, cfg: c}
	base, err := t.measure()
	if err != nil {
		return nil, err
	}
	out := &Importances{}
	if out.Metric, err = c.metricOf(base); err != nil {
		return nil, err
	}
	out.Base = base[out.Metric]
	reads, some := m.(reader)
	for i, g := range t.groups {
		if some && !reads.Reads(g.name, i) {
			continue
		}
		one, err := t.of(g, out.Metric, out.Base)
		if err != nil {
			return nil, err
		}
		out.Columns = append(out.Columns, one)
	}
	slices.SortStableFunc(out.Columns, func(a, b Importance) int {
		switch {
		case a.Mean > b.Mean:
			return -1
		case a.Mean < b.Mean:
			return 1
		}
		return 0
	})
	return out, nil
}

// metricOf returns the metric to measure by.
func (c *ImportanceConfig) metricOf(have map[string]float64) (string, error) {
	wanted := []string{c.Metric}
	if c.Metric == "" {
		wanted = []string{"auc", "accuracy", "r2", "rmse", "cost"}
	}
	for _, name := range wanted {
		if v, ok := have[name]; ok && !math.IsNaN(v) {
			return name, nil
		}
	}
	return "", fault.Newf(fault.Usage, "measure", "importance", "the model has no metric %s on these data; it has %s",
		strings.Join(wanted, " or "), strings.Join(slices.Sorted(maps.Keys(have)), " "))
}

// columnGroup is a column, and the features that are made of it: from From up to Through, the latter left out.
type columnGroup struct {
	name          string
	from, through int32
}

// groupsOf returns the columns of a source, by the features that its chunks have.
func groupsOf(s *input.Source) (out []columnGroup, err error) {
	n := s.Width()
	switch p := s.Preparation(); {
	case p != nil:
		for _, c := range p.Columns {
			out = append(out, columnGroup{c.Name, int32(c.At), int32(c.At + c.Width)})
		}
	case n < 0:
		err = fault.Newf(fault.Usage, "measure", "importance", "the data are not a table of columns").
			WithHint("importance is of the columns of CSV, TSV, Parquet and Arrow")
	default:
		names := s.FeatureNames()
		for j := range n {
			name := strconv.Itoa(j)
			if j < len(names) {
				name = names[j]
			}
			out = append(out, columnGroup{name, int32(j), int32(j + 1)})
		}
	}
	if len(out) > mostImportances {
		err = fault.Newf(fault.Usage, "measure", "importance", "%d columns are more than %d", len(out), mostImportances)
	}
	return out, err
}

// entry is a feature of a row.
type entry struct {
	at int32
	v  float64
}

// importance measures one model.
type importance struct {
	ctx    context.Context
	model  Model
	in     rdd.Input
	uris   []string
	cfg    ImportanceConfig
	groups []columnGroup
	mu     sync.Mutex
	parts  map[int][][]entry     // of a column, by part and row
	stored map[int][]*rows.Chunk // the data as they are, by part; nil where they are too many
	bytes  int64                 // of them
	read   bool                  // once
	failed error
}

// store keeps a chunk of a part, if there is room for all.
func (t *importance) store(part int, c *rows.Chunk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bytes += c.Bytes(); t.bytes > t.cfg.mostStored() {
		t.stored = nil
	}
	if t.stored != nil {
		t.stored[part] = append(t.stored[part], c.Clone())
	}
}

// evaluate measures the model on data whose chunks a function changes.
func (t *importance) evaluate(change func(part int) func(*rows.Chunk) error) (map[string]float64, error) {
	in := t.in
	if t.read && t.stored != nil {
		in.Stored = func(part int) []*rows.Chunk { return t.stored[part] }
	}
	in.Change = func(s *input.Source, part int) func(*rows.Chunk) error {
		t.mu.Lock()
		if t.groups == nil && t.failed == nil {
			t.groups, t.failed = groupsOf(s)
		}
		t.mu.Unlock()
		return change(part)
	}
	metrics, err := t.model.Evaluate(t.ctx, in, t.uris)
	if t.failed != nil {
		err = t.failed
	}
	return metrics, err
}

// measure returns the metrics of the data as they are, which are kept.
func (t *importance) measure() (map[string]float64, error) {
	t.stored = map[int][]*rows.Chunk{}
	metrics, err := t.evaluate(func(part int) func(*rows.Chunk) error {
		t.mu.Lock()
		delete(t.stored, part) // of a reading that was given up
		t.mu.Unlock()
		return func(c *rows.Chunk) error {
			t.store(part, c)
			return t.failed
		}
	})
	t.read = true
	return metrics, err
}

// collect gathers a column's values.
func (t *importance) collect(g *columnGroup) error {
	t.parts = map[int][][]entry{}
	if t.stored != nil {
		for part, chunks := range t.stored {
			for _, c := range chunks {
				for r := range c.Rows() {
					t.parts[part] = append(t.parts[part], g.of(c, r))
				}
			}
		}
		return nil
	}
	_, err := t.evaluate(func(part int) func(*rows.Chunk) error {
		t.mu.Lock()
		t.parts[part] = nil
		t.mu.Unlock()
		return func(c *rows.Chunk) error {
			some := make([][]entry, c.Rows())
			for r := range some {
				some[r] = g.of(c, r)
			}
			t.mu.Lock()
			defer t.mu.Unlock()
			t.parts[part] = append(t.parts[part], some...)
			return nil
		}
	})
	return err
}

// of returns the features of a row that are made of the column.
func (g *columnGroup) of(c *rows.Chunk, r int) (out []entry) {
	if c.Dense() {
		for j := g.from; j < g.through; j++ {
			out = append(out, entry{j, c.Values[r*c.Width+int(j)]})
		}
		return out
	}
	for k := c.Offsets[r]; k < c.Offsets[r+1]; k++ {
		if j := c.Indices[k]; j >= g.from && j < g.through {
			out = append(out, entry{j, c.Values[k]})
		}
	}
	return out
}

// of measures one column.
func (t *importance) of(g columnGroup, metric string, base float64) (out Importance, err error) {
	out.Column = g.name
	if err := t.collect(&g); err != nil {
		return out, err
	}
	var sum, squares float64
	for k := range t.cfg.Repeats {
		metrics, err := t.permuted(g, uint64(k))
		if err != nil {
			return out, err
		}
		worse := base - metrics[metric]
		if slices.Contains(LessIsBetter, metric) {
			worse = -worse
		}
		sum, squares = sum+worse, squares+worse*worse
	}
	n := float64(t.cfg.Repeats)
	out.Mean = sum / n
	out.Std = math.Sqrt(max(0, squares/n-out.Mean*out.Mean))
	return out, nil
}

// permuted returns the metrics of the data with the column's values of other rows.
func (t *importance) permuted(g columnGroup, turn uint64) (map[string]float64, error) {
	first, all := map[int]int{}, [][]entry(nil)
	for _, part := range slices.Sorted(maps.Keys(t.parts)) {
		first[part] = len(all)
		all = append(all, t.parts[part]...)
	}
	order := rand.New(rand.NewPCG(t.cfg.Seed, turn)).Perm(len(all))
	return t.evaluate(func(part int) func(*rows.Chunk) error {
		row, end := first[part], first[part]+len(t.parts[part])
		return func(c *rows.Chunk) error {
			if row+c.Rows() > end {
				return fault.Newf(fault.BadInput, "measure", "importance", "the data have changed meanwhile")
			}
			some := order[row : row+c.Rows()]
			row += c.Rows()
			g.put(c, func(r int) []entry { return all[some[r]] })
			return nil
		}
	})
}

// put gives each row of a chunk other features of the column.
func (g *columnGroup) put(c *rows.Chunk, of func(r int) []entry) {
	if c.Dense() {
		for r := range c.Rows() {
			for _, e := range of(r) {
				c.Values[r*c.Width+int(e.at)] = e.v
			}
		}
		return
	}
	var indices []int32
	var values []float64
	offsets := []int64{0}
	for r := range c.Rows() {
		row := slices.Clone(of(r))
		for k := c.Offsets[r]; k < c.Offsets[r+1]; k++ {
			if j := c.Indices[k]; j < g.from || j >= g.through {
				row = append(row, entry{j, c.Values[k]})
			}
		}
		slices.SortFunc(row, func(a, b entry) int { return int(a.at - b.at) })
		for _, e := range row {
			indices, values = append(indices, e.at), append(values, e.v)
		}
		offsets = append(offsets, int64(len(indices)))
	}
	c.Offsets, c.Indices, c.Values = offsets, indices, values
}

// String returns the importances as a table.
func (i *Importances) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %.6g; worse by, with a column's values of other rows:\n", i.Metric, i.Base)
	for _, c := range i.Columns {
		fmt.Fprintf(&b, "  %-20s %.6g ± %.2g\n", c.Column, c.Mean, c.Std)
	}
	return b.String()
}
