package csv

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"strconv"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/input/rows"
	"github.com/volley-engine/volley/storage/input/text"
)

// parser reads points from records of text.
type parser struct {
	cursor
	spec *Table
	blk  text.Block
	c    *rows.Chunk
	prep rows.Taker // nil where fields are features without preparation
}

// Read yields the points of a range, block by block. The Taker that begin returns,
// if any, takes the fields of a block; it may prepare the chunk of its rows.
func (s *Table) Read(ctx context.Context, rng files.Range, begin func(c *rows.Chunk) rows.Taker,
	yield func(*rows.Chunk) error) error {
	for blk, err := range s.blocks(rng) {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		c, prep := &rows.Chunk{}, rows.Taker(nil)
		if begin != nil {
			prep = begin(c)
		}
		if err := parse(blk, s, c, prep); err != nil {
			return err
		}
		if c.Rows() == 0 && c.Malformed == 0 {
			continue
		}
		c.Where = blk.Place()
		if err := yield(c); err != nil {
			return err
		}
	}
	return nil
}

// errMalformed is the error of a record that is left out.
var errMalformed = errors.New("malformed")

// parse reads all records of a block.
func parse(blk text.Block, spec *Table, c *rows.Chunk, prep rows.Taker) error {
	p := &parser{cursor: cursor{dialect: &spec.dialect, b: blk.Data}, spec: spec, blk: blk, c: c, prep: prep}
	if prep == nil {
		c.Width = len(spec.Features)
	}
	first := blk.Offset == blk.Range.Skip
	for p.i < len(p.b) {
		if p.skipEmpty() {
			continue
		}
		if err := p.row(first && !spec.Header); err != nil {
			return spec.Sure(blk.Range, err)
		}
		first = false
	}
	return nil
}

// row reads a record, and drops it where it is malformed and to be left out. A
// record that might be a header is not left out.
func (p *parser) row(first bool) error {
	if p.spec.Malformed == FailFast {
		return p.record(first)
	}
	at, start := p.c.Mark(), p.i
	err := p.record(first)
	if err != errMalformed {
		return err
	}
	if p.isOpen(start) { // it may be any number of rows
		return p.bad(true, start, p.hint(notClosed), "%s", notClosed)
	}
	p.c.BackTo(at)
	p.c.Malformed++
	if p.prep != nil {
		p.prep.Forget()
	}
	p.i, _ = p.recordEnd(p.b, start)
	return nil
}

// isOpen reports whether a quote of the record at a position is not closed.
func (p *parser) isOpen(start int) bool {
	end, whole := p.recordEnd(p.b, start)
	if whole || end < len(p.b) {
		return false
	}
	c := cursor{dialect: p.dialect, b: p.b, i: start}
	c.fields(nil)
	return c.wrong == notClosed
}

func (p *parser) record(first bool) error {
	start, col := p.i, 0
	p.begin()
	for done := false; !done; col++ {
		if col == p.spec.Columns {
			return p.bad(first, start, "", "the row has more than the %d fields of the first row", p.spec.Columns)
		}
		at := p.i
		if why := p.take(col); why != nil {
			p.i = at
			return p.complaint(first, at, col, why)
		}
		if p.wrong != "" {
			return p.bad(first, at, p.hint(p.wrong), "field %s: %s", p.columnName(col), p.wrong)
		}
		done = p.endField()
	}
	if col < p.spec.Columns-p.spec.Unnamed {
		return p.bad(first, start, "", "the row has %d fields, the first row %d", col, p.spec.Columns)
	}
	if p.spec.Label < 0 {
		p.c.Labels = append(p.c.Labels, 0)
	}
	if p.prep != nil {
		p.prep.End(p.c)
	}
	return nil
}

// What can be wrong with a field; the details are determined when the error is made.
var (
	errNumber = errors.New("number")
	errWeight = errors.New("weight")
	errLabel  = errors.New("label")
	errExtra  = errors.New("extra")
	errWide   = errors.New("wide")
	errNull   = errors.New("null")
)

// take reads the field of a column, and returns what is wrong with it.
func (p *parser) take(col int) error {
	if p.spec.Null != "" && p.null() {
		if col == p.spec.Weight && p.prep != nil && p.prep.Weightless() {
			p.c.Weights = append(p.c.Weights, 0)
			p.toFieldEnd()
			return nil
		}
		if p.prep == nil || col == p.spec.Label || col == p.spec.Weight || !p.prep.Field(col, nil, 0, false) {
			return errNull
		}
		p.toFieldEnd()
		return nil
	}
	switch {
	case col == p.spec.Label:
		return p.label()
	case col == p.spec.Weight:
		return p.weight()
	case col >= p.spec.Columns-p.spec.Unnamed:
		return p.nothing()
	case p.prep != nil:
		return p.prepared(col)
	}
	v, ok := p.number()
	if !ok || v-v != 0 {
		return errNumber
	}
	p.c.Values = append(p.c.Values, v)
	return nil
}

