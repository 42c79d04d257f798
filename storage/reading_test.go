package storage

import (
	"context"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
)

// opened is a file as it is read, part by part.
type opened struct {
	kind  fileKind
	plan  *columnPlan
	parts []Range
	flat  bool
}

// openPoints opens a file whose columns make points.
func openPoints(path string, kind fileKind) (*opened, error) {
	files, err := Resolve(path)
	if err != nil {
		return nil, err
	}
	plan, parts, err := planColumns(files, kind, columnOptions{})
	return &opened{kind: kind, plan: plan, parts: parts}, err
}

// openNamed opens a Parquet file of which some columns are wanted.
func openNamed(path string, names ...string) (*opened, error) {
	files, err := Resolve(path)
	if err != nil {
		return nil, err
	}
	parts, flat, err := planFlat(files, names)
	return &opened{kind: kindParquet, parts: parts, flat: flat}, err
}

func (o *opened) columns(ctx context.Context, part int, names []string, yield func(rows int, cols []*FlatColumn) error) error {
	return readFlat(ctx, o.parts[part], names, yield)
}

func (o *opened) records(part int, names []string, yield func(arrow.Record) error) error {
	return readRecords(context.Background(), o.kind, o.parts[part], names, yield)
}

// points reads all parts.
func (o *opened) points(yield func(*Chunk) error) error {
	for _, rng := range o.parts {
		if err := o.plan.read(context.Background(), o.kind, rng, yield); err != nil {
			return err
		}
	}
	return nil
}

// readAll reads the points of a file, and adds their features up.
func readAll(path string) (n int, sum float64, err error) {
	kind := kindParquet
	if strings.HasSuffix(path, ".arrow") {
		kind = kindArrow
	}
	o, err := openPoints(path, kind)
	if err != nil {
		return 0, 0, err
	}
	err = o.points(func(c *Chunk) error {
		n += c.Rows()
		for _, v := range c.Values {
			sum += v
		}
		return nil
	})
	return n, sum, err
}
