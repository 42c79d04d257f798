package wire

import (
	"bytes"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

func bulkyMessages() []proto.Message {
	data := bytes.Repeat([]byte{1, 2, 3, 4}, 50_000)
	return []proto.Message{
		&ToDriver{Body: &ToDriver_Result{Result: &Result{Job: "j", Step: 7, BusyNs: 9, Fault: &Fault{},
			Coverage: []*Coverage{{Split: 1, Count: 5}}, Parts: []*Part{{Level: 1, Data: data}, {Index: 3, Weight: 2.5}, {Index: 4, Data: data[:9]}}}}},
		&ToExecutor{Body: &ToExecutor_Parameter{Parameter: &Parameter{Digest: []byte("d"), Data: data}}},
	}
}

// TestBulkyMessagesArriveAsTheyWere taken apart and put together.
func TestBulkyMessagesArriveAsTheyWere(t *testing.T) {
	for _, m := range bulkyMessages() {
		b, ok, err := BulkOf(m)
		if !ok || err != nil {
			t.Fatal(ok, err)
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
	for _, m := range []proto.Message{&ToDriver{Body: &ToDriver_Progress{Progress: &Progress{}}}, &ToExecutor{Body: &ToExecutor_StartStep{}}} {
		if _, ok, _ := BulkOf(m); ok {
			t.Errorf("%v is not bulky", m)
		}
	}
}

// FuzzBulk: whatever arrives, nothing is allocated or read beyond it.
func FuzzBulk(f *testing.F) {
	for _, m := range bulkyMessages() {
		b, _, _ := BulkOf(m)
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
