package csv

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/input/rows"
	"github.com/volley-engine/volley/storage/input/text"
)

// Table is what a reader needs to read a range independently: determined once
// on the driver's side, from the files' heads.
type Table struct {
	dialect
	Header     bool      `json:"header"`
	Quotes     bool      `json:"quotes,omitempty"` // the heads have some
	Spans      bool      `json:"spans,omitempty"`  // newlines are within quotes
	Names      []string  `json:"names"`
	Label      int       `json:"label"`  // column of the label; -1 is none
	Weight     int       `json:"weight"` // column of rows' weights; -1 is none
	Columns    int       `json:"columns"`
	Unnamed    int       `json:"unnamed,omitempty"` // last columns, without names: they are empty in all rows
	Features   []int     `json:"features"`
	Null       string    `json:"null,omitempty"`
	TextLabels bool      `json:"text_labels,omitempty"` // labels are texts, by the first records
	Malformed  Malformed `json:"malformed,omitempty"`
	mark       int64     // bytes of the byte order mark, by file
	headerEnd  int64     // bytes of its first record, after these
}

// Malformed is the policy for malformed records: those that break the dialect's
// rules, and those with a field of the wrong type.
type Malformed string

// The policies. Records that are left out are counted; kept are typed rows only,
// whose fields are zero where they cannot be read.
const (
	FailFast      Malformed = ""
	DropMalformed Malformed = "drop"
	KeepMalformed Malformed = "keep"
)

// Options configure how tables of text are read. The zero value detects everything.
type Options struct {
	Separator byte // 0 detects
	Header    *bool
	Label     string // column of the label: a name or a zero-based number
	NoLabel   bool
	Weight    string // column of rows' weights: a name or a zero-based number; empty is none
	Quote     byte   // of fields; 0 is "
	NoQuotes  bool   // quotes are text
	Escape    byte   // before a quote within quotes; 0: quotes are doubled
	Comment   byte   // lines that begin with it are no records; 0 is none
	Null      string // text of a field without quotes that is null, besides nothing
	Malformed Malformed
	Quoted    bool     // quoted fields hold newlines, although none does in the head
	Typed     []string // columns of a user's type, which rows are read into; nil where they are points
	Known     []string // names that columns may have: a first line with one of them is a header, any other not
	Asked     []string // names that are requested: a first line with one of them is a header
}

// Open determines from their heads how all files are read, and cuts them into parts
// of about size bytes: at newlines, or at records where quotes may hold newlines.
func Open(ctx context.Context, inputs []files.File, o Options, size int64) (*Table, []files.Range, error) {
	t, parts, err := planTable(inputs, o, size)
	if err == nil && o.Typed == nil {
		err = t.checkPoints(inputs[0].Path)
	}
	if err == nil && (t.Quotes || t.Spans) {
		parts, err = t.Cut(ctx, parts)
	}
	return t, parts, err
}

// planTable determines how all files are read, and cuts them at newlines.
func planTable(inputs []files.File, o Options, size int64) (t *Table, parts []files.Range, err error) {
	if err := checkDialect(o); err != nil {
		return nil, nil, err
	}
	skips := make(map[string]int64, len(inputs))
	for i, f := range inputs {
		spec, first, err := detectTable(f.Path, o)
		if err != nil {
			return nil, nil, err
		}
		if i == 0 {
			t, o.Separator = &spec, spec.Separator
		} else if err := t.like(&spec, first, inputs[0].Path, f.Path, o.Header != nil); err != nil {
			return nil, nil, err
		}
		skips[f.Path] = spec.skip()
		t.Quotes, t.Spans = t.Quotes || spec.Quotes, t.Spans || spec.Spans
	}
	parts, err = files.Ranges(inputs, size)
	for i := range parts {
		parts[i].Skip = skips[parts[i].File.Path]
	}
	return t, parts, err
}

// checkPoints refuses tables that cannot be read as points.
func (s *Table) checkPoints(path string) error {
	if len(s.Features) == 0 {
		return fault.Newf(fault.BadInput, "read", path+" line 1",
			"the row has a single field %q where features should be", clip(s.Names)).
			WithHint("set --separator, or --format")
	}
	if s.Malformed == KeepMalformed {
		return fault.Newf(fault.Usage, "read", path, "points cannot be made of malformed rows").
			WithHint("drop them, or fail")
	}
	return nil
}

// clip returns the first of some names, short enough for a message.
func clip(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0][:min(len(names[0]), 60)]
}

// skip returns where the first row of the file begins that the spec is of.
func (s *Table) skip() int64 {
	if s.Header {
		return s.mark + s.headerEnd
	}
	return s.mark
}

