package wire

import (
	"encoding/binary"
	"io"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/volley-engine/volley/internal/fault"
)

// Bulk is a message on a direct connection. Where parameters or partial results are many bytes they
// lie beside it, so that they are not copied into an encoding and out of it again.
type Bulk struct {
	Head []byte   // the message, without what lies beside it
	Data [][]byte // what goes into its empty fields, in order; none where it is whole
}

// bulky is the size from which on contents lie beside their message.
const bulky = 64 << 10

// BulkOf takes a message apart where that is worth it. The contents are not copied.
func BulkOf(m proto.Message) (*Bulk, error) {
	head, data := apart(m)
	size := 0
	for _, d := range data {
		size += len(d)
	}
	if size < bulky {
		head, data = m, nil
	}
	raw, err := proto.Marshal(head)
	return &Bulk{Head: raw, Data: data}, err
}

// apart returns a message without its contents, and these.
func apart(m proto.Message) (head proto.Message, data [][]byte) {
	switch m := m.(type) {
	case *ToDriver:
		r := m.GetResult()
		bare := &Result{Job: r.GetJob(), Step: r.GetStep(), Coverage: r.GetCoverage(), BusyNs: r.GetBusyNs(), Fault: r.GetFault(), Epoch: r.GetEpoch()}
		for _, p := range r.GetParts() {
			bare.Parts = append(bare.Parts, &Part{Level: p.Level, Index: p.Index, State: p.State, Weight: p.Weight})
			data = append(data, p.Data)
		}
		return &ToDriver{Body: &ToDriver_Result{Result: bare}}, data
	case *ToExecutor:
		p := m.GetParameter()
		return &ToExecutor{Body: &ToExecutor_Parameter{Parameter: &Parameter{Digest: p.GetDigest()}}}, [][]byte{p.GetData()}
	}
	return m, nil
}

// size is how many bytes it takes.
func (b *Bulk) size() int {
	n := len(b.Head)
	for _, d := range b.Data {
		n += len(d)
	}
	return n
}

// Message puts a message together again.
func (b *Bulk) Message(m proto.Message) error {
	if err := proto.Unmarshal(b.Head, m); err != nil || len(b.Data) == 0 {
		return err
	}
	switch m := m.(type) {
	case *ToDriver:
		parts := m.GetResult().GetParts()
		if len(parts) != len(b.Data) {
			return fault.Newf(fault.Corrupt, "receive", "a result", "%d parts have %d contents", len(parts), len(b.Data))
		}
		for i, p := range parts {
			p.Data = b.Data[i]
		}
	case *ToExecutor:
		p := m.GetParameter()
		if p == nil || len(b.Data) != 1 {
			return fault.Newf(fault.Corrupt, "receive", "a parameter", "it has %d contents", len(b.Data))
		}
		p.Data = b.Data[0]
	}
	return nil
}

// encode lays out the number and the lengths of all pieces, then the pieces.
func (b *Bulk) encode() mem.BufferSlice {
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(b.Data)))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(b.Head)))
	for _, d := range b.Data {
		head = binary.LittleEndian.AppendUint32(head, uint32(len(d)))
	}
	out := mem.BufferSlice{mem.SliceBuffer(append(head, b.Head...))}
	for _, d := range b.Data {
		if len(d) > 0 {
			out = append(out, mem.SliceBuffer(d))
		}
	}
	return out
}

// decode takes the pieces out of what has arrived, each copied once.
func (b *Bulk) decode(data mem.BufferSlice) error {
	in := bulkReader{left: data.Len(), r: data.Reader()}
	defer in.r.Close()
	pieces := in.number()
	if pieces > in.left/4 {
		return in.short()
	}
	sizes := make([]int, pieces+1)
	for i := range sizes {
		sizes[i] = in.number()
	}
	b.Head = in.take(sizes[0])
	b.Data = make([][]byte, pieces)
	for i := range b.Data {
		b.Data[i] = in.take(sizes[i+1])
	}
	return in.err
}

// bulkReader reads pieces; after its first error all are empty.
type bulkReader struct {
	left int
	r    io.ReadCloser
	err  error
}

func (r *bulkReader) short() error {
	return fault.Newf(fault.Corrupt, "receive", "a message", "it is shorter than it says")
}

func (r *bulkReader) take(n int) []byte {
	if r.err == nil && n > r.left {
		r.err = r.short()
	}
	if r.err != nil {
		return nil
	}
	out := make([]byte, n)
	r.left -= n
	_, r.err = io.ReadFull(r.r, out)
	return out
}

func (r *bulkReader) number() int {
	raw := r.take(4)
	if r.err != nil {
		return 0
	}
	return int(binary.LittleEndian.Uint32(raw))
}
