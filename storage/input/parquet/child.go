package parquet

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/arrow/util"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/metadata"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/volley-engine/volley/storage/input/files"
	"golang.org/x/sys/unix"
)

// init turns the program into a decoder where it was started as one.
func init() {
	if os.Getenv(decodeEnv) == "" {
		return
	}
	os.Exit(decodeChild(os.Stdin, os.Stdout))
}

// decodeChild carries out orders until there are no more.
func decodeChild(in io.Reader, out io.Writer) int {
	s := &sender{out: bufio.NewWriterSize(out, 64<<10), taken: in}
	var err error
	if s.window, err = openWindow(windowFile); err == nil {
		for err == nil {
			err = oneOrder(in, s)
		}
	}
	if err != io.EOF {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// oneOrder reads an order and carries it out.
func oneOrder(in io.Reader, s *sender) error {
	raw, err := readSized(in)
	if err != nil {
		return err
	}
	var order decodeOrder
	if err = json.Unmarshal(raw, &order); err == nil {
		err = limitMemory(order.Memory, order.Soft)
	}
	if err == nil {
		err = runOrder(order, s)
	}
	if err == nil {
		err = s.drain()
	}
	if err != nil {
		return s.send(&decodeReply{Err: errorOf(order.Path, err)})
	}
	return s.send(&decodeReply{Done: true})
}

// limitMemory bounds what the process can allocate; soft is the limit that it should keep.
func limitMemory(bytes, soft int64) error {
	if soft == 0 || soft > bytes/2 {
		soft = bytes / 2
	}
	debug.SetMemoryLimit(soft)
	var had unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &had); err != nil {
		return err
	}
	had.Cur = min(uint64(bytes), had.Max)
	return unix.Setrlimit(unix.RLIMIT_DATA, &had)
}

// runOrder decodes files. Panics of decoders on this goroutine are errors;
// those on others end the process, which the parent reports.
func runOrder(order decodeOrder, s *sender) error {
	for _, path := range order.Describe {
		order.Path = path
		d, err := describe(order)
		if err != nil {
			return err
		}
		if err := s.send(&decodeReply{Describe: d}); err != nil {
			return err
		}
	}
	if len(order.Describe) > 0 {
		return nil
	}
	return decodeRows(order, s)
}

// describe returns the description of a file.
func describe(order decodeOrder) (_ *columnsInFile, err error) {
	defer malformed(order.Path, &err)
	if order.Columns != nil {
		return describeFlat(order.Path, order.Columns)
	}
	src, err := openColumns(order)
	if err != nil {
		return nil, err
	}
	defer src.close()
	return src.describe(), nil
}

// decodeRows sends the rows of a file, by the way that is the fastest for them.
func decodeRows(order decodeOrder, s *sender) (err error) {
	defer malformed(order.Path, &err)
	if order.Columns != nil {
		return sendFlat(order, s)
	}
	if order.Kind == Parquet && order.Plan != nil {
		if read, err := readNumbers(order, s); read || err != nil {
			return err
		}
	}
	src, err := openColumns(order)
	if err != nil {
		return err
	}
	defer src.close()
	if order.Schema {
		if err := sendSchema(s, withKeys(src.schema, order.Keys)); err != nil || order.Head {
			return err
		}
	}
	plan := order.Plan
	if plan != nil {
		plan.first = src.first
	}
	return src.records(func(rec arrow.Record) error {
		if len(order.Keys) > 0 {
			rec = keyed(rec, order.Keys)
			defer rec.Release()
		}
		if order.Records {
			return sendRecord(s, rec)
		}
		c, err := plan.chunk(rec)
		plan.first += int(rec.NumRows())
		if err != nil {
			return err
		}
		return s.chunk(c)
	})
}

// sendRecord sends a record, a part at a time where it is large.
func sendRecord(s *sender, rec arrow.Record) error {
	rows := rec.NumRows()
	whole := dictionaryBytes(rec)
	most := rowsWithin(max(sentBytes, whole), rows, util.TotalRecordSize(rec)-whole)
	for from := int64(0); from < rows; from += most {
		part := rec.NewSlice(from, min(rows, from+most))
		err := sendWhole(s, part)
		part.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// dictionaryBytes returns the bytes of dictionaries that every part of a record carries; a
// part has enough rows to be worth them.
func dictionaryBytes(rec arrow.Record) (n int64) {
	for _, c := range rec.Columns() {
		if d, ok := c.(*array.Dictionary); ok {
			n += util.TotalArraySize(d.Dictionary())
		}
	}
	return n
}

// sentBytes is about how many bytes of a record are sent at a time: with its schema, what a
// slot of the window has room for.
const sentBytes = slotBytes / 4 * 3

// rowsWithin returns how many of some rows take about a number of bytes, at least one.
func rowsWithin(most, rows, bytes int64) int64 {
	return max(1, min(rows, rows*most/max(1, bytes)))
}

func sendWhole(s *sender, rec arrow.Record) error {
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(rec.Schema()))
	if err := cmp.Or(w.Write(rec), w.Close()); err != nil {
		return err
	}
	return s.send(&decodeReply{Arrow: out.Len()}, out.Bytes())
}

// columnSource is an opened Parquet or Arrow file.
type columnSource struct {
	schema    *arrow.Schema
	groups    []int64 // bytes of each row group
	groupRows []int64
	first     int   // number of the first row that records hand on
	rows      int64 // −1 where not known beforehand
	records   func(yield func(arrow.Record) error) error
	close     func()
}

// decodeBatch is how many rows are decoded at a time, at the most: of those that are long, as
// many as take about decodeBytes.
const (
	decodeBatch = 8192
	decodeBytes = 1 << 20
)

// batchOf returns how many rows of some row groups are decoded at a time; none are all. A
// small row group does not determine the batches of others.
func batchOf(md *metadata.FileMetaData, groups []int) int64 {
	most := int64(decodeBatch)
	for i, g := range md.RowGroups {
		if bytes := g.GetTotalByteSize(); bytes > decodeBytes && (groups == nil || slices.Contains(groups, i)) {
			most = min(most, rowsWithin(decodeBytes, g.GetNumRows(), bytes))
		}
	}
	return most
}

// wanted returns the columns that an order needs; nil is all.
func (o *decodeOrder) wanted() []string {
	if o.Plan == nil {
		return o.Only
	}
	if o.Plan.Sparse {
		return append([]string{"indices", "values"}, o.Plan.beside()...)
	}
	if o.Plan.List != "" {
		return append([]string{o.Plan.List}, o.Plan.beside()...)
	}
	return slices.Concat(o.Plan.Features, o.Plan.beside())
}

func openColumns(order decodeOrder) (*columnSource, error) {
	f, err := files.OpenPath(order.Path)
	if err != nil {
		return nil, err
	}
	if order.Kind == Parquet {
		return openParquet(f, order)
	}
	head := make([]byte, 6)
	if _, err := io.ReadFull(f, head); err != nil {
		return nil, errors.New("the file is too short to be Arrow IPC")
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if string(head) == "ARROW1" {
		return openArrowFile(f)
	}
	return openArrowStream(f)
}

func openParquet(f files.Handle, order decodeOrder) (*columnSource, error) {
	head := make([]byte, 4)
	if _, err := f.ReadAt(head, 0); err == nil && string(head) != "PAR1" && string(head) != "PARE" {
		return nil, errors.New("it is not a Parquet file: it does not begin with PAR1")
	}
	props := parquet.NewReaderProperties(nil)
	props.BufferedStreamEnabled, props.BufferSize = true, pageBuffer // not whole columns
	pf, err := file.NewParquetReader(f, file.WithReadProps(props))
	if err != nil {
		return nil, err
	}
	batch := batchOf(pf.MetaData(), order.Groups)
	fr, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: batch}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	schema, err := fr.Schema()
	if err != nil {
		return nil, err
	}
	s := &columnSource{schema: schema, rows: pf.NumRows(), close: func() { pf.Close() },
		groupRows: groupRows(pf.MetaData()), first: int(rowsBefore(pf.MetaData(), order.Groups))}
	for i := range pf.NumRowGroups() {
		s.groups = append(s.groups, pf.MetaData().RowGroups[i].GetTotalByteSize())
	}
	s.records = func(yield func(arrow.Record) error) error {
		groups := order.Groups
		if groups == nil {
			groups = allGroups(pf)
		}
		r := &recordReader{path: order.Path, fr: fr, columns: leavesOf(pf.MetaData(), order.wanted())}
		return r.read(groups, yield)
	}
	return s, nil
}

func openArrowFile(f files.Handle) (*columnSource, error) {
	r, err := ipc.NewFileReader(f)
	if err != nil {
		return nil, err
	}
	s := &columnSource{schema: r.Schema(), rows: -1, close: func() { r.Close(); f.Close() }}
	s.records = func(yield func(arrow.Record) error) error {
		for i := range r.NumRecords() {
			rec, err := r.Record(i)
			if err != nil {
				return err
			}
			if err := yield(rec); err != nil {
				return err
			}
		}
		return nil
	}
	return s, nil
}

func openArrowStream(f files.Handle) (*columnSource, error) {
	r, err := ipc.NewReader(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return nil, err
	}
	s := &columnSource{schema: r.Schema(), rows: -1, close: func() { r.Release(); f.Close() }}
	s.records = func(yield func(arrow.Record) error) error {
		for r.Next() {
			if err := yield(r.Record()); err != nil {
				return err
			}
		}
		if err := r.Err(); err != nil && err != io.EOF {
			return err
		}
		return nil
	}
	return s, nil
}

// columnsInFile describes a file of columns.
type columnsInFile struct {
	Names     []string `json:"names"`
	Types     []string `json:"types"`
	Groups    []int64  `json:"groups,omitempty"`
	GroupRows []int64  `json:"group_rows,omitempty"`
	Rows      int64    `json:"rows"`
	Flat      bool     `json:"flat,omitempty"` // the columns that were asked for can be read as FlatColumns
}

func (s *columnSource) describe() *columnsInFile {
	d := &columnsInFile{Groups: s.groups, GroupRows: s.groupRows, Rows: s.rows}
	for _, f := range s.schema.Fields() {
		d.Names = append(d.Names, f.Name)
		d.Types = append(d.Types, f.Type.String())
	}
	return d
}
