package parquet

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// window is memory that a decoder shares with its parent: decoded data is read in place
// and passes through no pipe. It has a few slots, which are filled and read in turn;
// the parent acknowledges each with a byte.
type window struct{ mem []byte }

// How many slots there are, and how large they are: the decoder is to be ahead, but both
// are to stay within the caches of their processors.
const (
	windowSlots = 4
	slotBytes   = 512 << 10
)

// windowFile is the descriptor of the window in the child.
const windowFile = 3

// newWindow makes a window, and the file by which a child opens it.
func newWindow() (*window, *os.File, error) {
	f, err := sharedFile(windowSlots * slotBytes)
	if err != nil {
		return nil, nil, err
	}
	w, err := openWindow(int(f.Fd()))
	if err != nil {
		f.Close()
	}
	return w, f, err
}

// sharedFile returns a file of n bytes that is in memory only.
func sharedFile(size int64) (*os.File, error) {
	fd, err := unix.MemfdCreate("decoded", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory to share: %w", err)
	}
	f := os.NewFile(uintptr(fd), "decoded")
	if err := f.Truncate(size); err != nil {
		f.Close()
		return nil, fmt.Errorf("memory to share: %w", err)
	}
	return f, nil
}

func openWindow(fd int) (*window, error) {
	mem, err := unix.Mmap(fd, 0, windowSlots*slotBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("memory to share: %w", err)
	}
	return &window{mem}, nil
}

// slot returns the memory of the n-th message in a window.
func (w *window) slot(n int) []byte {
	at := n % windowSlots * slotBytes
	return w.mem[at : at+slotBytes : at+slotBytes]
}

func (w *window) close() {
	if w != nil {
		_ = unix.Munmap(w.mem)
	}
}

// windowReader takes messages from a window in turn.
type windowReader struct {
	*window
	n     int
	taken io.Writer // to the child: a byte for each slot that was read
}

// next returns the memory of the next message.
func (r *windowReader) next() []byte {
	r.n++
	return r.slot(r.n - 1)
}

// release gives the slot of the last message back. Reading on shows whether the child
// still lives.
func (r *windowReader) release() { _, _ = r.taken.Write([]byte{0}) }

// padTo8 returns how many bytes a part of a body takes: each begins at a multiple of eight.
func padTo8(n int) int { return (n + 7) &^ 7 }

// bodySize returns how many bytes some parts take together.
func bodySize(parts [][]byte) (n int) {
	for _, p := range parts {
		n += padTo8(len(p))
	}
	return n
}

// fillSlot copies parts into a slot, except those that were allocated there.
func fillSlot(to []byte, parts [][]byte) {
	for _, p := range parts {
		if unsafe.SliceData(p) != unsafe.SliceData(to) {
			copy(to, p)
		}
		to = to[padTo8(len(p)):]
	}
}

// partOf takes the next n values of a body.
func partOf[T any](raw *[]byte, n int) ([]T, error) {
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	if n < 0 || n > len(*raw) || padTo8(size) > len(*raw) {
		return nil, errShortBody
	}
	values := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(*raw))), n)
	*raw = (*raw)[padTo8(size):]
	return values, nil
}

var errShortBody = errors.New("the decoder's answer is cut short")
