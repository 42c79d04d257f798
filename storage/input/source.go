package input

import (
	"bytes"
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/csv"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/input/parquet"
	"github.com/volley-engine/volley/storage/input/rows"
	"github.com/volley-engine/volley/storage/input/text"
)

// Format names how rows are written in a file.
type Format string

// The formats that can be read; Auto looks at the name, then at the content.
const (
	Auto    Format = ""
	LIBSVM  Format = "libsvm"
	CSV     Format = "csv"
	TSV     Format = "tsv"
	Parquet Format = "parquet"
	Arrow   Format = "arrow"
	Text    Format = "text"
	Whole   Format = "whole" // a file is a row
)

// kind returns what the format is to the reader of columns.
func (f Format) kind() parquet.Kind {
	if f == Arrow {
		return parquet.Arrow
	}
	return parquet.Parquet
}

// Options configure how labelled rows are read. The zero value detects
// everything.
type Options struct {
	Format    Format
	Label     string        // column of the label: a name or a zero-based number
	NoLabel   bool          // there is no label column (prediction)
	Weight    string        `json:",omitempty"` // column of rows' weights: a name or a zero-based number; empty is none
	NoWeight  bool          `json:",omitempty"` // there is none, although a model was trained with one
	Header    *bool         // nil detects
	Separator byte          // 0 detects
	IndexBase int           // first column number of LIBSVM plus one: 1 or 2; 0 detects
	Features  int           // number of features; 0 takes what the data has
	Quote     byte          // of fields of tables; 0 is "
	NoQuotes  bool          // quotes are text
	Escape    byte          // before a quote within quotes; 0: quotes are doubled
	Comment   byte          // lines that begin with it are no records; 0 is none
	Null      string        // text of a field without quotes that is null, besides nothing
	Malformed csv.Malformed // policy for malformed records
	Quoted    bool          // quoted fields hold newlines, although none is in the beginning
	Typed     []string      // columns of a user's type, which rows are read into; nil where they are points
	Fold      rows.Fold     // rows that are left out; the zero value is none
	// names that columns may have: a first line with one of them is a header
	Known   []string  `json:",omitempty"`
	Prepare Prepare   // preparation of columns
	Fitted  *Prepared `json:",omitempty"` // the preparation of a model
	// Keep reports whether a file is read, by the columns of its directories; nil is all of them. It is asked where the
	// input is resolved.
	Keep func(files.File) (bool, error) `json:"-"`
	// Change is called where a part begins to be read, and what it returns with each of its chunks, in order, which it
	// may change; nil changes nothing. It stays in this process.
	Change func(s *Source, part int) func(*rows.Chunk) error `json:"-"`
	// Stored returns the chunks that a part was read as before, in place of reading it again; nil reads it.
	Stored func(part int) []*rows.Chunk `json:"-"`
}

// ofTable returns the options for the reader of tables.
func (o Options) ofTable(format Format) csv.Options {
	if format == TSV && o.Separator == 0 {
		o.Separator = '\t'
	}
	return csv.Options{Separator: o.Separator, Header: o.Header, Label: o.Label, NoLabel: o.NoLabel, Weight: o.Weight,
		Quote: o.Quote, NoQuotes: o.NoQuotes, Escape: o.Escape, Comment: o.Comment, Null: o.Null,
		Malformed: o.Malformed, Quoted: o.Quoted,
		Typed: o.Typed, Known: o.Known, Asked: slices.Concat(o.Prepare.OneHot, o.Prepare.Hash, o.Prepare.Text)}
}

// Source is input resolved to parts that can be read on their own. It is made
// once, where the job starts; executors take it from the plan.
type Source struct {
	Format   Format        `json:"format"`
	Parts    []files.Range `json:"parts"`
	Table    *csv.Table    `json:"table,omitempty"`
	Columns  *parquet.Plan `json:"columns,omitempty"`
	Files    []files.File  `json:"files"`
	Typed    bool          `json:"typed,omitempty"`
	Flat     bool          `json:"flat,omitempty"` // FlatColumns can read it
	Fold     rows.Fold     `json:"fold"`           // rows that are left out
	Prepared *Prepared     `json:"prepared,omitempty"`
	// rows with missing numbers are filled, not dropped
	KeepRows bool                          `json:"keep_rows,omitempty"`
	cuts     atomic.Pointer[[]files.Range] // the parts by records, where Parts were cut within quotes
	change   func(s *Source, part int) func(*rows.Chunk) error
	stored   func(part int) []*rows.Chunk
}

