package rdd

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugeLeast is how many bytes a piece of memory has at least for huge pages to be
// worth asking for.
const hugeLeast = 4 << 20

// makeHuge makes a slice whose elements will be read in no order: in huge pages,
// where the system has them, so that finding the page takes no longer than
// reading it. It is only advice.
func makeHuge[T any](n, room int) []T {
	s := make([]T, n, room)
	const page = 4096
	from := uintptr(unsafe.Pointer(unsafe.SliceData(s)))
	size := uintptr(room) * unsafe.Sizeof(*new(T))
	skip := -from & (page - 1)
	if size < hugeLeast || skip > size {
		return s
	}
	all := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s)), skip)), (size-skip)&^(page-1))
	_ = unix.Madvise(all, unix.MADV_HUGEPAGE)
	return s
}

// growHuge makes room for one element more.
func growHuge[T any](s []T) []T {
	if len(s) < cap(s) {
		return s
	}
	bigger := makeHuge[T](len(s), max(64, 2*cap(s)))
	copy(bigger, s)
	return bigger
}
