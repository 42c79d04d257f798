package parquet

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/files"
)

// PlanFlat cuts Parquet files into parts of whole row groups, and reports whether
// the columns can be read by the low-level readers.
func PlanFlat(ctx context.Context, inputs []files.File, names []string) (parts []files.Range, flat bool, err error) {
	found, err := describeFiles(ctx, inputs, Parquet, names)
	if err != nil {
		return nil, false, err
	}
	var total int64
	flat = true
	for _, d := range found {
		flat = flat && d.Flat
		for _, n := range d.Groups {
			total += n
		}
	}
	// Enough parts to share out, each large enough for a map task to combine much.
	for i, f := range inputs {
		parts = append(parts, groupParts(f, found[i], files.PartSize(total, groupLeast, groupBytes))...)
	}
	return parts, flat, nil
}

// describeFlat returns the description of a Parquet file that must have certain columns.
func describeFlat(path string, columns []string) (*columnsInFile, error) {
	f, err := openFlat(path)
	if err != nil {
		return nil, err
	}
	defer f.close()
	for _, name := range columns {
		if f.column(name) < 0 && !f.hasGroup(name) {
			return nil, fault.Newf(fault.BadInput, "read", path, "it has no column %q; its columns are %s", name,
				strings.Join(f.names(), " "))
		}
	}
	return &columnsInFile{Names: f.names(), Groups: f.groups(), GroupRows: groupRows(f.r.MetaData()),
		Rows: f.r.NumRows(), Flat: f.flat(columns)}, nil
}

// hasGroup reports whether a file has a column of columns.
func (f *flatFile) hasGroup(name string) bool {
	for _, n := range f.names() {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

func (f *flatFile) names() (out []string) {
	root := f.r.MetaData().Schema.Root()
	for i := range root.NumFields() {
		out = append(out, root.Field(i).Name())
	}
	return out
}

// ReadFlat yields the rows of a part of a Parquet file for which PlanFlat reported
// true: a few thousand at a time, valid during the call only. A child process decodes
// them, or finds their positions where nothing has to be decoded.
func ReadFlat(ctx context.Context, rng files.Range, names []string,
	yield func(rows int, cols []*FlatColumn) error) error {
	if err := rng.File.Unchanged(); err != nil {
		return err
	}
	cols := make([]*FlatColumn, len(names))
	for i, name := range names {
		cols[i] = &FlatColumn{Name: name}
	}
	each := func(rows int, cols []*FlatColumn) error { return cmp.Or(ctx.Err(), yield(rows, cols)) }
	raw := &rawFile{path: rng.File.Path}
	defer raw.close()
	order := decodeOrder{Path: rng.File.Path, Kind: Parquet, Columns: names, Groups: groupsOf(rng),
		Memory: memoryFor(rng.File.Size)}
	err := decode(ctx, order, func(r *decodeReply) error {
		if r.Pages != nil {
			return raw.group(r.Pages, cols, each)
		}
		return r.columns(cols, each)
	})
	if err == nil && raw.file != nil { // else what was found in one file may have been read from another
		err = rng.File.Unchanged()
	}
	return err
}

// sendFlat runs the child's side of ReadFlat.
func sendFlat(order decodeOrder, s *sender) error {
	f, err := openFlat(order.Path)
	if err != nil {
		return err
	}
	defer f.close()
	if !f.flat(order.Columns) {
		return fault.Newf(fault.BadInput, "read", order.Path, "its columns are not those it had")
	}
	for _, g := range order.Groups {
		if err := sendGroup(f, g, order.Columns, s); err != nil {
			return err
		}
	}
	return s.flush()
}

// sendGroup sends the rows of a row group, or their positions.
func sendGroup(f *flatFile, group int, columns []string, s *sender) error {
	pages := f.groupPages(group, columns)
	if pages == nil {
		return f.read([]int{group}, columns, s.columns)
	}
	return cmp.Or(s.flush(), s.send(&decodeReply{Pages: pages}))
}

// groupsOf returns the row groups of a part.
func groupsOf(r files.Range) (out []int) {
	for g := range r.Length {
		out = append(out, int(r.Offset+g))
	}
	return out
}

// ReadRecords yields the rows of a part of a file as Arrow records, which are valid
// during the call only. Those of Parquet have no other columns than names (see Below). A child
// process decodes them.
func ReadRecords(ctx context.Context, kind Kind, rng files.Range, names []string,
	yield func(arrow.Record) error) error {
	if err := rng.File.Unchanged(); err != nil {
		return err
	}
	order := decodeOrder{Path: rng.File.Path, Kind: kind, Records: true, Only: names, Groups: groupsOf(rng),
		Memory: memoryFor(rng.File.Size)}
	return decode(ctx, order, func(r *decodeReply) error {
		if r.Arrow <= 0 || r.Arrow > len(r.raw) {
			return nil
		}
		in, err := ipc.NewReader(bytes.NewReader(r.raw[:r.Arrow]))
		if err != nil {
			return fault.New(fault.BadInput, "read", rng.File.Path, err)
		}
		defer in.Release()
		for in.Next() {
			if err := yield(in.Record()); err != nil {
				return err
			}
		}
		if err := in.Err(); err != nil && err != io.EOF {
			return fault.New(fault.BadInput, "read", rng.File.Path, err)
		}
		return nil
	})
}
