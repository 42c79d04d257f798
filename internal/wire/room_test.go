package wire

import (
	"testing"
)

// TestFramesAreBoundedInBytes, those beside their messages among them.
func TestFramesAreBoundedInBytes(t *testing.T) {
	q := NewQueue[*Frame]()
	const size, most = 1 << 20, 256 << 20
	frame, err := NewFrame(&ToExecutor{Body: &ToExecutor_Parameter{Parameter: &Parameter{Data: make([]byte, size)}}})
	if err != nil {
		t.Fatal(err)
	}
	waiting := 0
	for ; waiting <= 2*most/size; waiting++ {
		if err := q.Put(frame); err != nil {
			break
		}
	}
	if waiting*size > most {
		t.Errorf("more than %d MiB wait in a queue", most>>20)
	}
}

// TestAPipeIsBoundedInBytes: within a process, too.
func TestAPipeIsBoundedInBytes(t *testing.T) {
	d, e := Pipe()
	defer d.Close()
	const size, most = 1 << 20, 256 << 20
	m, sent := &ToExecutor{Body: &ToExecutor_Parameter{Parameter: &Parameter{Data: make([]byte, size)}}}, 0
	for ; sent <= 2*most/size; sent++ {
		if err := d.Send(m); err != nil {
			break
		}
	}
	if sent*size > most {
		t.Fatalf("more than %d MiB wait in a pipe", most>>20)
	}
	for {
		if _, err := e.Recv(); err != nil {
			break // the end that does not read is told
		}
	}
}
