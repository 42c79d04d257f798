package huge

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// least is how many bytes a piece of memory has at least for huge pages to be
// worth asking for.
const least = 4 << 20

// Make makes a slice for random access: in huge pages, where the system has them, so that a lookup costs
// no more than reading it. It is only advice to the system.
func Make[T any](n, room int) []T {
	s := make([]T, n, room)
	const page = 4096
	from := uintptr(unsafe.Pointer(unsafe.SliceData(s)))
	size := uintptr(room) * unsafe.Sizeof(*new(T))
	skip := -from & (page - 1)
	if size < least || skip > size {
		return s
	}
	all := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s)), skip)), (size-skip)&^(page-1))
	_ = unix.Madvise(all, unix.MADV_HUGEPAGE)
	return s
}

// Grow returns s with room for at least one element more.
func Grow[T any](s []T) []T {
	if len(s) < cap(s) {
		return s
	}
	bigger := Make[T](len(s), max(64, 2*cap(s)))
	copy(bigger, s)
	return bigger
}
