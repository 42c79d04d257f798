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

// decodeChild reads its order and writes replies.
func decodeChild(in io.Reader, out io.Writer) int {
	w := bufio.NewWriterSize(out, 1<<20)
	var order decodeOrder
	err := json.NewDecoder(in).Decode(&order)
	if err == nil {
		err = limitMemory(order.Memory)
	}
	if err == nil {
		err = runOrder(order, w)
	}
	if err != nil {
		err = writeReply(w, &decodeReply{Err: err.Error()}, nil)
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// limitMemory bounds what the process can ever allocate.
func limitMemory(bytes int64) error {
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)})
}

// runOrder decodes a file. Panics of decoders on this goroutine are errors;
// those on others end the process, which the parent reports.
func runOrder(order decodeOrder, w *bufio.Writer) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the file is malformed: %v", r)
		}
	}()
	src, err := openColumns(order)
	if err != nil {
		return err
	}
	defer src.close()
	if order.Describe {
		return writeReply(w, &decodeReply{Describe: src.describe()}, nil)
	}
	return src.records(func(rec arrow.Record) error {
		if order.Records {
			return writeRecord(w, rec)
		}
		c, err := order.Plan.chunk(rec)
		if err != nil {
			return err
		}
		if c.Rows() == 0 {
			return nil
		}
		if err := writeReply(w, &decodeReply{}, c); err != nil {
			return err
		}
		return w.Flush()
	})
}

// writeRecord hands a record on as it is.
func writeRecord(w *bufio.Writer, rec arrow.Record) error {
	var out bytes.Buffer
	iw := ipc.NewWriter(&out, ipc.WithSchema(rec.Schema()))
	err := iw.Write(rec)
	if err == nil {
		err = iw.Close()
	}
	if err == nil {
		err = writeReply(w, &decodeReply{Raw: out.Len(), raw: out.Bytes()}, nil)
	}
	if err != nil {
		return err
	}
	return w.Flush()
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
}

func (s *columnSource) describe() *columnsInFile {
	d := &columnsInFile{Groups: s.groups, Rows: s.rows}
	for _, f := range s.schema.Fields() {
		d.Names = append(d.Names, f.Name)
		d.Types = append(d.Types, f.Type.String())
	}
	return d
}
