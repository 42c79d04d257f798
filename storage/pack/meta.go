package pack

import (
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/storage/input"
)

// Layout is how a pack's rows are stored in columns.
type Layout string

// Dense rows are fixed-size lists of floats, sparse ones a list of indices
// and a list of values, blob rows encoded values of a type of the user's.
const (
	DenseLayout  Layout = "dense"
	SparseLayout Layout = "sparse"
	BlobLayout   Layout = "blob"
)

// batchRows is the most rows of a record batch.
const batchRows = 64 << 10

// Options configure how rows become splits.
type Options struct {
	Splits    int    `json:"splits,omitempty"` // 0: by size, from the data only
	Random    bool   `json:"random,omitempty"` // rows go to splits by a seeded hash instead of by contiguous ranges
	Seed      uint64 `json:"seed"`
	Float32   bool   `json:"float32,omitempty"` // store features in single precision
	Sparse    bool   `json:"sparse,omitempty"`  // rows stay sparse, however many entries they have
	IndexBase int    `json:"index_base,omitempty"`
	Features  int    `json:"features,omitempty"`
	Workers   int    `json:"-"`
}

// Meta describes a pack: what its files hold and their content hashes.
type Meta struct {
	Version    int             `json:"version"`
	ID         plan.Digest     `json:"id"`
	Layout     Layout          `json:"layout"`
	Float32    bool            `json:"float32"`
	Rows       int64           `json:"rows"`
	Features   int             `json:"features"`
	Nonzeros   int64           `json:"nonzeros"`
	IndexBase  int             `json:"index_base"` // first column number in the input, for sparse text
	Names      []string        `json:"names,omitempty"`
	LabelName  string          `json:"label_name,omitempty"`
	Weighted   bool            `json:"weighted,omitempty"` // rows have weights
	WeightName string          `json:"weight_name,omitempty"`
	Prepared   *input.Prepared `json:"prepared,omitempty"`  // what rows were made of
	Labels     []string        `json:"labels,omitempty"`    // distinct labels in ascending order, where few
	TextLabels bool            `json:"text_labels"`         // labels in the file are positions in Labels
	Malformed  int64           `json:"malformed,omitempty"` // records of the input that were left out
	Missing    int64           `json:"missing,omitempty"`   // rows that were left out as they lack a number
	Splits     []SplitMeta     `json:"splits"`
}

// SplitMeta describes one split's file.
type SplitMeta struct {
	Rows     int64       `json:"rows"`
	Weight   float64     `json:"weight,omitempty"`   // of all its rows, where rows have weights
	Nonzeros int64       `json:"nonzeros,omitempty"` // of sparse rows
	Bytes    int64       `json:"bytes"`
	SHA256   plan.Digest `json:"sha256"`
}

// Weight returns what all rows weigh: their number, unless they have weights.
func (m *Meta) Weight() float64 {
	if !m.Weighted {
		return float64(m.Rows)
	}
	var sum float64
	for _, s := range m.Splits {
		sum += s.Weight
	}
	return sum
}

// Bytes returns the size of all the pack's files.
func (m *Meta) Bytes() int64 {
	var n int64
	for _, s := range m.Splits {
		n += s.Bytes
	}
	return n
}

// valueSize returns the size in bytes of a stored feature.
func (m *Meta) valueSize() int {
	if m.Float32 {
		return 4
	}
	return 8
}

// defaultSplits depends on the data only: 24 (which divides among 1, 2, 3, 4,
// 6, 8 and 12 executors), more where a split would be over 32 MiB, fewer where
// a split would hold under 64 rows, and down to 4 where it would not be well
// larger than the vector of features that each of its partial results is.
func defaultSplits(rows, bytes int64, features int) int {
	n := 24 * max(1, (bytes+24*splitBytes-1)/(24*splitBytes))
	for _, fewer := range []int64{12, 8, 4, 2, 1} {
		narrow := fewer >= 4 && bytes/n < 16*8*int64(features)
		if n <= 24 && (rows/n < 64 || narrow) {
			n = fewer
		}
	}
	return int(n)
}

const splitBytes = 32 << 20
