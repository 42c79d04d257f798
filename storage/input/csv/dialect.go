package csv

import (
	"bytes"

	"github.com/volley-engine/volley/internal/fault"
)

// dialect is how the records of a table of text are written. The rules, for all
// readers of tables:
//
// A field is quoted if the first character after blanks is the quote; blanks
// around the quotes are skipped, within them separators and newlines are text,
// and a quote is doubled or escaped. Quotes within other fields are text. Blank
// lines, and lines that begin with the comment character, are not records. Text
// after a closing quote, a quote that is not closed, and a number of fields
// other than the first record's make a record malformed.
type dialect struct {
	Separator byte `json:"separator"`
	Quote     byte `json:"quote,omitempty"`   // 0 is none
	Escape    byte `json:"escape,omitempty"`  // before a quote within quotes; 0: quotes are doubled
	Comment   byte `json:"comment,omitempty"` // 0 is none
	Newline   byte `json:"newline"`           // what lines end with, after a \r or without
}

// blankRuns is the separator of fields between which there are any number of
// blanks and tabs.
const blankRuns = ' '

// dialectOf returns the dialect of the options, with the newline found in a file's head.
func dialectOf(o Options, head []byte) dialect {
	d := dialect{Separator: o.Separator, Quote: o.Quote, Escape: o.Escape, Comment: o.Comment, Newline: '\n'}
	if d.Quote == 0 {
		d.Quote = '"'
	}
	if o.NoQuotes {
		d.Quote = 0
	}
	if bytes.IndexByte(head, '\n') < 0 && bytes.IndexByte(head, '\r') >= 0 {
		d.Newline = '\r'
	}
	return d
}

// checkDialect refuses options that contradict each other.
func checkDialect(o Options) error {
	bad := func(format string, args ...any) *fault.Error {
		return fault.Newf(fault.Usage, "read", "tables", format, args...)
	}
	for _, c := range []byte{o.Separator, o.Quote, o.Escape, o.Comment} {
		if c == '\n' || c == '\r' || c >= 0x80 {
			return bad("%q cannot be separator, quote, escape or comment", c)
		}
	}
	quote := dialectOf(o, nil).Quote
	for _, pair := range [][2]byte{{o.Separator, quote}, {o.Separator, o.Escape}, {o.Separator, o.Comment},
		{quote, o.Comment}, {o.Escape, o.Comment}} {
		if pair[0] != 0 && pair[0] == pair[1] {
			return bad("%q is to be two of separator, quote, escape and comment", pair[0])
		}
	}
	switch o.Malformed {
	case FailFast, DropMalformed, KeepMalformed:
		return nil
	}
	return bad("malformed records cannot be %q", o.Malformed).
		WithHint(`"" fails, "drop" leaves them out, "keep" keeps them`)
}

// blank reports whether a character is one that fields may be surrounded with.
func (d *dialect) blank(c byte) bool {
	return c == ' ' || c == '\t' && d.Separator != '\t'
}

// skipBlanks returns the first position from i on that is no blank.
func (d *dialect) skipBlanks(b []byte, i int) int {
	for i < len(b) && d.blank(b[i]) {
		i++
	}
	return i
}

// lineEnd returns the position after the line that b[i] is in, newline included.
func (d *dialect) lineEnd(b []byte, i int) int {
	if n := bytes.IndexByte(b[i:], d.Newline); n >= 0 {
		return i + n + 1
	}
	return len(b)
}

// nextSeparator returns the first separator of a piece of a line; −1 without one.
func (d *dialect) nextSeparator(line []byte) int {
	if d.Separator == blankRuns {
		return bytes.IndexAny(line, " \t")
	}
	return bytes.IndexByte(line, d.Separator)
}

// quoteEnd returns the position after the quote that closes the field whose
// content begins at b[i]; −1 where there is none.
func (d *dialect) quoteEnd(b []byte, i int) int {
	for from := i; ; {
		k := bytes.IndexByte(b[i:], d.Quote)
		if k < 0 {
			return -1
		}
		k += i
		switch {
		case d.escaped(b[from:k]):
			i = k + 1
		case k+1 < len(b) && b[k+1] == d.Quote:
			i, from = k+2, k+2
		default:
			return k + 1
		}
	}
}

// escaped reports whether the character after some content is escaped.
func (d *dialect) escaped(before []byte) bool {
	if d.Escape == 0 || d.Escape == d.Quote {
		return false
	}
	n := len(before)
	for n > 0 && before[n-1] == d.Escape {
		n--
	}
	return (len(before)-n)%2 == 1
}

// unquoted appends the content of a quoted field to out, without its escapes.
func (d *dialect) unquoted(out, content []byte) []byte {
	for i := 0; i < len(content); i++ {
		c := content[i]
		if next := i + 1; next < len(content) {
			n := content[next]
			if c == d.Quote && n == c || c == d.Escape && d.Escape != 0 && (n == d.Quote || n == c) {
				c, i = n, next
			}
		}
		out = append(out, c)
	}
	return out
}

// recordEnd returns the position after the record that begins at b[i]; whole
// is false where b ends before it does, or might.
func (d *dialect) recordEnd(b []byte, i int) (end int, whole bool) {
	line := d.lineEnd(b, i)
	if d.Quote == 0 || d.comment(b, i) || bytes.IndexByte(b[i:line], d.Quote) < 0 {
		return line, d.endsLine(b, line)
	}
	for {
		if i = d.skipBlanks(b, i); i < len(b) && b[i] == d.Quote {
			if i = d.quoteEnd(b, i+1); i < 0 {
				return len(b), false
			}
			if i >= line {
				line = d.lineEnd(b, i)
			}
		}
		sep := -1
		if i < line {
			sep = d.nextSeparator(b[i:line])
		}
		if sep < 0 {
			return line, d.endsLine(b, line)
		}
		i += sep + 1
	}
}

func (d *dialect) endsLine(b []byte, end int) bool { return end > 0 && b[end-1] == d.Newline }

// comment reports whether the line that begins at b[i] is a comment.
func (d *dialect) comment(b []byte, i int) bool {
	return d.Comment != 0 && i < len(b) && b[i] == d.Comment
}