// like checks that another file is read as the first one is.
func (s *Table) like(o *Table, first []string, firstPath, path string, told bool) error {
	if o.Newline != s.Newline {
		return fault.Newf(fault.BadInput, "read", path+" line 1",
			"its lines do not end as those of the first file, %s, do", firstPath).
			WithHint("read them apart")
	}
	if !o.Header && s.Header && slices.Equal(columnNames(first, true), s.Names) {
		o.Header = true // one row is not enough to tell
	}
	if s.Header != o.Header && !told {
		return fault.Newf(fault.BadInput, "read", path+" line 1",
			"of this file and the first one, %s, only one has a header", firstPath).
			WithHint("read them apart, or set --header")
	}
	if names := columnNames(first, s.Header); s.Header && !slices.Equal(names, s.Names) {
		return fault.Newf(fault.BadInput, "read", path+" line 1", "its columns are %s, those of the first file %s",
			strings.Join(names, " "), strings.Join(s.Names, " "))
	}
	return nil
}

// detectTable determines separator, header, names and the label's column from
// the head of a file; first is the first record's fields.
func detectTable(path string, o Options) (spec Table, first []string, err error) {
	head, all, err := files.Head(path, files.HeadBytes)
	for size := files.HeadBytes; err == nil && !all && size < text.MaxLine && !dialectOf(o, head).firstWhole(head); {
		size *= 8
		head, all, err = files.Head(path, size)
	}
	if err != nil {
		return Table{}, nil, err
	}
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return Table{}, nil, fault.Newf(fault.BadInput, "read", path, "it is in UTF-16").
			WithHint("convert it to UTF-8: iconv -f UTF-16 -t UTF-8")
	}
	mark := int64(0)
	if bytes.HasPrefix(head, []byte(text.ByteOrderMark)) {
		mark, head = int64(len(text.ByteOrderMark)), head[len(text.ByteOrderMark):]
	}
	spec = Table{mark: mark, dialect: dialectOf(o, head), Null: o.Null, Malformed: o.Malformed, Label: -1, Weight: -1}
	if spec.Separator == 0 {
		spec.detectSeparator(head, all, o.Typed != nil)
	}
	spec.Quotes = spec.Quote != 0 && bytes.IndexByte(head, spec.Quote) >= 0
	spec.Spans = o.Quoted || spec.Quotes && spec.spansLines(head)
	records := spec.records(head, all, 20)
	if len(records) == 0 {
		return spec, nil, fault.Newf(fault.BadInput, "read", path, "the file is empty")
	}
	h := spec.header(head, o.Typed)
	first = h.fields
	spec.Columns = len(first)
	spec.Header = h.hash && o.Typed == nil || looksLikeHeader(first, records, o)
	if o.Header != nil {
		spec.Header = *o.Header
	}
	if spec.Separator == spec.Quote {
		return spec, nil, fault.Newf(fault.Usage, "read", path, "%q would be both separator and quote", spec.Quote).
			WithHint("set --separator")
	}
	if spec.Header && h.hash && len(records) == 1 && len(first) == 1 && first[0] == "" {
		return spec, nil, fault.Newf(fault.BadInput, "read", path, "the file is empty")
	}
	if spec.headerEnd = h.end; spec.Header && h.wrong != "" {
		return spec, nil, fault.Newf(fault.BadInput, "read", path, "its header: %s", h.wrong)
	}
	if spec.Names = columnNames(first, spec.Header); o.Typed != nil {
		return spec, first, nil
	}
	spec.Unnamed = spec.unnamed()
	if err := spec.chooseColumns(path, o); err != nil {
		return spec, first, err
	}
	if spec.Header {
		records = records[1:]
	}
	spec.TextLabels = spec.areTexts(records)
	return spec, first, nil
}

// areTexts reports whether most labels of some records are not numbers.
func (s *Table) areTexts(records [][]string) bool {
	texts := 0
	for _, r := range records {
		if s.Label >= 0 && s.Label < len(r) && !isNumber(r[s.Label]) {
			texts++
		}
	}
	return 2*texts > len(records)
}

// firstRecord is a file's first record, as a header: its end in the file's head, its
// error, and whether it begins with a #, which some programs write before names.
type firstRecord struct {
	fields []string
	end    int64
	wrong  string
	hash   bool
}

// header reads the first record; a # is part of a name that a type has so.
func (d *dialect) header(head []byte, typed []string) (h firstRecord) {
	c := cursor{dialect: d, b: head}
	for c.i < len(head) && c.skipEmpty() {
		continue
	}
	named := slices.ContainsFunc(typed, func(n string) bool { return strings.HasPrefix(n, "#") })
	if h.hash = d.Comment == 0 && c.i < len(head) && head[c.i] == '#' && !named; h.hash {
		for c.i++; c.i < len(head) && head[c.i] == ' '; c.i++ {
			continue
		}
	}
	c.begin()
	for _, f := range c.fields(nil) {
		h.fields = append(h.fields, string(f))
	}
	h.wrong, h.end = c.wrong, int64(c.i)
	return h
}

