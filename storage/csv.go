package storage

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
)

// tableSpec is what a CSV reader must know before it can read a range on its
// own: found once on the driver's side, by looking at the first file.
type tableSpec struct {
	Separator byte     `json:"separator"`
	Header    bool     `json:"header"`
	Quoted    bool     `json:"quoted"` // quotes seen: records may span lines, so files are read whole
	Names     []string `json:"names"`
	Label     int      `json:"label"`  // column of the label; -1 is none
	Weight    int      `json:"weight"` // column of rows' weights; -1 is none
	Columns   int      `json:"columns"`
	Features  []int    `json:"features"`
	Null      string   `json:"null,omitempty"`
}

// byteOrderMark begins files that some programs write as UTF-8.
var byteOrderMark = []byte("\xef\xbb\xbf")

// detectTable looks at the head of a file and settles separator, header,
// names and the label's column.
func detectTable(path string, o ReadOptions) (tableSpec, error) {
	head, err := headOf(path)
	if err != nil {
		return tableSpec{}, err
	}
	spec := tableSpec{Separator: o.Separator, Quoted: bytes.IndexByte(head, '"') >= 0}
	lines := headLines(bytes.TrimPrefix(head, byteOrderMark), 20)
	if len(lines) == 0 {
		return spec, fault.Newf(fault.BadInput, "read", path, "the file is empty")
	}
	if spec.Separator == 0 {
		spec.Separator = detectSeparator(lines)
	}
	first, quoted := splitRecord(strings.TrimSpace(stripHash(lines[0])), spec.Separator)
	spec.Columns = len(first)
	spec.Header = strings.HasPrefix(lines[0], "#") || looksLikeHeader(first, quoted, lines, spec.Separator, o)
	if o.Header != nil {
		spec.Header = *o.Header
	}
	spec.Names = columnNames(first, spec.Header)
	return spec, spec.chooseColumns(path, o)
}

func columnNames(first []string, header bool) []string {
	names := make([]string, len(first))
	for i := range names {
		names[i] = strconv.Itoa(i)
		if header {
			names[i] = strings.TrimSpace(first[i])
		}
	}
	return names
}

// stripHash takes the # off a header line, with or without a blank after it.
func stripHash(line string) string {
	if rest, ok := strings.CutPrefix(line, "#"); ok {
		return strings.TrimLeft(rest, " ")
	}
	return line
}

func headOf(path string) ([]byte, error) {
	r, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	head := make([]byte, 256<<10)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return head[:n], nil
}

func headLines(head []byte, most int) []string {
	var lines []string
	for line := range bytes.Lines(head) {
		if s := strings.TrimRight(string(line), "\r\n"); strings.TrimSpace(s) != "" {
			if lines = append(lines, s); len(lines) == most {
				break
			}
		}
	}
	return lines
}

// detectSeparator takes the candidate that cuts the first lines into the same
// number of fields, the larger number first; runs of blanks where no other cuts
// them, and a comma where these do not either.
func detectSeparator(lines []string) byte {
	best, fields := byte(','), 1
	for _, sep := range []byte{'\t', ';', ','} {
		n, same := strings.Count(lines[0], string(sep))+1, true
		for _, l := range lines[1:min(len(lines), 5)] {
			same = same && strings.Count(l, string(sep))+1 == n
		}
		if n > fields && (same || fields == 1) {
			best, fields = sep, n
		}
	}
	if fields > 1 {
		return best
	}
	n := len(strings.Fields(lines[0]))
	for _, l := range lines[1:min(len(lines), 5)] {
		if len(strings.Fields(l)) != n {
			return best
		}
	}
	if n > 1 {
		return blankRuns
	}
	return best
}

