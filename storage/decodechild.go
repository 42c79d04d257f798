package storage

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
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
		err = limitMemory(order.Memory)
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

// limitMemory bounds what the process can allocate.
func limitMemory(bytes int64) error {
	debug.SetMemoryLimit(bytes / 2)
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

// describe says what is in a file.
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
	if order.Format == Parquet && order.Plan != nil {
		if read, err := readNumbers(order, s); read || err != nil {
			return err
		}
	}
	src, err := openColumns(order)
	if err != nil {
		return err
	}
	defer src.close()
	return src.records(func(rec arrow.Record) error {
		if order.Records {
			return sendRecord(s, rec)
		}
		c, err := order.Plan.chunk(rec)
		if err != nil {
			return err
		}
		return s.chunk(c)
	})
}

// sendRecord sends a record as it is.
func sendRecord(s *sender, rec arrow.Record) error {
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(rec.Schema()))
	if err := firstOf(w.Write(rec), w.Close()); err != nil {
		return err
	}
	return s.send(&decodeReply{Arrow: out.Len()}, out.Bytes())
}

// columnSource is an opened Parquet or Arrow file.
type columnSource struct {
	schema  *arrow.Schema
	groups  []int64 // bytes of each row group
	rows    int64   // −1 where not known beforehand
	records func(yield func(arrow.Record) error) error
	close   func()
}

// decodeBatch is how many rows are decoded at a time.
const decodeBatch = 8192

func openColumns(order decodeOrder) (*columnSource, error) {
	f, err := os.Open(order.Path)
	if err != nil {
		return nil, err
	}
	if order.Format == Parquet {
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

func openParquet(f *os.File, order decodeOrder) (*columnSource, error) {
	pf, err := file.NewParquetReader(f)
	if err != nil {
		return nil, err
	}
	fr, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: decodeBatch}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	schema, err := fr.Schema()
	if err != nil {
		return nil, err
	}
	s := &columnSource{schema: schema, rows: pf.NumRows(), close: func() { pf.Close() }}
	for i := range pf.NumRowGroups() {
		s.groups = append(s.groups, pf.MetaData().RowGroups[i].GetTotalByteSize())
	}
	s.records = func(yield func(arrow.Record) error) error {
		rr, err := fr.GetRecordReader(context.Background(), nil, order.Groups)
		if err != nil {
			return err
		}
		defer rr.Release()
		for rr.Next() {
			if err := yield(rr.Record()); err != nil {
				return err
			}
		}
		if err := rr.Err(); err != nil && err != io.EOF {
			return err
		}
		return nil
	}
	return s, nil
}

func openArrowFile(f *os.File) (*columnSource, error) {
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

func openArrowStream(f *os.File) (*columnSource, error) {
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

// columnsInFile says what is in a file of columns.
type columnsInFile struct {
	Names  []string `json:"names"`
	Types  []string `json:"types"`
	Groups []int64  `json:"groups,omitempty"`
	Rows   int64    `json:"rows"`
	Flat   bool     `json:"flat,omitempty"` // the columns that were asked for can be read as FlatColumns
}

func (s *columnSource) describe() *columnsInFile {
	d := &columnsInFile{Groups: s.groups, Rows: s.rows}
	for _, f := range s.schema.Fields() {
		d.Names = append(d.Names, f.Name)
		d.Types = append(d.Types, f.Type.String())
	}
	return d
}
