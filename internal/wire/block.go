package wire

import (
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec of everything else
	"google.golang.org/grpc/mem"
)

// Raw is a piece of a block. On a connection that uses the raw codec it
// travels as it is: neither encoded nor copied.
type Raw struct{ data mem.BufferSlice }

// Free gives the memory of a received piece back.
func (r *Raw) Free() { r.data.Free() }

// WriteTo writes the piece.
func (r *Raw) WriteTo(w io.Writer) (total int64, err error) {
	for _, b := range r.data {
		n, err := w.Write(b.ReadOnlyData())
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// rawCodec passes pieces of blocks on without encoding them.
type rawCodec struct{ encoding.CodecV2 }

const rawName = "volley-raw"

func init() { encoding.RegisterCodecV2(rawCodec{encoding.GetCodecV2("proto")}) }

// RawCodec makes a call carry pieces of blocks without encoding.
func RawCodec() grpc.CallOption { return grpc.CallContentSubtype(rawName) }

func (c rawCodec) Name() string { return rawName }

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(*Raw); ok {
		return m.data, nil
	}
	return c.CodecV2.Marshal(v)
}

func (c rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*Raw); ok {
		data.Ref()
		m.data = data
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

// RawStream sends and receives pieces of blocks.
type RawStream interface {
	SendMsg(m any) error
	RecvMsg(m any) error
}

// rawPiece is how many bytes travel in one message.
const rawPiece = 1 << 20

// RawWriter sends what is written to it.
type RawWriter struct{ Stream RawStream }

// ReadFrom sends all that can be read.
func (w RawWriter) ReadFrom(r io.Reader) (total int64, err error) {
	pool := mem.DefaultBufferPool()
	for {
		buf := pool.Get(rawPiece)
		n, err := io.ReadFull(r, *buf)
		if n == 0 {
			pool.Put(buf)
		} else {
			*buf = (*buf)[:n]
			total += int64(n)
			if serr := w.Stream.SendMsg(&Raw{mem.BufferSlice{mem.NewBuffer(buf, pool)}}); serr != nil {
				return total, serr
			}
		}
		switch err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			return total, nil
		default:
			return total, err
		}
	}
}

// Write sends a copy of the bytes.
func (w RawWriter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := w.Stream.SendMsg(&Raw{mem.BufferSlice{mem.SliceBuffer(append([]byte(nil), p...))}}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CopyRaw forwards every piece that is received until the stream ends.
func CopyRaw(from RawStream, to func(*Raw) error) error {
	for {
		r := &Raw{}
		err := from.RecvMsg(r)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = to(r)
		}
		if err != nil {
			return err
		}
	}
}
