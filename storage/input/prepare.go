package input

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/cespare/xxhash/v2"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/rows"
	"github.com/volley-engine/volley/storage/input/text"
)

// Prepare configures how columns of a table of text become features: columns by
// name or number.
type Prepare struct {
	OneHot  []string `json:"onehot,omitempty"`  // a feature for each value that the data has
	Hash    []string `json:"hash,omitempty"`    // a feature for each bucket of values
	Text    []string `json:"text,omitempty"`    // a feature for each bucket of words, by TF-IDF
	Buckets int      `json:"buckets,omitempty"` // 0: DefaultBuckets
	Missing Missing  `json:"missing,omitempty"`
	Scale   Scale    `json:"scale,omitempty"`
	// IDs are columns of ids, each the first of some names that the table has. Where they have texts, ids become their
	// places among all of them in order, and the columns that are not among Beside are left out.
	IDs    [][]string `json:"ids,omitempty"`
	Beside [][]string `json:"beside,omitempty"`
}

// DefaultBuckets is how many buckets values and words are hashed to.
const DefaultBuckets = 1 << 16

// Missing is the policy for fields without a number: those that are empty, or
// NA, NaN, null, none or ?.
type Missing string

// The policies. Dropped rows are not trained on; where they are to be predicted,
// the mean replaces the field.
const (
	MissingError Missing = ""
	MissingZero  Missing = "zero"
	MissingMean  Missing = "mean"
	MissingDrop  Missing = "drop"
)

// Scale is how columns of numbers are scaled.
type Scale string

// The ways: as they are; to mean 0 and deviation 1; to [0, 1]; to at most 1 in
// absolute value.
const (
	ScaleNone     Scale = ""
	ScaleStandard Scale = "standard"
	ScaleMinMax   Scale = "minmax"
	ScaleMaxAbs   Scale = "maxabs"
)

// Asked reports whether any preparation is configured.
func (p Prepare) Asked() bool {
	return len(p.OneHot)+len(p.Hash)+len(p.Text) > 0 || p.Missing != MissingError || p.Scale != ScaleNone
}

// Prepared is a Prepare fitted to data: everything that turns a raw row into a
// point, as a model keeps it.
type Prepared struct {
	Columns []PreparedColumn `json:"columns"`
	Width   int              `json:"width"` // features
	Sparse  bool             `json:"sparse"`
	Missing Missing          `json:"missing,omitempty"`
	Header  bool             `json:"header"` // columns have names
	unknown unknownIDs
}

// columnKind is how a Prepared treats a column.
type columnKind string

const (
	numberColumn columnKind = "number"
	oneHotColumn columnKind = "onehot"
	hashColumn   columnKind = "hash"
	textColumn   columnKind = "text"
	idColumn     columnKind = "id"      // of Prepare.IDs: one feature
	unusedColumn columnKind = "ignored" // makes no feature
)

// PreparedColumn turns a field into features: from At on, Width of them.
type PreparedColumn struct {
	Name   string     `json:"name"`
	Kind   columnKind `json:"kind"`
	At     int        `json:"at"`
	Width  int        `json:"width"`
	Fill   float64    `json:"fill,omitempty"` // in place of a missing number
	Shift  float64    `json:"shift,omitempty"`
	Factor float64    `json:"factor,omitempty"` // of the number less Shift
	Values []string   `json:"values,omitempty"` // of a one-hot column, or ids, ascending
	// Of a text column: the logarithm of (documents+1)/(those with a word of the
	// bucket + 1), for the buckets that have any, and for the others.
	Seen   []int32   `json:"seen,omitempty"`
	IDF    []float64 `json:"idf,omitempty"`
	Unseen float64   `json:"unseen,omitempty"`
}

// mostOneHot is the most values of a one-hot column; denseWidth the most features
// that rows are dense with.
const (
	mostOneHot = 100_000
	denseWidth = 512
)

// bucketOf returns the bucket of a word or value.
func bucketOf(word []byte, buckets int) int { return int(xxhash.Sum64(word) % uint64(buckets)) }

// words yields the runs of letters and digits of a text, in lower case.
func words(text []byte, yield func(word []byte)) {
	for _, w := range strings.FieldsFunc(strings.ToLower(string(text)), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		yield([]byte(w))
	}
}

