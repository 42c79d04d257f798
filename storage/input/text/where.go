package text

import (
	"bytes"
	"fmt"
	"io"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/files"
)

// Where names the file and line of a position in the block. Ranges are read
// without counting the lines before them, so this counts them now: it is
// called only to report an error.
func (b Block) Where(pos int) string {
	newline := b.Newline
	if newline == 0 {
		newline = '\n'
	}
	line := b.Line + int64(bytes.Count(b.Data[:min(pos, len(b.Data))], []byte{newline}))
	return fmt.Sprintf("%s line %d", b.Range.File.Path, line+b.Before())
}

// Place returns a function that names the file and line of the block's beginning, which
// does not need the block.
func (b Block) Place() func() string {
	b.Data = nil
	return func() string { return b.Where(0) }
}

// Before counts the lines of the file before those that the block's own line counts.
func (b Block) Before() int64 {
	if b.Range.Offset == 0 {
		return 0
	}
	return linesBefore(b.Range, b.Newline)
}

// linesBefore counts the lines that begin before the range.
func linesBefore(rng files.Range, newline byte) int64 {
	f, err := rng.File.Open()
	if err != nil {
		return 0
	}
	defer f.Close()
	start := rng.Offset
	if !rng.Exact {
		if start, err = NextLine(f, rng.Offset-1, newline); err != nil {
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

// Bad returns an error about the data at a position of the block.
func (b Block) Bad(pos int, format string, args ...any) error {
	return fault.Newf(fault.BadInput, "read", b.Where(pos), format, args...)
}

// hinted returns Bad's error with a hint.
func (b Block) hinted(pos int, hint, format string, args ...any) error {
	return fault.Newf(fault.BadInput, "read", b.Where(pos), format, args...).WithHint(hint)
}