// looksLikeHeader says whether the first line names columns: a field of it
// is no number where the next line has one, or it names the label.
func looksLikeHeader(first []string, quoted bool, lines []string, sep byte, o ReadOptions) bool {
	if len(lines) == 1 {
		return false
	}
	second, _ := splitRecord(lines[1], sep)
	known := slices.Concat(o.Known, o.Prepare.OneHot, o.Prepare.Hash, o.Prepare.Text, []string{o.Label, o.Weight})
	guess := false
	for i, f := range first {
		name := strings.TrimSpace(f)
		if name != "" && !isNumber(f) && slices.Contains(known, name) {
			return true
		}
		guess = guess || i < len(second) && !missingNumber([]byte(name)) && !isNumber(f) && isNumber(second[i])
	}
	return guess && o.Known == nil
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return err == nil
}

// blankRuns is the separator of fields between which there are any number of
// blanks and tabs.
const blankRuns = ' '

// splitRecord cuts one line into its fields, quotes removed.
func splitRecord(line string, sep byte) (fields []string, quoted bool) {
	if sep == blankRuns {
		return strings.Fields(line), false
	}
	for i := 0; ; {
		if i < len(line) && line[i] == '"' {
			quoted = true
			field, end := unquote([]byte(line), i)
			fields = append(fields, string(field))
			i = end
		} else {
			end := i
			for end < len(line) && line[end] != sep {
				end++
			}
			fields = append(fields, line[i:end])
			i = end
		}
		if i >= len(line) {
			return fields, quoted
		}
		i++
	}
}

// unquote reads the quoted field that begins at b[i]; end is the position
// after the closing quote, len(b) where there is none.
func unquote(b []byte, i int) (field []byte, end int) {
	i++
	for i < len(b) {
		if b[i] == '"' {
			if i+1 >= len(b) || b[i+1] != '"' {
				return field, i + 1
			}
			i++
		}
		field = append(field, b[i])
		i++
	}
	return field, i
}

// chooseColumns finds the label: by name, by zero-based number, else the
// column named "label", else the first. Every other column is a feature.
func (s *tableSpec) chooseColumns(path string, o ReadOptions) error {
	if s.Columns > maxIndex {
		return fault.Newf(fault.BadInput, "read", path, "%d columns are too many", s.Columns)
	}
	label, err := s.findLabel(path, o)
	if err != nil {
		return err
	}
	if s.Label, s.Weight = label, -1; o.Weight != "" {
		if s.Weight, err = s.numbered("weight-column", o.Weight, path); err != nil {
			return err
		}
		if s.Weight == label {
			return sameColumn(path, s.Names[label])
		}
	}
	for i := range s.Columns {
		if i != label && i != s.Weight {
			s.Features = append(s.Features, i)
		}
	}
	return nil
}

func (s *tableSpec) findLabel(path string, o ReadOptions) (int, error) {
	if o.NoLabel {
		return -1, nil
	}
	want := o.Label
	if want == "" {
		want = "label"
	}
	for i, name := range s.Names {
		if s.Header && name == want {
			return i, nil
		}
	}
	if o.Label == "" {
		return 0, nil
	}
	return s.numbered("label", o.Label, path)
}

// numbered is the column of a name or a zero-based number, for the flag that names it.
func (s *tableSpec) numbered(flag, want, path string) (int, error) {
	if i := slices.Index(s.Names, want); s.Header && i >= 0 {
		return i, nil
	}
	n, err := strconv.Atoi(want)
	if err != nil || n < 0 || n >= s.Columns {
		return 0, noColumn(path, flag, want, s.Names)
	}
	return n, nil
}

func noColumn(path, flag, want string, names []string) error {
	return fault.Newf(fault.Usage, "read", path, "no column %q for --%s; columns are %s", want, flag,
		strings.Join(names[:min(len(names), 40)], " ")).WithHint("set --" + flag + " to a name or a zero-based number")
}

// sameColumn refuses one column for both label and weight.
func sameColumn(path, name string) error {
	return fault.Newf(fault.Usage, "read", path, "column %q is to be both label and weight", name).WithHint("--label and --weight-column name them")
}

