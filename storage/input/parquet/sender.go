package parquet

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"io"
	"unsafe"

	"github.com/volley-engine/volley/internal/raw"
	"github.com/volley-engine/volley/storage/input/rows"
)

// sender sends what the child has decoded.
type sender struct {
	out    *bufio.Writer
	taken  io.Reader // a byte for every slot that was read
	window *window   // nil where there is none
	sent   int       // messages in the window
	done   int       // how many are known to have been read

	batches []sentBatch // of columns, in the slot in hand
	used    int         // bytes of it
}

// slot returns the next one, as soon as it is free.
func (s *sender) slot() ([]byte, error) {
	if err := s.await(windowSlots - 1); err != nil {
		return nil, err
	}
	return s.window.slot(s.sent), nil
}

// drain waits until the parent has read all that was sent.
func (s *sender) drain() error { return s.await(0) }

// await waits until at most a number of slots have not been read.
func (s *sender) await(most int) error {
	for s.sent-s.done > most {
		var b [1]byte
		if _, err := io.ReadFull(s.taken, b[:]); err != nil {
			return err
		}
		s.done++
	}
	return nil
}

// send sends a reply with its body: by the window where it fits there, else after it.
func (s *sender) send(d *decodeReply, parts ...[]byte) error {
	size := bodySize(parts)
	if size == 0 || s.window == nil || size > slotBytes {
		d.Inline = size
		return s.write(d, parts)
	}
	slot, err := s.slot()
	if err != nil {
		return err
	}
	fillSlot(slot, parts)
	return s.sendSlot(d, size)
}

// sendSlot sends a reply whose body is in the current slot.
func (s *sender) sendSlot(d *decodeReply, size int) error {
	d.Window = size
	s.sent++
	return s.write(d, nil)
}

func (s *sender) write(d *decodeReply, parts [][]byte) error {
	head, err := json.Marshal(d)
	if err != nil {
		return err
	}
	_, err = s.out.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(head))), head...))
	for _, p := range parts {
		if err == nil {
			_, err = s.out.Write(p)
		}
		if err == nil {
			_, err = s.out.Write(make([]byte, padTo8(len(p))-len(p)))
		}
	}
	return cmp.Or(err, s.out.Flush())
}

// room allocates the slices of a chunk of dense rows in the next slot, if they fit there,
// which saves a copy.
func (s *sender) room(c *rows.Chunk, rows, width int, weights bool) error {
	n := 1 + width
	if weights {
		n++
	}
	if 8*rows*n > slotBytes {
		return nil
	}
	slot, err := s.slot()
	if err != nil {
		return err
	}
	at := unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(slot))), slotBytes/8)
	c.Labels, at = at[:0:rows], at[rows:]
	if c.Values, at = at[:0:rows*width], at[rows*width:]; weights {
		c.Weights = at[:0:rows]
	}
	return nil
}

// chunk sends rows of numbers.
func (s *sender) chunk(c *rows.Chunk) error {
	if c.Rows() == 0 {
		return nil
	}
	d := &decodedChunk{Width: c.Width, Texts: c.Texts,
		Lens: [5]int{len(c.Labels), len(c.Values), len(c.Offsets), len(c.Indices), len(c.Weights)}}
	return s.send(&decodeReply{Chunk: d}, chunkParts(c)...)
}