// plan determines the kind of each feature column of a table.
func (p Prepare) plan(spec *layout, path string) (*Prepared, error) {
	out := &Prepared{Missing: p.Missing, Header: spec.Header}
	kinds := map[int]columnKind{}
	for kind, names := range map[columnKind][]string{oneHotColumn: p.OneHot, hashColumn: p.Hash, textColumn: p.Text} {
		for _, name := range names {
			i, err := columnOf(spec, name, path)
			if err != nil {
				return nil, err
			}
			if kinds[i] != "" || i == spec.Label || i == spec.Weight {
				return nil, fault.Newf(fault.Usage, "prepare", path,
					"column %q is used twice: as %s and as something else", name, kind)
			}
			kinds[i] = kind
		}
	}
	if err := p.planIDs(spec, path, kinds); err != nil {
		return nil, err
	}
	for k, i := range spec.Features {
		for _, other := range spec.Features[:k] {
			if spec.Header && spec.Names[other] == spec.Names[i] {
				return nil, fault.Newf(fault.BadInput, "prepare", path,
					"two columns are called %q: a model finds them by name", spec.Names[i])
			}
		}
	}
	buckets := p.Buckets
	if buckets == 0 {
		buckets = DefaultBuckets
	}
	for _, i := range spec.Features {
		c := PreparedColumn{Name: spec.Names[i], Kind: kinds[i], Width: 1, Factor: 1}
		switch c.Kind {
		case "":
			c.Kind = numberColumn
		case hashColumn, textColumn:
			c.Width, out.Sparse = buckets, true
		case unusedColumn:
			c.Width = 0
		}
		out.Columns = append(out.Columns, c)
	}
	return out, nil
}

