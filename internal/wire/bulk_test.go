package wire

import (
	"bytes"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

func someMessages() []proto.Message {
	data := bytes.Repeat([]byte{1, 2, 3, 4}, 50_000)
	return []proto.Message{
		&ToDriver{Body: &ToDriver_Result{Result: &Result{Job: "j", Step: 7, BusyNs: 9, Fault: &Fault{},
			Coverage: []*Coverage{{Split: 1, Count: 5}}, Parts: []*Part{{Level: 1, Data: data}, {Index: 3, Weight: 2.5}, {Index: 4, Data: data[:9]}}}}},
		&ToExecutor{Body: &ToExecutor_Parameter{Parameter: &Parameter{Digest: []byte("d"), Data: data}}},
		&ToDriver{Body: &ToDriver_Progress{Progress: &Progress{Job: "j", Step: 8}}},
		&ToDriver{Body: &ToDriver_Result{Result: &Result{Job: "j", Parts: []*Part{{Data: data[:5]}}}}},
		&ToExecutor{Body: &ToExecutor_StopStep{StopStep: &StopStep{Step: 3, Skip: []uint32{4}}}},
	}
}

// TestMessagesArriveAsTheyWere, whether or not they are taken apart.
func TestMessagesArriveAsTheyWere(t *testing.T) {
	for _, m := range someMessages() {
		b, err := BulkOf(m)
		if err != nil {
			t.Fatal(err)
		}
		if apart := proto.Size(m) > bulky; apart != (len(b.Head) < bulky && len(b.Data) > 0) {
			t.Errorf("%T of %d bytes: %d of them in its head, %d contents beside it", m, proto.Size(m), len(b.Head), len(b.Data))
		}
		raw := b.encode().Materialize()
		var pieces mem.BufferSlice // as the network cuts it
		for at := 0; at < len(raw); at += 16384 {
			pieces = append(pieces, mem.SliceBuffer(raw[at:min(at+16384, len(raw))]))
		}
		got, back := &Bulk{}, m.ProtoReflect().New().Interface()
		if err := got.decode(pieces); err != nil {
			t.Fatal(err)
		}
		if err := got.Message(back); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(m, back) {
			t.Errorf("%T differs", m)
		}
	}
}

// FuzzBulk: whatever arrives, nothing is allocated or read beyond it.
func FuzzBulk(f *testing.F) {
	for _, m := range someMessages() {
		b, _ := BulkOf(m)
		f.Add(b.encode().Materialize())
	}
	f.Fuzz(func(_ *testing.T, raw []byte) {
		b := &Bulk{}
		if b.decode(mem.BufferSlice{mem.SliceBuffer(raw)}) == nil {
			_ = b.Message(&ToDriver{})
			_ = b.Message(&ToExecutor{})
		}
	})
}
