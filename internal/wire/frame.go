package wire

import (
	"encoding/binary"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/volley-engine/volley/internal/fault"
)

// Frame is a message, encoded for a direct connection: the number and the lengths of its pieces, then these.
// The first piece is the message. Where parameters or partial results are many bytes the message has empty fields
// for them, and they follow, a piece each: they are not copied into an encoding and out of it again.
type Frame struct {
	data mem.BufferSlice
	size int
}

// bulky is the size from which on contents are sent beside their message.
const bulky = 64 << 10

// NewFrame encodes a message. Contents beside it are not copied.
func NewFrame(m proto.Message) (*Frame, error) {
	var beside [][]byte
	if proto.Size(m) >= bulky {
		m, beside = apart(m)
	}
	raw, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	head := binary.LittleEndian.AppendUint32(make([]byte, 0, 8+4*len(beside)+len(raw)), uint32(len(beside)))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(raw)))
	for _, d := range beside {
		head = binary.LittleEndian.AppendUint32(head, uint32(len(d)))
	}
	f := &Frame{data: mem.BufferSlice{mem.SliceBuffer(append(head, raw...))}}
	for _, d := range beside {
		if len(d) > 0 {
			f.data = append(f.data, mem.SliceBuffer(d))
		}
	}
	f.size = f.data.Len()
	return f, nil
}

// apart returns a message without its contents, and these; both unchanged where it has none of many bytes.
func apart(m proto.Message) (head proto.Message, beside [][]byte) {
	switch b := m.(type) {
	case *ToDriver:
		r := b.GetResult()
		if r == nil {
			return m, nil
		}
		bare := &Result{Job: r.Job, Step: r.Step, Coverage: r.Coverage, BusyNs: r.BusyNs, Fault: r.Fault,
			Epoch: r.Epoch}
		for _, p := range r.Parts {
			bare.Parts = append(bare.Parts, &Part{Level: p.Level, Index: p.Index, State: p.State, Weight: p.Weight})
			beside = append(beside, p.Data)
		}
		return &ToDriver{Body: &ToDriver_Result{Result: bare}}, beside
	case *ToExecutor:
		if p := b.GetParameter(); p != nil {
			return &ToExecutor{Body: &ToExecutor_Parameter{Parameter: &Parameter{Digest: p.Digest}}}, [][]byte{p.Data}
		}
	}
	return m, nil
}

// directCodec is the codec of direct connections: frames out, messages in.
type directCodec struct{}

const directName = "volley-direct"

func init() { encoding.RegisterCodecV2(directCodec{}) }

// DirectCodec makes a call carry frames.
func DirectCodec() grpc.CallOption { return grpc.CallContentSubtype(directName) }

func (directCodec) Name() string { return directName }

func (directCodec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*Frame); ok {
		return f.data, nil
	}
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fault.Newf(fault.Internal, "encode", "a message", "%T is none", v)
	}
	f, err := NewFrame(m)
	if err != nil {
		return nil, err
	}
	return f.data, nil
}

// Unmarshal decodes a frame that has arrived. Each piece is copied once.
func (directCodec) Unmarshal(data mem.BufferSlice, v any) error {
	in := frameReader{left: data.Len(), r: data.Reader()}
	defer in.r.Close()
	sizes := in.sizes()
	raw := in.take(sizes[0])
	beside := make([][]byte, len(sizes)-1)
	for i := range beside {
		beside[i] = in.take(sizes[i+1])
	}
	m, ok := v.(proto.Message)
	if !ok {
		return fault.Newf(fault.Internal, "decode", "a message", "%T is none", v)
	}
	if in.err != nil {
		return in.err
	}
	if err := proto.Unmarshal(raw, m); err != nil || len(beside) == 0 {
		return err
	}
	return together(m, beside)
}

// together puts contents into the fields of their message that are empty.
func together(m proto.Message, beside [][]byte) error {
	var fields []*[]byte
	switch m := m.(type) {
	case *ToDriver:
		for _, p := range m.GetResult().GetParts() {
			fields = append(fields, &p.Data)
		}
	case *ToExecutor:
		if p := m.GetParameter(); p != nil {
			fields = append(fields, &p.Data)
		}
	}
	if len(fields) != len(beside) {
		return fault.Newf(fault.Corrupt, "receive", "a message", "%d contents are for %d fields", len(beside),
			len(fields))
	}
	for i, f := range fields {
		*f = beside[i]
	}
	return nil
}

// frameReader reads the pieces of a frame; after its first error all are empty.
type frameReader struct {
	left int
	r    io.ReadCloser
	err  error
}

// sizes returns the lengths of the message and of the contents beside it.
func (r *frameReader) sizes() []int {
	beside := r.number()
	if beside > r.left/4 {
		r.err = r.short()
		beside = 0
	}
	out := make([]int, beside+1)
	for i := range out {
		out[i] = r.number()
	}
	return out
}

func (r *frameReader) short() error {
	return fault.Newf(fault.Corrupt, "receive", "a message", "it is shorter than it says")
}

func (r *frameReader) take(n int) []byte {
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

func (r *frameReader) number() int {
	raw := r.take(4)
	if r.err != nil {
		return 0
	}
	return int(binary.LittleEndian.Uint32(raw))
}