// rangeBytes is how much text one part holds.
const rangeBytes = 16 << 20

// Open resolves URIs and determines how to read them.
func Open(ctx context.Context, o Options, uris ...string) (*Source, error) {
	inputs, err := files.Resolve(uris...)
	if err != nil {
		return nil, err
	}
	if len(inputs) == 0 {
		if o.Typed == nil && o.Format != Text && o.Format != Whole {
			return nil, fault.Newf(fault.BadInput, "open", strings.Join(uris, " "), "there is no file")
		}
		return &Source{Format: o.Format, Typed: true}, nil
	}
	if o.Format == Whole {
		return openTyped(ctx, o, inputs)
	}
	if inputs, err = dropEmpty(inputs, o.Format == Text); err != nil {
		return nil, err
	}
	if o.Typed != nil || o.Format == Text {
		return openTyped(ctx, o, inputs)
	}
	s := &Source{Format: o.Format, Files: inputs, Fold: o.Fold, change: o.Change, stored: o.Stored}
	if s.Format == Auto {
		if s.Format, err = detectFormat(inputs[0].Path); err != nil {
			return nil, err
		}
	}
	switch s.Format {
	case CSV, TSV:
		s.Table, s.Parts, err = csv.Open(ctx, inputs, o.ofTable(s.Format), rangeBytes)
	case LIBSVM:
		if s.Parts, err = files.Ranges(inputs, rangeBytes); err == nil && o.Weight != "" {
			err = fault.Newf(fault.Usage, "read", inputs[0].Path, "rows of LIBSVM have no column %q", o.Weight).
				WithHint("weights are a column of CSV, TSV, Parquet or Arrow")
		}
	case Parquet, Arrow:
		s.Columns, s.Parts, err = parquet.Open(ctx, inputs, s.Format.kind(),
			parquet.Options{Label: o.Label, NoLabel: o.NoLabel, Weight: o.Weight})
	default:
		err = fault.Newf(fault.Usage, "read", inputs[0].Path, "unknown format %q", s.Format).
			WithHint("formats are libsvm, csv, tsv, parquet, arrow")
	}
	if err == nil {
		err = s.prepare(ctx, o)
	}
	return s, err
}

// dropEmpty leaves out files without content. Where all are empty the columns are
// unknown; lines need none.
func dropEmpty(inputs []files.File, lines bool) ([]files.File, error) {
	kept := inputs[:0:0]
	for _, f := range inputs {
		if f.Size > 0 {
			kept = append(kept, f)
		}
	}
	if len(kept) == 0 && !lines && len(inputs) > 0 {
		return nil, fault.Newf(fault.BadInput, "read", inputs[0].Path, "the file is empty")
	}
	return kept, nil
}

var extensions = map[string]Format{
	".libsvm": LIBSVM, ".svm": LIBSVM, ".csv": CSV, ".tsv": TSV,
	".parquet": Parquet, ".arrow": Arrow, ".feather": Arrow, ".arrows": Arrow, ".ipc": Arrow,
}

// detectFormat goes by the file's extension, compression endings apart, and
// else by its first bytes.
func detectFormat(path string) (Format, error) {
	name := path
	for _, end := range []string{".gz", ".bz2", ".zst", ".zstd"} {
		name = strings.TrimSuffix(name, end)
	}
	if f, ok := extensions[strings.ToLower(filepath.Ext(name))]; ok {
		return f, nil
	}
	head, _, err := files.Head(path, files.HeadBytes)
	if err != nil {
		return Auto, err
	}
	return detectContent(head), nil
}

