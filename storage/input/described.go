package input

import (
	"slices"
	"strconv"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
)

// Width returns how many features the columns of a table make; −1 where that
// depends on the rows.
func (s *Source) Width() int {
	switch {
	case s.Prepared != nil:
		return s.Prepared.Width
	case s.Columns != nil && s.Columns.List == "" && !s.Columns.Sparse:
		return len(s.Columns.Features)
	case s.Table != nil:
		return len(s.Table.Features)
	}
	return -1
}

// LabelName returns the name of the label's column, its number where columns
// have no names, and empty where there is none.
func (s *Source) LabelName() string {
	switch {
	case s.Columns != nil:
		return s.Columns.Label
	case s.Table != nil && s.Table.Label >= 0:
		return s.Table.Names[s.Table.Label]
	}
	return ""
}

// WeightName returns the same for the column of rows' weights.
func (s *Source) WeightName() string {
	switch {
	case s.Columns != nil:
		return s.Columns.Weight
	case s.Table != nil && s.Table.Weight >= 0:
		return s.Table.Names[s.Table.Weight]
	}
	return ""
}

// FeatureNames returns the names of the columns that are features, where there
// are any.
func (s *Source) FeatureNames() []string {
	switch {
	case s.Prepared != nil:
		return s.Prepared.Names()
	case s.Columns != nil:
		return s.Columns.Features
	case s.Table != nil && s.Table.Header:
		var names []string
		for _, i := range s.Table.Features {
			names = append(names, s.Table.Names[i])
		}
		return names
	}
	return nil
}

// Preparation returns the preparation that turns the input's rows into points;
// nil where they need none.
func (s *Source) Preparation() *Prepared { return s.Prepared }

// Column returns the place of a feature among the columns of a table: the first
// of the names given that a column has, or that is a column's number from 0.
func (s *Source) Column(either ...string) (int, error) {
	names := s.FeatureNames()
	for _, name := range either {
		if i := slices.Index(names, name); i >= 0 {
			return i, nil
		}
	}
	for _, name := range either {
		if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < s.Width() {
			return n, nil
		}
	}
	return 0, fault.Newf(fault.Usage, "read", s.Files[0].Path, "there is no column %q among its %d; they are %s",
		either[0], max(0, s.Width()),
		strings.Join(names[:min(len(names), 40)], " "))
}