// columnOf returns the number of a table's column by its name or number.
func columnOf(s *layout, name, path string) (int, error) {
	if i := slices.Index(s.Names, name); i >= 0 {
		return i, nil
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(s.Names) {
		return n, nil
	}
	return 0, fault.Newf(fault.Usage, "prepare", path, "there is no column %q; columns are %s", name,
		strings.Join(s.Names[:min(len(s.Names), 40)], " "))
}

// lay assigns features to columns, once the values of one-hot columns are known.
func (p *Prepared) lay() {
	p.Width = 0
	for i := range p.Columns {
		c := &p.Columns[i]
		if c.Kind == oneHotColumn {
			c.Width = len(c.Values)
		}
		c.At = p.Width
		p.Width += c.Width
	}
	p.Sparse = p.Sparse || p.Width > denseWidth
}

// Names returns the names of the features, where columns have names and none is hashed.
func (p *Prepared) Names() []string {
	if !p.Header {
		return nil
	}
	var out []string
	for _, c := range p.Columns {
		switch c.Kind {
		case numberColumn, idColumn:
			out = append(out, c.Name)
		case unusedColumn:
		case oneHotColumn:
			for _, v := range c.Values {
				out = append(out, c.Name+"="+v)
			}
		default:
			return nil
		}
	}
	return out
}

// Name returns the name of one feature: of a hashed one its column's, and its bucket.
func (p *Prepared) Name(feature int) string {
	for _, c := range p.Columns {
		k := feature - c.At
		switch {
		case k >= c.Width:
			continue
		case c.Kind == oneHotColumn:
			return c.Name + "=" + c.Values[k]
		case c.Kind == numberColumn || c.Kind == idColumn:
			return c.Name
		}
		return c.Name + "#" + strconv.Itoa(k)
	}
	return strconv.Itoa(feature)
}

// String returns the preparation in a line a column.
func (p *Prepared) String() string {
	if p == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("made from\n")
	for _, c := range p.Columns {
		switch c.Kind {
		case numberColumn:
			fmt.Fprintf(&b, "  %-20s (value − %g) × %g", c.Name, c.Shift, c.Factor)
			if p.Missing != MissingError {
				fmt.Fprintf(&b, ", missing is %g", c.Fill)
			}
		case oneHotColumn:
			fmt.Fprintf(&b, "  %-20s a feature for each of %d values", c.Name, len(c.Values))
		case idColumn:
			fmt.Fprintf(&b, "  %-20s one of %d ids", c.Name, len(c.Values))
		case unusedColumn:
			fmt.Fprintf(&b, "  %-20s is not used", c.Name)
		case hashColumn:
			fmt.Fprintf(&b, "  %-20s values in %d buckets", c.Name, c.Width)
		default:
			fmt.Fprintf(&b, "  %-20s words in %d buckets, %d of them seen", c.Name, c.Width, len(c.Seen))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// places returns where a table has the columns: by name where both have names,
// else in turn.
func (p *Prepared) places(spec *layout, path string) (map[int]*PreparedColumn, error) {
	out := map[int]*PreparedColumn{}
	if !p.Header || !spec.Header {
		if len(spec.Features) != len(p.Columns) {
			return nil, fault.Newf(fault.BadInput, "prepare", path,
				"it has %d columns of features, the model was made from %d", len(spec.Features), len(p.Columns))
		}
		for k, i := range spec.Features {
			out[i] = &p.Columns[k]
		}
		return out, nil
	}
	for k := range p.Columns {
		i := slices.Index(spec.Names, p.Columns[k].Name)
		if i < 0 {
			return nil, fault.Newf(fault.BadInput, "prepare", path,
				"the column %q is missing, which the model was made from", p.Columns[k].Name)
		}
		out[i] = &p.Columns[k]
	}
	return out, nil
}

// Check refuses a preparation that no model can have.
func (p *Prepared) Check() error {
	at := 0
	for _, c := range p.Columns {
		ok := c.At == at && c.Width >= 0 && c.Width <= 1<<28 && len(c.Seen) == len(c.IDF) &&
			(c.Kind != oneHotColumn || len(c.Values) == c.Width)
		for _, v := range append([]float64{c.Fill, c.Shift, c.Factor, c.Unseen}, c.IDF...) {
			ok = ok && !math.IsNaN(v) && !math.IsInf(v, 0)
		}
		if !ok {
			return fault.Newf(fault.Corrupt, "read", "model.json", "its preparation of column %q cannot be", c.Name)
		}
		at += c.Width
	}
	if at != p.Width {
		return fault.Newf(fault.Corrupt, "read", "model.json", "its preparation makes %d features of %d", at, p.Width)
	}
	return nil
}

// Alike reports whether two preparations make the same features of the same columns, scaled both or neither: by how
// much depends on the data that they were fitted to.
func (p *Prepared) Alike(o *Prepared) bool {
	if p == nil || o == nil {
		return p == nil && o == nil
	}
	return slices.EqualFunc(p.Columns, o.Columns, func(a, b PreparedColumn) bool {
		return a.Name == b.Name && a.Kind == b.Kind && a.At == b.At && a.Width == b.Width &&
			slices.Equal(a.Values, b.Values) && (a.Factor == 1) == (b.Factor == 1)
	})
}

// feature is one feature of a row.
type feature struct {
	at int32
	v  float64
}

// rowPreparer turns the fields of rows, one after the other, into points of a chunk.
type rowPreparer struct {
	p      *Prepared
	places map[int]*PreparedColumn
	keep   bool // rows with missing numbers are filled, not dropped
	row    []feature
	counts map[int32]float64
	drop   bool
}

// Field takes a field; ok is false where it must be a number and is not.
func (r *rowPreparer) Field(col int, field []byte, v float64, number bool) (ok bool) {
	c := r.places[col]
	if c == nil {
		return true // a column that the model was not trained on
	}
	switch c.Kind {
	case oneHotColumn:
		if k, found := slices.BinarySearch(c.Values, string(field)); found {
			r.row = append(r.row, feature{int32(c.At + k), 1})
		}
		return true
	case hashColumn:
		if len(field) > 0 {
			r.row = append(r.row, feature{int32(c.At + bucketOf(field, c.Width)), 1})
		}
		return true
	case textColumn:
		r.words(c, field)
		return true
	case unusedColumn:
		return true
	case idColumn:
		if text.NoNumber(field) {
			return false
		}
		r.row = append(r.row, feature{int32(c.At), r.p.idOf(c, field)})
		return true
	}
	if !number {
		if !text.NoNumber(field) || r.p.Missing == MissingError {
			return false
		}
		r.drop = r.drop || r.p.Missing == MissingDrop && !r.keep
		v = c.Fill
	}
	if v = float64((v - c.Shift) * c.Factor); v != 0 {
		r.row = append(r.row, feature{int32(c.At), v})
	}
	return true
}

// words adds the words of a text, by how often they come and how rare they are.
func (r *rowPreparer) words(c *PreparedColumn, text []byte) {
	clear(r.counts)
	words(text, func(w []byte) { r.counts[int32(bucketOf(w, c.Width))]++ })
	for bucket, n := range r.counts {
		idf := c.Unseen
		if k, seen := slices.BinarySearch(c.Seen, bucket); seen {
			idf = c.IDF[k]
		}
		if idf != 0 {
			r.row = append(r.row, feature{int32(c.At) + bucket, float64(n * idf)})
		}
	}
}

// Forget drops the current row, which is malformed.
func (r *rowPreparer) Forget() { r.row, r.drop = r.row[:0], false }

// Weightless reports whether a row without a weight is dropped.
func (r *rowPreparer) Weightless() bool {
	r.drop = r.drop || r.p.Missing == MissingDrop && !r.keep
	return r.drop
}

// End makes a point of the row, unless it is dropped.
func (r *rowPreparer) End(c *rows.Chunk) {
	row := r.row
	r.row = r.row[:0]
	if r.drop {
		r.drop = false
		c.Drop()
	}
	if !r.p.Sparse {
		from := len(c.Values)
		c.Values = append(c.Values, make([]float64, r.p.Width)...)
		for _, f := range row {
			c.Values[from+int(f.at)] = f.v
		}
		return
	}
	slices.SortFunc(row, func(a, b feature) int { return int(a.at - b.at) })
	for _, f := range row {
		c.Indices, c.Values = append(c.Indices, f.at), append(c.Values, f.v)
	}
	c.Offsets = append(c.Offsets, int64(len(c.Indices)))
}
