package input

import (
	"context"
	"fmt"

	"github.com/volley-engine/volley/internal/fault"
)

// EachLine passes each line of text files to f, without its newline; the bytes are valid during the call only. What f
// returns is the error, with the file and the number of the line.
func EachLine(ctx context.Context, uris []string, f func(line []byte) error) error {
	src, err := Open(ctx, Options{Format: Text}, uris...)
	file, at := "", 0
	for part := 0; err == nil && part < src.Len(); part++ {
		if p := src.Parts[part].File.Path; p != file {
			file, at = p, 0
		}
		err = src.Lines(ctx, part, func(line []byte) error {
			at++
			if err := f(line); err != nil {
				return fault.New(fault.BadInput, "read", fmt.Sprintf("line %d of %s", at, file), err)
			}
			return nil
		})
	}
	return err
}
