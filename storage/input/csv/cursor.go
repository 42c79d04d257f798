package csv

import (
	"bytes"
	"math"

	"github.com/volley-engine/volley/storage/input/text"
)

// cursor reads the fields of records of text, for all readers of tables. It is
// at the beginning of a record, or of a field.
type cursor struct {
	*dialect
	b       []byte
	i       int
	line    int    // the end of the line that i is in, once it was searched for
	wrong   string // why the record is malformed
	scratch []byte // contents of fields whose quotes were escaped
}

// skipEmpty skips a line that is not a record, and reports whether there was one.
func (c *cursor) skipEmpty() bool {
	if c.comment(c.b, c.i) {
		c.i = c.lineEnd(c.b, c.i)
		return true
	}
	j := c.skipBlanks(c.b, c.i)
	if j < len(c.b) && c.b[j] == '\r' && c.Newline == '\n' {
		j++
	}
	if j < len(c.b) && c.b[j] != c.Newline {
		return false
	}
	c.i = min(j+1, len(c.b))
	return true
}

// atFieldEnd reports whether a field ends before b[i].
func (c *cursor) atFieldEnd(i int) bool {
	return i >= len(c.b) || c.b[i] == c.Separator || c.b[i] == c.Newline ||
		c.b[i] == '\t' && c.Separator == blankRuns ||
		c.b[i] == '\r' && (i+1 == len(c.b) || c.b[i+1] == '\n')
}

// endField skips the separator or the line's end, and reports whether the
// record has ended.
func (c *cursor) endField() bool {
	if c.Separator == blankRuns {
		at := c.i
		if c.i = c.skipBlanks(c.b, c.i); c.i > at && !c.atFieldEnd(c.i) {
			return false
		}
	} else if c.i < len(c.b) && c.b[c.i] == c.Separator {
		c.i++
		return false
	}
	if c.i < len(c.b) && c.b[c.i] == '\r' && c.Newline == '\n' {
		c.i++
	}
	c.i = min(c.i+1, len(c.b))
	return true
}

// number reads a number in its field, quoted or not; ok is false, and the
// position unchanged, where the field is not a number.
func (c *cursor) number() (v float64, ok bool) {
	i := c.i
	if i < len(c.b) && c.b[i] > ' ' && c.b[i] != c.Quote { // the usual field
		v, end := text.Number(c.b, i)
		if end == i {
			return 0, false
		}
		if c.atFieldEnd(end) {
			c.i = end
			return v, true
		}
	}
	i = c.skipBlanks(c.b, i)
	quoted := i < len(c.b) && c.b[i] == c.Quote && c.Quote != 0
	if quoted {
		i++
	}
	v, end := text.Number(c.b, i)
	if ok = end > i; ok && quoted {
		ok = end < len(c.b) && c.b[end] == c.Quote
		end++
	}
	if c.Separator != blankRuns && ok {
		end = c.skipBlanks(c.b, end)
	}
	if !ok || !c.atFieldEnd(end) {
		return 0, false
	}
	c.i = end
	return v, true
}

// text returns the content of a field, which is valid until the next record is
// begun, and whether it was quoted; it advances to the field's end.
func (c *cursor) text() (field []byte, quoted bool) {
	i := c.skipBlanks(c.b, c.i)
	if c.Quote != 0 && i < len(c.b) && c.b[i] == c.Quote {
		return c.quotedText(i + 1), true
	}
	if c.Separator == blankRuns {
		c.i = i
	}
	start := c.i
	c.toFieldEnd()
	return c.b[start:c.i], false
}

// toFieldEnd steps to the next separator or the line's end.
func (c *cursor) toFieldEnd() {
	if c.i >= c.line {
		c.line = c.lineEnd(c.b, c.i)
	}
	if sep := c.nextSeparator(c.b[c.i:c.line]); sep >= 0 {
		c.i += sep
		return
	}
	end := c.line
	if end > c.i && c.b[end-1] == c.Newline {
		end--
	}
	if end > c.i && c.Newline == '\n' && c.b[end-1] == '\r' {
		end--
	}
	c.i = end
}

// quotedText reads the field whose content begins at b[i].
func (c *cursor) quotedText(i int) []byte {
	end := c.quoteEnd(c.b, i)
	if end < 0 {
		c.fails(notClosed)
		c.i = len(c.b)
		return c.b[i:]
	}
	content := c.b[i : end-1]
	if bytes.IndexByte(content, c.Quote) >= 0 || c.Escape != 0 && bytes.IndexByte(content, c.Escape) >= 0 {
		from := len(c.scratch)
		c.scratch = c.unquoted(c.scratch, content)
		content = c.scratch[from:]
	}
	if c.i = end; c.Separator != blankRuns {
		c.i = c.skipBlanks(c.b, end)
	}
	if !c.atFieldEnd(c.i) {
		c.fails(afterQuote)
		c.toFieldEnd()
	}
	return content
}

const (
	notClosed  = "a quote is not closed"
	afterQuote = "text follows a closing quote"
)

// fails notes why the record is malformed, the first time.
func (c *cursor) fails(why string) {
	if c.wrong == "" {
		c.wrong = why
	}
}

// hint returns what to do about a record that is malformed for a reason.
func (d *dialect) hint(wrong string) string {
	if wrong != afterQuote {
		return ""
	}
	if d.Escape == 0 {
		return `if quotes within fields are escaped, as \", the escape is \ (--escape '\'); if quotes are text, there are none (--quote none)`
	}
	return "quotes within quoted fields are doubled or escaped; if quotes are text, there are none (--quote none)"
}

// begin begins a record.
func (c *cursor) begin() { c.wrong, c.scratch = "", c.scratch[:0] }

// fields cuts one record into its fields, quotes removed.
func (c *cursor) fields(out [][]byte) [][]byte {
	for done := false; !done; done = c.endField() {
		field, _ := c.text()
		out = append(out, field)
	}
	return out
}

// finite reports whether a number is one.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
