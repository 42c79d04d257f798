package wire

import (
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"testing"
)

// TestALengthAloneTakesNoMemory: a frame that is announced and does not come costs no more
// than what has come of it.
func TestALengthAloneTakesNoMemory(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() {
		_, _ = theirs.Write(binary.LittleEndian.AppendUint32(nil, maxFrame))
		theirs.Close()
	}()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := NewFramed(ours).Read()
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Error("a frame of nothing was read")
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20 {
		t.Errorf("%d MiB were asked for, for four bytes", got>>20)
	}
}

// TestAQueueIsBoundedInBytes: of large messages fewer wait than of small ones.
func TestAQueueIsBoundedInBytes(t *testing.T) {
	q := NewQueue[[]byte]()
	const size, most = 1 << 20, 256 << 20
	message, waiting := make([]byte, size), 0
	for ; waiting <= 2*most/size; waiting++ {
		if err := q.Put(message); err != nil {
			break
		}
	}
	if waiting*size > most {
		t.Errorf("more than %d MiB wait in a queue", most>>20)
	}
	q.Stop()
	for range waiting {
		if _, err := q.Take(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.Take(); err != io.EOF {
		t.Error(err)
	}
}
