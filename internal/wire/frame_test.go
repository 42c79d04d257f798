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
			Coverage: []*Coverage{{Split: 1, Count: 5}},
			Parts:    []*Part{{Level: 1, Data: data}, {Index: 3, Weight: 2.5}, {Index: 4, Data: data[:9]}}}}},
		&ToExecutor{Body: &ToExecutor_Parameter{Parameter: &Parameter{Digest: []byte("d"), Data: data}}},
		&ToExecutor{Body: &ToExecutor_RunTask{RunTask: &RunTask{Job: "j", Args: data}}},
		&ToDriver{Body: &ToDriver_TaskResult{TaskResult: &TaskResult{Job: "j", Data: data}}},
		&ToDriver{Body: &ToDriver_Progress{Progress: &Progress{Job: "j", Step: 8}}},
		&ToDriver{Body: &ToDriver_Result{Result: &Result{Job: "j", Parts: []*Part{{Data: data[:5]}}}}},
		&ToExecutor{Body: &ToExecutor_StopStep{StopStep: &StopStep{Step: 3, Skip: []uint32{4}}}},
		&Hello{Version: "v", Name: "n"},
	}
}

// TestMessagesArriveAsTheyWere, whether or not they are taken apart.
func TestMessagesArriveAsTheyWere(t *testing.T) {
	for i, m := range someMessages() {
		f, err := NewFrame(m)
		if err != nil {
			t.Fatal(err)
		}
		if apart := i < 2; apart != (len(f.data) > 1) || f.size < proto.Size(m) {
			t.Errorf("%T of %d bytes: a frame of %d bytes in %d buffers", m, proto.Size(m), f.size, len(f.data))
		}
		raw := f.data.Materialize()
		var pieces mem.BufferSlice // as the network cuts it
		for at := 0; at < len(raw); at += 16384 {
			pieces = append(pieces, mem.SliceBuffer(raw[at:min(at+16384, len(raw))]))
		}
		back := m.ProtoReflect().New().Interface()
		if err := (directCodec{}).Unmarshal(pieces, back); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(m, back) {
			t.Errorf("%T differs", m)
		}
	}
}

// FuzzFrame: whatever arrives, nothing is allocated or read beyond it.
func FuzzFrame(f *testing.F) {
	for _, m := range someMessages() {
		b, _ := NewFrame(m)
		f.Add(b.data.Materialize())
	}
	f.Fuzz(func(_ *testing.T, raw []byte) {
		for _, m := range []proto.Message{&ToDriver{}, &ToExecutor{}} {
			_ = directCodec{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw)}, m)
		}
	})
}
