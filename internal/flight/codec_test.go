package flight

import (
	"bytes"
	"testing"

	arrowflight "github.com/apache/arrow/go/v15/arrow/flight"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/volley-engine/volley/storage/arrowstream"
)

// TestABatchIsFlightData: who receives it reads what was sent, and memory is given back once, when it is sent and not
// before.
func TestABatchIsFlightData(t *testing.T) {
	t.Parallel()
	c := codec{encoding.GetCodecV2(proto.Name)}
	for _, size := range []int{0, 8, 1 << 20} {
		for _, pooled := range []bool{false, true} {
			given := 0
			b := &batch{arrowstream.Message{Header: []byte("header"), Body: bytes.Repeat([]byte{7}, size)}}
			if pooled {
				b.Release = func() { given++ }
			}
			raw, err := c.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			got := &arrowflight.FlightData{}
			whole := mem.BufferSlice{mem.SliceBuffer(raw.Materialize())}
			if err := c.Unmarshal(whole, got); err != nil {
				t.Fatal(err)
			}
			if string(got.DataHeader) != "header" || !bytes.Equal(got.DataBody, b.Body) || len(got.AppMetadata) > 0 {
				t.Errorf("%d bytes: %q, and %d bytes", size, got.DataHeader, len(got.DataBody))
			}
			before := given
			if raw.Free(); before != 0 || pooled && size >= 1<<20 && given != 1 || !pooled && given != 0 {
				t.Errorf("%d bytes: memory was given back %d times before it was sent, %d times in all", size, before,
					given)
			}
		}
	}
	put := &arrowflight.PutResult{AppMetadata: []byte("rows")}
	raw, err := c.Marshal(put)
	if err != nil || !bytes.Contains(raw.Materialize(), []byte("rows")) {
		t.Errorf("%q, %v", raw.Materialize(), err)
	}
}