// columns sends a batch of columns, together with others, as many as a slot holds.
func (s *sender) columns(rows int, cols []*FlatColumn) error {
	b := sentBatch{Rows: rows}
	var parts [][]byte
	for _, c := range cols {
		head, some := c.parts()
		b.Columns, parts = append(b.Columns, head), append(parts, some...)
	}
	size := bodySize(parts)
	if s.used+size > slotBytes {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if size > slotBytes || size == 0 {
		return s.send(&decodeReply{Columns: []sentBatch{b}}, parts...)
	}
	slot, err := s.slot()
	if err != nil {
		return err
	}
	fillSlot(slot[s.used:], parts)
	s.batches, s.used = append(s.batches, b), s.used+size
	return nil
}

// flush sends the batches of columns in the current slot.
func (s *sender) flush() error {
	if len(s.batches) == 0 {
		return nil
	}
	d := &decodeReply{Columns: s.batches}
	size := s.used
	s.batches, s.used = nil, 0
	return s.sendSlot(d, size)
}

// sentBatch is the head of some rows of columns.
type sentBatch struct {
	Rows    int          `json:"n"`
	Columns []sentColumn `json:"c"`
}

// sentColumn is what a column's part of a batch has: values of a kind, how many bytes
// they take together, and where there are nulls.
type sentColumn struct {
	Kind   valueKind `json:"k"`
	Unit   TimeUnit  `json:"u,omitempty"`
	Values int       `json:"v"`
	Bytes  int       `json:"b,omitempty"`
	Defs   int       `json:"d,omitempty"`
}

// valueKind is which slice of a FlatColumn has values.
type valueKind int

const (
	boolKind valueKind = iota
	int32Kind
	int64Kind
	floatKind
	doubleKind
	bytesKind
)

// parts returns what a column is sent as; receive takes them in.
func (c *FlatColumn) parts() (sentColumn, [][]byte) {
	h := sentColumn{Unit: c.Unit, Defs: len(c.Defs)}
	parts := [][]byte{raw.Bytes(c.Defs), nil}
	switch {
	case c.Bools != nil:
		h.Kind, h.Values, parts[1] = boolKind, len(c.Bools), raw.Bytes(c.Bools)
	case c.Int32s != nil:
		h.Kind, h.Values, parts[1] = int32Kind, len(c.Int32s), raw.Bytes(c.Int32s)
	case c.Int64s != nil:
		h.Kind, h.Values, parts[1] = int64Kind, len(c.Int64s), raw.Bytes(c.Int64s)
	case c.Floats != nil:
		h.Kind, h.Values, parts[1] = floatKind, len(c.Floats), raw.Bytes(c.Floats)
	case c.Doubles != nil:
		h.Kind, h.Values, parts[1] = doubleKind, len(c.Doubles), raw.Bytes(c.Doubles)
	default:
		text := c.gather()
		h.Kind, h.Values, h.Bytes = bytesKind, len(c.Bytes), len(text)
		parts = append(parts[:1], raw.Bytes(c.room.lens), text)
	}
	return h, parts
}

// gather concatenates the bytes of all values, and notes their lengths.
func (c *FlatColumn) gather() []byte {
	sized(&c.room.lens, len(c.Bytes))
	size := 0
	for i, b := range c.Bytes {
		c.room.lens[i] = int32(len(b))
		size += len(b)
	}
	sized(&c.room.text, size)
	to := c.room.text
	for _, b := range c.Bytes {
		to = to[copy(to, b):]
	}
	return c.room.text
}

// receive makes the column what was sent of it, in place.
func (c *FlatColumn) receive(h sentColumn, raw *[]byte) (err error) {
	c.Bools, c.Int32s, c.Int64s, c.Floats, c.Doubles, c.Bytes, c.Defs = nil, nil, nil, nil, nil, nil, nil
	c.Unit = h.Unit
	if h.Defs > 0 {
		if c.Defs, err = partOf[int16](raw, h.Defs); err != nil {
			return err
		}
	}
	switch h.Kind {
	case boolKind:
		c.Bools, err = partOf[bool](raw, h.Values)
	case int32Kind:
		c.Int32s, err = partOf[int32](raw, h.Values)
	case int64Kind:
		c.Int64s, err = partOf[int64](raw, h.Values)
	case floatKind:
		c.Floats, err = partOf[float32](raw, h.Values)
	case doubleKind:
		c.Doubles, err = partOf[float64](raw, h.Values)
	default:
		err = c.receiveBytes(h, raw)
	}
	return err
}

func (c *FlatColumn) receiveBytes(h sentColumn, raw *[]byte) error {
	lens, err := partOf[int32](raw, h.Values)
	if err != nil {
		return err
	}
	text, err := partOf[byte](raw, h.Bytes)
	if err != nil {
		return err
	}
	sized(&c.room.bytes, len(lens))
	c.Bytes = c.room.bytes
	for i, n := range lens {
		if n < 0 || int(n) > len(text) {
			return errShortBody
		}
		c.Bytes[i], text = text[:n:n], text[n:]
	}
	return nil
}
