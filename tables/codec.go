package tables

import (
	"encoding/binary"
	"unsafe"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/raw"
	"github.com/volley-engine/volley/tables/consistency"
)

// kind says what a message between processes is, and to what.
type kind byte

const (
	_ kind = iota
	// To a shard.
	aBatch
	aRead
	aDrop
	aSeen
	completeForShard
	// To a client.
	aValue
	aTaken
	aSynced
	completeForClient
	// To the bookkeeper.
	aHave
	aSaved
	aPassed
	// Of the job's process to a member.
	aStart
	aShard // what a shard begins from
	aGo
	aHorizon
	// Of a member to the job's process.
	aState
	aSnapshot
	// To another worker.
	aHelp
	// Of the job's process to a member, and its answer.
	aLook
	aNewest
)

// writer encodes messages to another process, each behind its length. It may refer to what it has sent before: one
// reader reads them all, in their order.
type writer struct {
	buf     []byte
	at      int // where the length of the message is that is being written
	applied []consistency.Applied
}

const lengthBytes = 8

// begin begins a message: of a kind, about a table, to one of its machines.
func (w *writer) begin(k kind, table, to int) {
	w.at = len(w.buf)
	w.buf = append(w.buf, 0, 0, 0, 0, 0, 0, 0, 0, byte(k))
	w.int(table)
	w.int(to)
}

func (w *writer) end() {
	binary.LittleEndian.PutUint64(w.buf[w.at:], uint64(len(w.buf)-w.at-lengthBytes))
}

func (w *writer) int(x int) { w.buf = binary.AppendVarint(w.buf, int64(x)) }

func (w *writer) bytes(b []byte) {
	w.int(len(b))
	w.buf = append(w.buf, b...)
}

// all writes how far the batches of all workers are applied. Values of a shard share these lists: one that was just
// sent is referred to.
func (w *writer) all(a []consistency.Applied) {
	if len(a) == len(w.applied) && unsafe.SliceData(a) == unsafe.SliceData(w.applied) {
		w.int(-1)
		return
	}
	w.int(len(a))
	for _, x := range a {
		w.one(x)
	}
	w.applied = a
}

func (w *writer) one(a consistency.Applied) {
	w.int(int(a.Life))
	w.int(a.Number)
}

// addRow writes a row, in this machine's byte order.
func addRow[T Number](w *writer, r Row[T]) {
	if r.Columns == nil {
		w.int(-1)
	} else {
		w.int(len(r.Columns))
		w.buf = append(w.buf, raw.Bytes(r.Columns)...)
	}
	w.int(len(r.Values))
	w.buf = append(w.buf, raw.Bytes(r.Values)...)
}

// reader decodes what a writer has encoded, from pieces that may be cut anywhere.
type reader struct {
	left    []byte // of a message that has not come whole
	in      []byte // of the present one
	err     error
	applied []consistency.Applied
}

// feed calls take with each message of a piece.
func (r *reader) feed(piece []byte, take func(k kind, table, to int)) error {
	rest := piece
	if len(r.left) > 0 {
		r.left = append(r.left, piece...)
		rest = r.left
	}
	taken := 0
	for len(rest) >= lengthBytes {
		n := binary.LittleEndian.Uint64(rest)
		if n == 0 || n > mostMessage {
			return r.corrupt()
		}
		if uint64(len(rest)-lengthBytes) < n {
			break
		}
		r.in, rest = rest[lengthBytes:lengthBytes+n], rest[lengthBytes+n:]
		taken++
		k := kind(r.in[0])
		r.in = r.in[1:]
		table, to := r.int(), r.int()
		if take(k, table, to); r.err != nil {
			return r.err
		}
	}
	switch {
	case len(r.left) > 0 && taken == 0: // it has grown, and is not moved
	case len(rest) == 0 && cap(r.left) > mostKept:
		r.left = nil
	default:
		r.left = append(r.room(rest), rest...)
	}
	return nil
}

// room returns memory for what has come of a message, and for what is to come.
func (r *reader) room(rest []byte) []byte {
	if len(rest) < lengthBytes {
		return r.left[:0]
	}
	n := lengthBytes + int(min(binary.LittleEndian.Uint64(rest), mostKept))
	if cap(r.left) >= n {
		return r.left[:0]
	}
	return make([]byte, 0, n)
}

const (
	mostMessage = 1 << 40 // bytes
	mostKept    = 8 << 20 // of memory, for what was cut
)

func (r *reader) corrupt() error {
	if r.err == nil {
		r.err = fault.Newf(fault.Corrupt, "read", "a message of a table", "it is not what a member sends")
	}
	r.in = nil
	return r.err
}

func (r *reader) int() int {
	x, n := binary.Varint(r.in)
	if n <= 0 {
		_ = r.corrupt()
		return 0
	}
	r.in = r.in[n:]
	return int(x)
}

// within returns a number from 0 on and below a bound.
func (r *reader) within(most int) int {
	x := r.int()
	if x < 0 || x >= most {
		_ = r.corrupt()
		return 0
	}
	return x
}

// take returns a number of bytes that is next, in the memory of the piece.
func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.in) {
		_ = r.corrupt()
		return nil
	}
	b := r.in[:n:n]
	r.in = r.in[n:]
	return b
}

func (r *reader) bytes() []byte { return r.take(r.int()) }

func (r *reader) all() []consistency.Applied {
	n := r.int()
	if n == -1 {
		return r.applied
	}
	if n < 0 || n > len(r.in) {
		_ = r.corrupt()
		return nil
	}
	r.applied = make([]consistency.Applied, n)
	for i := range r.applied {
		r.applied[i] = r.one()
	}
	return r.applied
}

func (r *reader) one() consistency.Applied {
	return consistency.Applied{Life: consistency.Life(r.int()), Number: r.int()}
}

// numbers reads numbers into memory of their own; nil where there are none.
func numbers[T int32 | Number](r *reader, n int) []T {
	var zero T
	b := r.take(n * int(unsafe.Sizeof(zero)))
	if n <= 0 || b == nil {
		return nil
	}
	out := make([]T, n)
	copy(raw.Bytes(out), b)
	return out
}

// rowOf reads a row of at most a number of columns.
func rowOf[T Number](r *reader, columns int) (row Row[T]) {
	n := r.int()
	if n > columns {
		_ = r.corrupt()
	}
	if n >= 0 {
		if row.Columns = numbers[int32](r, n); row.Columns == nil {
			row.Columns = []int32{}
		}
	}
	for i, c := range row.Columns {
		if c < 0 || int(c) >= columns || i > 0 && c <= row.Columns[i-1] {
			_ = r.corrupt()
			return Row[T]{}
		}
	}
	m := r.int()
	if m > columns || n >= 0 && m != n || n < 0 && m != 0 && m != columns {
		_ = r.corrupt()
		return Row[T]{}
	}
	row.Values = numbers[T](r, m)
	return row
}
