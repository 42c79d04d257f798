package parquet

import (
	"context"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/input/rows"
)

// opened is a file as it is read, part by part.
type opened struct {
	kind  Kind
	plan  *Plan
	parts []files.Range
	flat  bool
}

// openPoints opens a file whose columns make points.
func openPoints(path string, kind Kind) (*opened, error) {
	files, err := files.Resolve(path)
	if err != nil {
		return nil, err
	}
	plan, parts, err := Open(context.Background(), files, kind, Options{})
	return &opened{kind: kind, plan: plan, parts: parts}, err
}

// openNamed opens a Parquet file of which some columns are wanted.
func openNamed(path string, names ...string) (*opened, error) {
	files, err := files.Resolve(path)
	if err != nil {
		return nil, err
	}
	parts, flat, err := PlanFlat(context.Background(), files, names)
	return &opened{kind: Parquet, parts: parts, flat: flat}, err
}

func (o *opened) columns(ctx context.Context, part int, names []string,
	yield func(rows int, cols []*FlatColumn) error) error {
	return ReadFlat(ctx, o.parts[part], names, yield)
}

func (o *opened) records(part int, names []string, yield func(arrow.Record) error) error {
	return ReadRecords(context.Background(), o.kind, o.parts[part], names, yield)
}

// points reads all parts.
func (o *opened) points(yield func(*rows.Chunk) error) error {
	for _, rng := range o.parts {
		if err := o.plan.Read(context.Background(), o.kind, rng, yield); err != nil {
			return err
		}
	}
	return nil
}

// readAll reads the points of a file, and adds their features up.
func readAll(path string) (n int, sum float64, err error) {
	kind := Parquet
	if strings.HasSuffix(path, ".arrow") {
		kind = Arrow
	}
	o, err := openPoints(path, kind)
	if err != nil {
		return 0, 0, err
	}
	err = o.points(func(c *rows.Chunk) error {
		n += c.Rows()
		for _, v := range c.Values {
			sum += v
		}
		return nil
	})
	return n, sum, err
}
