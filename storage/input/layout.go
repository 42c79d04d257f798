package input

// layout is what the preparation of features knows of a table: its columns, by numbers from 0.
type layout struct {
	Header   bool // columns have names of their own
	Names    []string
	Label    int // −1 is none
	Weight   int // −1 is none
	Features []int
}

// layout returns the columns of a table of text, or of single columns of Parquet or Arrow; nil where there are none.
func (s *Source) layout() *layout {
	switch {
	case s.Table != nil:
		t := s.Table
		return &layout{t.Header, t.Names[:min(len(t.Names), t.Columns)], t.Label, t.Weight, t.Features}
	case s.Columns == nil || !s.Columns.Single():
		return nil
	}
	l := &layout{Header: true, Names: s.Columns.Features, Label: -1, Weight: -1}
	for i := range l.Names {
		l.Features = append(l.Features, i)
	}
	return l
}