// csvParser reads numeric columns of separated text.
type csvParser struct {
	spec *tableSpec
	blk  textBlock
	b    []byte
	i    int
	c    *Chunk
	prep fieldTaker // nil where fields are features as they are
}

// fieldTaker takes fields that are not features as they are, row by row. ok is
// false where a field is no number and has to be one.
type fieldTaker interface {
	field(col int, text []byte, v float64, number bool) (ok bool)
	end(c *Chunk)
}

// parseCSV reads all records of a block. A quoted record never crosses a
// block where quotes were seen, since such files come in one block.
func parseCSV(blk textBlock, spec *tableSpec, c *Chunk, prep fieldTaker) error {
	p := &csvParser{spec: spec, blk: blk, b: blk.data, c: c, prep: prep}
	if prep == nil {
		c.Width = len(spec.Features)
	}
	if blk.offset == 0 && bytes.HasPrefix(p.b, byteOrderMark) {
		p.i = len(byteOrderMark)
	}
	if spec.Header && blk.offset == 0 {
		p.skipHeader()
	}
	for p.i < len(p.b) {
		if p.blankLine() {
			continue
		}
		if err := p.record(); err != nil {
			return err
		}
	}
	return nil
}

func (p *csvParser) skipHeader() {
	for p.i < len(p.b) && p.blankLine() {
		continue
	}
	if n := bytes.IndexByte(p.b[p.i:], '\n'); n >= 0 {
		p.i += n + 1
	} else {
		p.i = len(p.b)
	}
}

// blankLine passes over a line of nothing but blanks.
func (p *csvParser) blankLine() bool {
	j := p.i
	for j < len(p.b) && (p.b[j] == ' ' || p.b[j] == '\r' || (p.b[j] == '\t' && p.spec.Separator != '\t')) {
		j++
	}
	if j < len(p.b) && p.b[j] != '\n' {
		return false
	}
	p.i = j + 1
	return true
}

func (p *csvParser) record() error {
	start, col := p.i, 0
	for done := false; !done; col++ {
		if col == p.spec.Columns {
			return p.blk.bad(start, "the row has more than the %d fields of the first row", p.spec.Columns)
		}
		var err error
		switch {
		case col == p.spec.Label:
			err = p.label(col)
		case col == p.spec.Weight:
			err = p.weight(col)
		case p.prep != nil:
			err = p.prepared(col)
		default:
			err = p.number(col)
		}
		if err != nil {
			return err
		}
		done = p.endField()
	}
	if col != p.spec.Columns {
		return p.blk.bad(start, "the row has %d fields, the first row %d", col, p.spec.Columns)
	}
	if p.spec.Label < 0 {
		p.c.Labels = append(p.c.Labels, 0)
	}
	if p.prep != nil {
		p.prep.end(p.c)
	}
	return nil
}

// prepared hands a field to who makes features of it.
func (p *csvParser) prepared(col int) error {
	at := p.i
	v, number := p.scan()
	number = number && !math.IsNaN(v) && !math.IsInf(v, 0)
	end := p.i
	p.i = at
	text := p.text()
	p.i = max(p.i, end)
	if !p.prep.field(col, text, v, number) {
		p.i = at
		return p.notANumber(col, false)
	}
	return nil
}

// endField steps over the separator or the line's end, and says whether the
// record is over.
func (p *csvParser) endField() bool {
	if p.spec.Separator == blankRuns {
		at := p.i
		if p.blanks(); p.i < len(p.b) && p.b[p.i] != '\r' && p.b[p.i] != '\n' && p.i > at {
			return false
		}
	} else if p.i < len(p.b) && p.b[p.i] == p.spec.Separator {
		p.i++
		return false
	}
	if p.i < len(p.b) && p.b[p.i] == '\r' {
		p.i++
	}
	p.i++
	return true
}

