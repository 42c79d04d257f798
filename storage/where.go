package storage

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/volley-engine/volley/internal/fault"
)

// where names the file and line of a position in the block. Ranges are read
// without counting the lines before them, so this counts them now: it is
// called only to report an error.
func (b textBlock) where(pos int) string {
	newline := b.newline
	if newline == 0 {
		newline = '\n'
	}
	line := b.line + int64(bytes.Count(b.data[:min(pos, len(b.data))], []byte{newline}))
	return fmt.Sprintf("%s line %d", b.rng.File.Path, line+b.before())
}

// place returns a function that names the file and line of the block's beginning, which
// does not need the block.
func (b textBlock) place() func() string {
	b.data = nil
	return func() string { return b.where(0) }
}

// before counts the lines of the file before those that the block's own line counts.
func (b textBlock) before() int64 {
	if b.rng.Offset == 0 {
		return 0
	}
	return linesBefore(b.rng, b.newline)
}

// linesBefore counts the lines that begin before the range.
func linesBefore(rng Range, newline byte) int64 {
	f, err := os.Open(rng.File.Path)
	if err != nil {
		return 0
	}
	defer f.Close()
	start := rng.Offset
	if !rng.Exact {
		if start, err = nextLine(f, rng.Offset-1, newline); err != nil {
			return 0
		}
	}
	r := io.NewSectionReader(f, 0, start)
	buf := make([]byte, 256<<10)
	var lines int64
	for {
		n, err := r.Read(buf)
		lines += int64(bytes.Count(buf[:n], []byte{newline}))
		if err != nil {
			return lines
		}
	}
}

// bad is a complaint about the data at a position of the block.
func (b textBlock) bad(pos int, format string, args ...any) error {
	return fault.Newf(fault.BadInput, "read", b.where(pos), format, args...)
}

// hinted is bad with what to do.
func (b textBlock) hinted(pos int, hint, format string, args ...any) error {
	return fault.Newf(fault.BadInput, "read", b.where(pos), format, args...).WithHint(hint)
}