// nothing skips a field of a column that has no name.
func (p *parser) nothing() error {
	if field, _ := p.text(); len(bytes.TrimSpace(field)) > 0 {
		return errExtra
	}
	return nil
}

// prepared passes a field to the preparation of features.
func (p *parser) prepared(col int) error {
	at := p.i
	v, number := p.number()
	number = number && finite(v)
	end := p.i
	p.i = at
	text := p.trimmed()
	p.i = max(p.i, end)
	if !p.prep.Field(col, text, v, number) {
		return errNumber
	}
	return nil
}

// null reports whether a field is the unquoted null text.
func (p *parser) null() bool {
	at, wrong := p.i, p.wrong
	field, quoted := p.text()
	p.i, p.wrong = at, wrong
	return !quoted && string(bytes.Trim(field, " ")) == p.spec.Null
}

// trimmed returns a field's text without surrounding blanks, unless these are quoted.
func (p *parser) trimmed() []byte {
	field, quoted := p.text()
	if quoted {
		return field
	}
	return bytes.Trim(field, " ")
}

// weight reads the row's weight: a number of zero or more.
func (p *parser) weight() error {
	at := p.i
	v, ok := p.number()
	if (!ok || v != v) && p.prep != nil {
		p.i = at
		if v, ok = 0, text.NoNumber(p.trimmed()) && p.prep.Weightless(); ok {
			p.c.Weights = append(p.c.Weights, v)
			return nil
		}
	}
	if !ok || !(v >= 0) || math.IsInf(v, 0) {
		return errWeight
	}
	p.c.Weights = append(p.c.Weights, v)
	return nil
}

// label reads a number, or, where the labels in the files' heads are not numbers, text.
func (p *parser) label() error {
	if !p.spec.TextLabels {
		v, ok := p.number()
		if !ok || !finite(v) {
			return errLabel
		}
		if math.Abs(v) >= 1<<53 { // labels that differ might be one number
			return errWide
		}
		p.c.Labels = append(p.c.Labels, v)
		return nil
	}
	f := p.trimmed()
	if len(f) == 0 {
		return errLabel
	}
	p.c.AddText(f)
	return nil
}

// bad refuses a record: with an error where the policy is to fail, and always for
// a file's first row, which may be a header.
func (p *parser) bad(first bool, at int, hint, format string, args ...any) error {
	if p.spec.Malformed == DropMalformed && !first {
		return errMalformed
	}
	if first && hint == "" && p.spec.Malformed == DropMalformed {
		hint = "if the first line is a header, set --header true"
	}
	err := fault.Newf(fault.BadInput, "read", p.blk.Where(at), format, args...)
	if hint != "" {
		err = err.WithHint(hint)
	}
	return err
}

// complaint returns what is wrong with the field at a position.
func (p *parser) complaint(first bool, at, col int, why error) error {
	if p.spec.Malformed == DropMalformed && !first {
		return errMalformed
	}
	name := p.columnName(col)
	v, scanned := p.number()
	p.i = at
	f := p.trimmed()
	f = f[:min(len(f), 80)]
	switch {
	case p.wrong != "":
		return p.bad(first, at, p.hint(p.wrong), "field %s: %s", name, p.wrong)
	case why == errNull:
		return p.bad(first, at, "--missing says what becomes of features that are",
			"field %s is %q, which is null", name, f)
	case why == errExtra:
		return p.bad(first, at, "", "field %d is %q, and the header gives it no name", col, f)
	case why == errWeight:
		return p.bad(first, at, "--missing drop leaves rows without a weight out; predict takes --weight-column none",
			"the weight in field %s is %q, not a number of zero or more", name, f)
	case why == errWide:
		return p.bad(first, at, "", "the label %s in field %s has more digits than a number keeps: make it a text", f,
			name)
	case why == errLabel && scanned && !finite(v):
		return p.bad(first, at, "", "the label in field %s is not finite", name)
	case why == errLabel && len(f) == 0:
		return p.bad(first, at, "", "the label in field %s is empty", name)
	case why == errLabel:
		return p.bad(first, at, "", "the label %q in field %s is not a number", f, name)
	case scanned:
		return p.bad(first, at, "", "field %s is %q, not finite", name, f)
	case len(f) == 0:
		return p.bad(first, at, "--missing says what becomes of it", "field %s is empty", name)
	}
	hint := "columns of text are for --onehot, --hash or --text"
	if text.NoNumber(f) {
		hint = "--missing says what becomes of it"
	}
	return p.bad(first, at, hint, "field %s is %q, not a number", name, f)
}

func (p *parser) columnName(col int) string {
	if p.spec.Header {
		return strconv.Quote(p.spec.Names[col])
	}
	return strconv.Itoa(col)
}