func (p *csvParser) atFieldEnd(i int) bool {
	return i >= len(p.b) || p.b[i] == p.spec.Separator || p.b[i] == '\n' || p.b[i] == '\t' && p.spec.Separator == blankRuns ||
		(p.b[i] == '\r' && (i+1 == len(p.b) || p.b[i+1] == '\n'))
}

// blanks steps over blanks, and tabs where these separate fields too.
func (p *csvParser) blanks() {
	for p.i < len(p.b) && (p.b[p.i] == ' ' || p.b[p.i] == '\t' && p.spec.Separator == blankRuns) {
		p.i++
	}
}

// scan reads a number in its field, quoted or not; ok is false, and the
// position unchanged, where the field is no number.
func (p *csvParser) scan() (v float64, ok bool) {
	start := p.i
	p.blanks()
	quoted := p.i < len(p.b) && p.b[p.i] == '"'
	if quoted {
		p.i++
	}
	v, end := scanNumber(p.b, p.i)
	ok = end > p.i
	p.i = end
	if quoted {
		ok = ok && p.i < len(p.b) && p.b[p.i] == '"'
		p.i++
	}
	if p.spec.Separator != blankRuns {
		p.blanks()
	}
	if !ok || !p.atFieldEnd(p.i) {
		p.i = start
		return 0, false
	}
	return v, true
}

func (p *csvParser) number(col int) error {
	at := p.i
	v, ok := p.scan()
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		p.i = at
		return p.notANumber(col, ok)
	}
	p.c.Values = append(p.c.Values, v)
	return nil
}

// weight reads that of the row: a number of zero or more.
func (p *csvParser) weight(col int) error {
	at := p.i
	v, ok := p.scan()
	if !ok || !(v >= 0) || math.IsInf(v, 0) {
		p.i = at
		return p.blk.bad(min(at, len(p.b)-1), "the weight in field %s is %q, not a number of zero or more", p.columnName(col), p.text())
	}
	p.c.Weights = append(p.c.Weights, v)
	return nil
}

func (p *csvParser) notANumber(col int, scanned bool) error {
	at, f := p.i, p.text()
	switch name := p.columnName(col); {
	case scanned:
		return p.blk.bad(min(at, len(p.b)-1), "field %s is %q, not finite", name, f)
	case len(f) == 0:
		return p.blk.hinted(min(at, len(p.b)-1), "--missing says what becomes of it", "field %s is empty", name)
	default:
		return p.blk.hinted(at, "columns of text are for --onehot, --hash or --text", "field %s is %q, not a number", name, f[:min(len(f), 80)])
	}
}

func (p *csvParser) columnName(col int) string {
	if p.spec.Header {
		return strconv.Quote(p.spec.Names[col])
	}
	return strconv.Itoa(col)
}

// text is the field as text, quotes removed; it steps over the field.
func (p *csvParser) text() []byte {
	p.blanks()
	if p.i < len(p.b) && p.b[p.i] == '"' {
		field, end := unquote(p.b, p.i)
		p.i = end
		return field
	}
	start := p.i
	for !p.atFieldEnd(p.i) {
		p.i++
	}
	return bytes.TrimRight(p.b[start:min(p.i, len(p.b))], " ")
}

func (p *csvParser) label(col int) error {
	at := p.i
	if v, ok := p.scan(); ok && p.c.Texts == nil {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return p.blk.bad(at, "the label in field %s is not finite", p.columnName(col))
		}
		p.c.Labels = append(p.c.Labels, v)
		return nil
	}
	p.i = at
	f := p.text()
	if len(f) == 0 {
		return p.blk.bad(min(at, len(p.b)-1), "the label in field %s is empty", p.columnName(col))
	}
	if len(p.c.Labels) > 0 && p.c.Texts == nil {
		return p.blk.bad(at, "the label %q in field %s is not a number", f, p.columnName(col))
	}
	p.c.addText(f)
	return nil
}
