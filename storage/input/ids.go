package input

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/rows"
	"github.com/volley-engine/volley/storage/input/text"
)

// unknownIDs are texts that are no ids of a preparation, which become numbers below zero: in the order in which they
// come, by this process only.
type unknownIDs struct {
	mu     sync.Mutex
	number map[string]int
	texts  []string
}

// idOf returns the number of an id: its place, or one below zero where it is unknown.
func (p *Prepared) idOf(c *PreparedColumn, field []byte) float64 {
	if k, found := slices.BinarySearch(c.Values, string(field)); found {
		return float64(k)
	}
	u := &p.unknown
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.number == nil {
		u.number = map[string]int{}
	}
	n, came := u.number[string(field)]
	if !came {
		n = len(u.texts)
		u.number[string(field)], u.texts = n, append(u.texts, string(field))
	}
	return float64(-1 - n)
}

// ID returns the text of an id of one of the columns, known or not.
func (p *Prepared) ID(column int, number float64) string {
	if c := &p.Columns[column]; c.Kind != idColumn {
		return strconv.FormatFloat(number, 'f', 0, 64)
	} else if number >= 0 {
		return c.Values[int(number)]
	}
	p.unknown.mu.Lock()
	defer p.unknown.mu.Unlock()
	return p.unknown.texts[int(-1-number)]
}

// IDColumn returns a column of ids, by the first of some names, or numbers, that there are; the zero value where it has
// no texts.
func (p *Prepared) IDColumn(names ...string) IDColumn {
	if p == nil {
		return IDColumn{}
	}
	at := slices.IndexFunc(names, func(name string) bool { return p.column(name) >= 0 })
	if at < 0 {
		return IDColumn{}
	}
	c := &p.Columns[p.column(names[at])]
	if c.Kind != idColumn {
		return IDColumn{Name: c.Name}
	}
	return IDColumn{c.Name, c.Values}
}

// column returns the place of a column; −1 where there is none.
func (p *Prepared) column(name string) int {
	if at := slices.IndexFunc(p.Columns, func(c PreparedColumn) bool { return c.Name == name }); at >= 0 {
		return at
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(p.Columns) {
		return n
	}
	return -1
}

// IDColumn is a column of a table of ids and numbers.
type IDColumn struct {
	Name string
	IDs  []string // in order; nil where it has numbers
}

// PreparedIDs returns the preparation of a table's columns of ids, which has their names.
func PreparedIDs(columns ...IDColumn) *Prepared {
	p := &Prepared{Header: true}
	for _, c := range columns {
		one := PreparedColumn{Name: c.Name, Kind: numberColumn, Width: 1, Factor: 1}
		if c.IDs != nil {
			one.Kind, one.Values = idColumn, c.IDs
		}
		p.Columns = append(p.Columns, one)
	}
	p.lay()
	return p
}

// textIDs returns the columns of ids that have texts, by what the first block of the table has.
func (s *Source) textIDs(ctx context.Context, ids [][]string) ([][]string, error) {
	f := &idFinder{spec: s.layout(), of: map[int]string{}, texts: map[int]bool{}}
	for _, names := range ids {
		i := firstColumn(f.spec, names)
		if i < 0 {
			return nil, fault.Newf(fault.Usage, "read", s.Files[0].Path, "there is no column %q; columns are %s",
				names[0], strings.Join(f.spec.Names[:min(len(f.spec.Names), 40)], " "))
		}
		f.of[i] = f.spec.Names[i]
	}
	for i := range s.Len() {
		if s.part(i).Offset > 0 {
			continue // the beginning of each file is looked at
		}
		err := s.readFields(ctx, i, func(*rows.Chunk) rows.Taker { return f }, func(*rows.Chunk) error {
			return errOneBlock
		})
		if err != nil && err != errOneBlock {
			return nil, err
		}
	}
	var out [][]string
	for i := range f.spec.Names {
		if f.texts[i] {
			out = append(out, []string{f.of[i]})
		}
	}
	return out, nil
}

// errOneBlock ends reading.
var errOneBlock = fault.Newf(fault.Internal, "read", "a block", "one is enough")

// firstColumn returns the number of the first column that a table has of some names or numbers; −1 is none.
func firstColumn(spec *layout, names []string) int {
	for _, name := range names {
		if i := slices.Index(spec.Names, name); i >= 0 {
			return i
		}
	}
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(spec.Names) {
			return n
		}
	}
	return -1
}

// idFinder finds which columns have texts.
type idFinder struct {
	spec  *layout
	of    map[int]string
	texts map[int]bool
}

// Field notes a text in a column of ids: what is no number, or one that would be written otherwise, such as 007.
func (f *idFinder) Field(col int, field []byte, _ float64, number bool) bool {
	if _, id := f.of[col]; id && !text.NoNumber(field) && (!number || !plainNumber(field)) {
		f.texts[col] = true
	}
	return true
}

// mostDigits is how many digits a number keeps.
const mostDigits = 15

// plainNumber reports whether a number has no zeros before it, no exponent, and no more digits than are kept.
func plainNumber(field []byte) bool {
	digits := bytes.TrimLeft(bytes.TrimSpace(field), "+-")
	return !bytes.ContainsAny(digits, "eExX_") && len(digits) <= mostDigits+2 &&
		(len(digits) < 2 || digits[0] != '0' || digits[1] == '.')
}

// Forget forgets nothing.
func (f *idFinder) Forget() {}

// Weightless reports that rows without a weight do not matter here.
func (f *idFinder) Weightless() bool { return true }

// End drops the row, but for the block's last one: without rows it would not be handed out.
func (f *idFinder) End(c *rows.Chunk) {
	c.Labels, c.Weights = c.Labels[:min(1, len(c.Labels))], c.Weights[:min(1, len(c.Weights))]
}

// planIDs sets the kinds of the columns of a table with ids that are texts.
func (p Prepare) planIDs(spec *layout, path string, kinds map[int]columnKind) error {
	if len(p.IDs) == 0 {
		return nil
	}
	if !spec.Header && len(spec.Names) > 0 {
		return fault.Newf(fault.BadInput, "prepare", path, "its ids are texts, and its columns have no names").
			WithHint("begin the table with a line of names")
	}
	for _, i := range spec.Features {
		kinds[i] = unusedColumn
	}
	for _, names := range p.Beside {
		if i := firstColumn(spec, names); i >= 0 {
			delete(kinds, i)
		}
	}
	for _, names := range p.IDs {
		kinds[firstColumn(spec, names)] = idColumn
	}
	return nil
}
