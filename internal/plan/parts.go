package plan

// Span is the positions [From, To) of a split.
type Span struct{ From, To int64 }

// Len returns how many positions the span has.
func (s Span) Len() int64 { return max(0, s.To-s.From) }

func (s Span) within(o Span) Span { return Span{max(s.From, o.From), min(s.To, o.To)} }

// Visited returns the positions of a split of n rows that a fold of up to limit
// rows (0 is all) visits: from the cursor to the split's end, and then from its
// beginning.
func Visited(rows, cursor, limit int64) [2]Span {
	if limit <= 0 || limit > rows {
		limit = rows
	}
	end := cursor + limit
	return [2]Span{{cursor, min(end, rows)}, {0, max(0, end-rows)}}
}

// VisitedOf returns those of them that are in one of the parts of the split,
// and their number.
func VisitedOf(rows, cursor, limit int64, parts, part int) (out [2]Span, n int64) {
	of := int64(parts)
	bounds := Span{int64(part) * rows / of, (int64(part) + 1) * rows / of}
	for i, s := range Visited(rows, cursor, limit) {
		out[i] = s.within(bounds)
		n += out[i].Len()
	}
	return out, n
}