// spansLines reports whether a quoted field of a head holds a newline.
func (d *dialect) spansLines(head []byte) bool {
	for i := 0; i < len(head); {
		line := d.lineEnd(head, i)
		end, _ := d.recordEnd(head, i)
		if end != line {
			return true
		}
		i = end
	}
	return false
}

// firstWhole reports whether a file's head has the whole of its first record.
func (d dialect) firstWhole(head []byte) bool {
	c := cursor{dialect: &d, b: head}
	for c.i < len(head) && c.skipEmpty() {
		continue
	}
	_, whole := d.recordEnd(head, c.i)
	return whole
}

// records returns the first records of a file's head.
func (d *dialect) records(head []byte, all bool, most int) (out [][]string) {
	c := cursor{dialect: d, b: head}
	for c.i < len(head) && len(out) < most {
		if c.skipEmpty() {
			continue
		}
		if _, whole := d.recordEnd(head, c.i); !whole && !all && len(out) > 0 {
			break
		}
		c.begin()
		var fields []string
		for _, f := range c.fields(nil) {
			fields = append(fields, string(f))
		}
		out = append(out, fields)
	}
	return out
}

// detectSeparator takes the candidate that cuts the first records into the same
// number of fields, the larger number first; runs of blanks where no other cuts
// them, and a comma where these do not either. Typed rows have texts with blanks.
func (d *dialect) detectSeparator(head []byte, all, typed bool) {
	best, fields := byte(','), 1
	for _, sep := range []byte{'\t', ';', '|', ','} {
		if sep == d.Quote || sep == d.Escape || sep == d.Comment {
			continue
		}
		d.Separator = sep
		if n, same := width(d.records(head, all, 5)); n > fields && (same || fields == 1) {
			best, fields = sep, n
		}
	}
	if d.Separator = best; fields > 1 || typed {
		return
	}
	d.Separator = blankRuns
	if n, same := width(d.records(head, all, 5)); n < 2 || !same {
		d.Separator = best
	}
}

// width returns how many fields the first record has, and whether all have as many.
func width(records [][]string) (n int, same bool) {
	same = true
	for i, r := range records {
		if i == 0 {
			n = len(r)
		}
		same = same && len(r) == n
	}
	return n, same
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

// unnamed returns how many of the last columns a header gives no name.
func (s *Table) unnamed() (n int) {
	for s.Header && n < s.Columns-1 && s.Names[s.Columns-1-n] == "" {
		n++
	}
	return n
}

// looksLikeHeader reports whether the first record names columns: one of the
// type's, where rows are typed; else the label or another that is known, or a
// field of it is no number where the next record has one.
func looksLikeHeader(first []string, records [][]string, o Options) bool {
	if o.Typed != nil {
		return slices.ContainsFunc(first, func(f string) bool {
			return slices.ContainsFunc(o.Typed,
				func(n string) bool { return strings.EqualFold(strings.TrimSpace(f), n) })
		})
	}
	if len(records) == 1 {
		return false
	}
	known := slices.Concat(o.Known, o.Asked, []string{o.Label, o.Weight})
	guess := false
	for i, f := range first {
		name := strings.TrimSpace(f)
		if name != "" && !isNumber(f) && slices.Contains(known, name) {
			return true
		}
		next := records[1]
		guess = guess || i < len(next) && !text.NoNumber([]byte(name)) && !isNumber(f) && isNumber(next[i])
	}
	return guess && o.Known == nil
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return err == nil
}

// chooseColumns finds the label: by name, by zero-based number, else the
// column named "label", else the first. Every other column is a feature.
func (s *Table) chooseColumns(path string, o Options) error {
	if s.Columns > rows.MaxIndex {
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
			return rows.SameColumn(path, s.Names[label])
		}
	}
	for i := range s.Columns - s.Unnamed {
		if i != label && i != s.Weight {
			s.Features = append(s.Features, i)
		}
	}
	return nil
}

func (s *Table) findLabel(path string, o Options) (int, error) {
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

// numbered returns the column of a name or a zero-based number, for the flag that names it.
func (s *Table) numbered(flag, want, path string) (int, error) {
	if i := slices.Index(s.Names, want); s.Header && i >= 0 {
		return i, nil
	}
	n, err := strconv.Atoi(want)
	if err != nil || n < 0 || n >= s.Columns {
		return 0, rows.NoColumn(path, flag, want, s.Names)
	}
	return n, nil
}
