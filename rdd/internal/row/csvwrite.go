package row

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"unsafe"

	"github.com/volley-engine/volley/internal/fault"
)

// CSVWriter writes rows as records of [RFC 4180], with \n as the line end.
//
// [RFC 4180]: https://www.rfc-editor.org/rfc/rfc4180
type CSVWriter[T any] struct {
	c    *Columns[T]
	w    *bufio.Writer
	to   io.WriteCloser
	text []byte
}

// NewCSVWriter returns a writer of rows to w, which Close closes, and writes the header.
func NewCSVWriter[T any](c *Columns[T], w io.WriteCloser) (*CSVWriter[T], error) {
	s := &CSVWriter[T]{c: c, w: bufio.NewWriterSize(w, 64<<10), to: w}
	for k, name := range c.Names() {
		s.field(k, []byte(name), false)
	}
	return s, s.w.WriteByte('\n')
}

// NotText returns the names of the columns that cannot be written as text.
func (c *Columns[T]) NotText() (names []string) {
	for _, f := range c.fields {
		if f.print == nil {
			names = append(names, f.name)
		}
	}
	return names
}

// Add writes rows.
func (s *CSVWriter[T]) Add(rows []T) error {
	for i := range rows {
		for k, f := range s.c.fields {
			p := unsafe.Add(unsafe.Pointer(&rows[i]), f.offset)
			s.text = f.print(s.text[:0], p)
			if len(s.c.fields) == 1 && f.null && f.at(p) == nil && f.text {
				return fault.Newf(fault.BadInput, "write", "a table",
					"column %q is null and alone: the record would be an empty line", f.name).
					WithHint("give the rows another column, or leave such rows out")
			}
			// A record that is a single empty field is not an empty line, which
			// would be no record.
			s.field(k, s.text, len(s.text) == 0 && (len(s.c.fields) == 1 || f.null && f.at(p) != nil))
		}
		if err := s.w.WriteByte('\n'); err != nil {
			return err
		}
	}
	return nil
}

// field writes the k-th field of a record: in quotes where it must be. Errors stay
// with the writer.
func (s *CSVWriter[T]) field(k int, text []byte, quoted bool) {
	if k > 0 {
		s.w.WriteByte(',')
	}
	if n := len(text); !quoted && (n == 0 || !bytes.ContainsAny(text, "\",\r\n") && !blank(text[0]) &&
		!blank(text[n-1])) {
		s.w.Write(text)
		return
	}
	s.w.WriteByte('"')
	for _, c := range text {
		if c == '"' {
			s.w.WriteByte(c)
		}
		s.w.WriteByte(c)
	}
	s.w.WriteByte('"')
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

// Close writes what is buffered, and closes what it is written to.
func (s *CSVWriter[T]) Close() error { return cmp.Or(s.w.Flush(), s.to.Close()) }
