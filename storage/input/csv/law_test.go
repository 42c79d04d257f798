package csv

import (
	"bytes"
	"strings"

	"github.com/volley-engine/volley/storage/input/text"
)

// The law of CSV once more, as plainly as it can be put: a table is read from its
// beginning to its end, byte by byte, in memory. What storage reads is compared with it.

// csvBad is a malformed record: the line on which it begins, what is wrong, and in
// which field, from 1.
type csvBad struct {
	Line  int64  `json:"line"`
	Kind  string `json:"kind"`
	Field int    `json:"field"`
}

// csvLaw reads a table; its separator must be known, and whether it has a header.
type csvLaw struct {
	data                        []byte
	sep, quote, escape, comment byte
	null                        string
	noQuotes, mac               bool
	i                           int
	line                        int64
}

func newLaw(raw []byte, o csvOptions) *csvLaw {
	l := &csvLaw{data: bytes.TrimPrefix(raw, []byte(text.ByteOrderMark)), sep: ',', quote: '"', null: o.Null,
		noQuotes: o.NoQuotes, line: 1,
		escape: byteOf(o.Escape), comment: byteOf(o.Comment),
		mac: bytes.IndexByte(raw[:min(len(raw), 256<<10)], '\n') < 0}
	if o.Separator != "" {
		l.sep = o.Separator[0]
	}
	if o.Quote != "" {
		l.quote = o.Quote[0]
	}
	if l.escape == l.quote {
		l.escape = 0
	}
	return l
}

// read gives the names, the good records and the malformed ones.
func (l *csvLaw) read(header bool) (names []string, good []csvRecord, bad []csvBad) {
	columns := 0
	if l.skipLines(); header && l.comment == 0 && bytes.HasPrefix(l.data[l.i:], []byte{'#'}) {
		l.i++ // a mark of a header
	}
	for ; l.i < len(l.data); l.skipLines() {
		r, wrong := l.record()
		switch {
		case columns == 0 && header:
			if names = namesOf(r); wrong.Kind != "" {
				return nil, nil, []csvBad{wrong}
			}
		case wrong.Kind == "" && columns > 0 && len(r.fields) != columns:
			bad = append(bad, csvBad{Line: r.line, Kind: "fields"})
		case wrong.Kind != "":
			bad = append(bad, wrong)
		default:
			good = append(good, r)
		}
		if columns == 0 {
			columns = len(r.fields)
		}
	}
	return names, good, bad
}

func namesOf(r csvRecord) (names []string) {
	for _, f := range r.fields {
		names = append(names, strings.TrimSpace(f.text))
	}
	return names
}

// skipLines passes over blank lines and comments.
func (l *csvLaw) skipLines() {
	for l.i < len(l.data) {
		j := l.blanks(l.i)
		if j < len(l.data) && l.newline(j) == 0 {
			if l.comment == 0 || l.data[l.i] != l.comment {
				return
			}
			for j = l.i; j < len(l.data) && l.newline(j) == 0; {
				j++
			}
		}
		l.i = j + l.newline(j)
		l.line++
	}
}

// record is the record that begins here.
func (l *csvLaw) record() (r csvRecord, wrong csvBad) {
	for r.line = l.line; ; l.i++ {
		f, kind := l.field()
		if r.fields = append(r.fields, f); kind != "" && wrong.Kind == "" {
			wrong = csvBad{r.line, kind, len(r.fields)}
		}
		if l.i == len(l.data) || l.data[l.i] != l.sep {
			l.i += l.newline(l.i)
			l.line++
			return r, wrong
		}
	}
}

func (l *csvLaw) field() (f csvField, kind string) {
	if k := l.blanks(l.i); !l.noQuotes && k < len(l.data) && l.data[k] == l.quote {
		l.i = k + 1
		return l.quoted()
	}
	text := l.plain()
	if f.null = text == "" || text == l.null; !f.null {
		f.text = text
	}
	return f, ""
}

// plain is the text up to a separator or a newline.
func (l *csvLaw) plain() string {
	from := l.i
	for l.i < len(l.data) && l.data[l.i] != l.sep && l.newline(l.i) == 0 {
		l.i++
	}
	return string(l.data[from:l.i])
}

// quoted is the field after its first quote.
func (l *csvLaw) quoted() (f csvField, kind string) {
	text, next := []byte{}, byte(0)
	for ; l.i < len(l.data); l.i++ {
		c := l.data[l.i]
		if next = 0; l.i+1 < len(l.data) {
			next = l.data[l.i+1]
		}
		switch {
		case l.i+1 < len(l.data) && (c == l.quote && next == c ||
			c == l.escape && c != 0 && (next == l.quote || next == c)):
			l.i++
			c = next
		case c == l.quote:
			l.i = l.blanks(l.i + 1)
			if l.plain() != "" {
				kind = "after-quote"
			}
			return csvField{text: string(text)}, kind
		case c == '\n' || l.mac && l.newline(l.i) == 1:
			l.line++
		}
		text = append(text, c)
	}
	return csvField{text: string(text)}, "open-quote"
}

// newline is how many bytes of a newline are here.
func (l *csvLaw) newline(at int) int {
	switch {
	case at == len(l.data):
		return 0
	case l.data[at] == '\n':
		return 1
	case l.data[at] == '\r' && at+1 < len(l.data) && l.data[at+1] == '\n':
		return 2
	case l.data[at] == '\r' && (l.mac || at+1 == len(l.data)):
		return 1
	}
	return 0
}

// blanks is the place after blanks, and tabs where these do not separate.
func (l *csvLaw) blanks(at int) int {
	for at < len(l.data) && l.data[at] != l.sep && (l.data[at] == ' ' || l.data[at] == '\t') {
		at++
	}
	return at
}