func detectContent(head []byte) Format {
	switch {
	case bytes.HasPrefix(head, []byte("PAR1")):
		return Parquet
	case bytes.HasPrefix(head, []byte("ARROW1")), bytes.HasPrefix(head, []byte{0xff, 0xff, 0xff, 0xff}):
		return Arrow
	}
	for _, line := range headLines(head, 5) {
		if f := strings.Fields(line); len(f) > 1 && strings.Contains(f[1], ":") {
			return LIBSVM
		}
	}
	return CSV
}

// Len returns the number of parts.
func (s *Source) Len() int { return len(s.Parts) }

// Read passes the rows of one part to yield, chunk by chunk, in input order.
func (s *Source) Read(ctx context.Context, part int, yield func(*rows.Chunk) error) error {
	if s.change != nil {
		next, change := yield, s.change(s, part)
		yield = func(c *rows.Chunk) error {
			if err := change(c); err != nil {
				return err
			}
			return next(c)
		}
	}
	if s.stored != nil {
		for _, c := range s.stored(part) {
			if err := cmp.Or(ctx.Err(), yield(c.Clone())); err != nil {
				return err
			}
		}
		return nil
	}
	if s.Fold.Asked() || s.Prepared != nil && s.Prepared.Missing == MissingDrop {
		yield = s.Fold.Through(part, yield)
	}
	switch {
	case s.Prepared != nil:
		return s.readPrepared(ctx, part, yield)
	case s.Columns != nil:
		return s.Columns.Read(ctx, s.Format.kind(), s.Parts[part], yield)
	case s.Table != nil:
		return s.Table.Read(ctx, s.part(part), nil, yield)
	}
	return readLIBSVM(ctx, s.Parts[part], yield)
}

// readPrepared yields the rows of one part, made by the preparation.
func (s *Source) readPrepared(ctx context.Context, part int, yield func(*rows.Chunk) error) error {
	places, err := s.Prepared.places(s.layout(), s.Files[0].Path)
	if err != nil {
		return err
	}
	begin := func(c *rows.Chunk) rows.Taker {
		if c.ZeroBased = true; s.Prepared.Sparse {
			c.Offsets = []int64{0}
		} else {
			c.Width = s.Prepared.Width
		}
		return &rowPreparer{p: s.Prepared, places: places, keep: s.KeepRows, counts: map[int32]float64{}}
	}
	return s.readFields(ctx, part, begin, yield)
}

// readFields yields the rows of one part, whose fields a Taker takes.
func (s *Source) readFields(ctx context.Context, part int, begin func(c *rows.Chunk) rows.Taker,
	yield func(*rows.Chunk) error) error {
	if s.Columns != nil {
		return s.Columns.ReadPrepared(ctx, s.Format.kind(), s.Parts[part], begin, yield)
	}
	return s.Table.Read(ctx, s.part(part), begin, yield)
}

// Lines passes each line of a text part to yield, without its newline. The
// bytes are valid during the call only.
func (s *Source) Lines(ctx context.Context, part int, yield func([]byte) error) error {
	for blk, err := range text.Lines(s.Parts[part]) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		for line := range bytes.Lines(blk.Data) {
			if err := yield(bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'})); err != nil {
				return err
			}
		}
	}
	return nil
}

// CutAgain runs a function over all parts; where these turn out to be cut
// within quotes, once more with parts that are not.
func (s *Source) CutAgain(ctx context.Context, do func() error) error {
	err := do()
	if s.Table == nil || !csv.CutWithinQuotes(err) {
		return err
	}
	cuts, err := s.Table.Cut(ctx, s.Parts)
	if err != nil {
		return err
	}
	s.cuts.Store(&cuts)
	return do()
}

// Sure returns an error about rows of a part, unless the part begins within quotes:
// then it is that.
func (s *Source) Sure(part int, err error) error {
	if s.Table == nil {
		return err
	}
	return s.Table.Sure(s.part(part), err)
}

// Whole reports whether a part is a whole file, as a compressed one is.
func (s *Source) Whole(part int) bool {
	p := s.part(part)
	return p.Offset == 0 && p.Length == p.File.Size
}

// part returns the range of a part.
func (s *Source) part(i int) files.Range {
	if cuts := s.cuts.Load(); cuts != nil {
		return (*cuts)[i]
	}
	return s.Parts[i]
}

// headLines returns the first lines of a head that are not blank.
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
