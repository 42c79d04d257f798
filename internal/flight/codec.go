package flight

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/volley-engine/volley/storage/arrowstream"
)

// Codec has a server send what a stream has from the memory that it was read into. A server that a door is registered
// with needs it; what else it sends and takes is as without.
func Codec() grpc.ServerOption {
	return grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(proto.Name)})
}

type codec struct{ encoding.CodecV2 }

// batch is a message of a stream, FlightData to who receives it.
type batch struct{ arrowstream.Message }

// Fields of FlightData.
const (
	fieldHeader protowire.Number = 2
	fieldBody   protowire.Number = 1000
)

// Marshal returns the bytes of a message; those of a batch's body are not copied.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	b, is := v.(*batch)
	if !is {
		return c.CodecV2.Marshal(v)
	}
	head := protowire.AppendTag(nil, fieldHeader, protowire.BytesType)
	head = protowire.AppendBytes(head, b.Header)
	head = protowire.AppendTag(head, fieldBody, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(len(b.Body)))
	out := mem.BufferSlice{mem.SliceBuffer(head)}
	if b.Release == nil {
		return append(out, mem.SliceBuffer(b.Body)), nil
	}
	return append(out, mem.NewBuffer(&b.Body, released(b.Release))), nil
}

// released is a pool of one buffer, which is given back there.
type released func()

// Get returns memory of no pool: nothing asks for it.
func (released) Get(length int) *[]byte {
	b := make([]byte, length)
	return &b
}

// Put gives the buffer back.
func (r released) Put(*[]byte) { r() }
