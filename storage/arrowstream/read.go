package arrowstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"sync"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/input/parquet"
	"github.com/volley-engine/volley/storage/objects"
)

// Format is how a file's rows are read.
type Format string

// The formats. Text has a column of lines; CSV, which is never found by looking at a file, columns of texts, with the
// names of the first record.
const (
	Arrow   Format = "arrow"
	Parquet Format = "parquet"
	Text    Format = "text"
	CSV     Format = "csv"
)

// FormatOf returns the format of a file by its first bytes.
func FormatOf(f files.File) (Format, error) {
	h, err := f.Open()
	if err != nil {
		return "", err
	}
	defer h.Close()
	head := make([]byte, 6)
	n, err := io.ReadFull(h, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return "", fault.New(fault.NoResources, "read", f.Path, err)
	}
	switch head = head[:n]; {
	case bytes.HasPrefix(head, []byte("PAR1")):
		return Parquet, nil
	case bytes.HasPrefix(head, []byte(fileMagic)), bytes.HasPrefix(head, []byte{0xff, 0xff, 0xff, 0xff}):
		return Arrow, nil
	}
	return Text, nil
}

// fileMagic begins an Arrow file, in which the first message is at the next multiple of eight bytes.
const fileMagic = "ARROW1"

// Read yields the messages of a file, which are valid during the call only. Columns that the file's directories have
// come after its own, as texts. A file that has changed since it was resolved is refused, at the latest at its end.
func Read(ctx context.Context, f files.File, as Format, yield func(Message) error) error {
	if err := f.Unchanged(); err != nil {
		return err
	}
	if err := read(ctx, f, as, yield); err != nil {
		return err
	}
	return f.Unchanged()
}

func read(ctx context.Context, f files.File, as Format, yield func(Message) error) error {
	switch as {
	case Arrow:
		if plain, err := passOn(ctx, f, yield); plain || err != nil {
			return err
		}
		return decoded(ctx, f, parquet.Arrow, false, yield)
	case Parquet:
		return decoded(ctx, f, parquet.Parquet, false, yield)
	}
	return texts(ctx, f, as, yield)
}

// errEnough ends the reading of a file of which no more is needed.
var errEnough = errors.New("enough")

// SchemaOf returns the first message of what Read yields, as streams have it.
func SchemaOf(ctx context.Context, f files.File, as Format) (raw []byte, err error) {
	take := func(m Message) error {
		raw = Append(nil, m)
		return errEnough
	}
	if as == Parquet {
		err = decoded(ctx, f, parquet.Parquet, true, take)
	} else {
		err = Read(ctx, f, as, take)
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	return raw, err
}

// decoded yields what a child process makes of a file: one schema, and then what its streams have beside theirs.
func decoded(ctx context.Context, f files.File, kind parquet.Kind, head bool, yield func(Message) error) error {
	began := false
	return parquet.ReadStream(ctx, kind, f, head, func(stream []byte) error {
		err := each(stream, func(m Message) error {
			if m.Kind == Schema && began {
				return nil
			}
			began = true
			return yield(m)
		})
		if errors.Is(err, errNoMessages) {
			err = fault.New(fault.BadInput, "read", f.Path, err)
		}
		return err
	})
}

// bodies are buffers of files' messages.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

// passOn yields the messages of an Arrow file as they are; plain is false where it has something else in between, or
// messages that are larger than may be passed on: a child process reads it then.
func passOn(ctx context.Context, f files.File, yield func(Message) error) (plain bool, err error) {
	if len(f.Keys) > 0 || objects.Is(f.Path) {
		return false, nil
	}
	h, err := f.Open()
	if err != nil {
		return false, err
	}
	defer h.Close()
	all, err := fileSpans(h, f.Size)
	if err != nil || len(all) == 0 {
		return false, nil // who decodes it finds out why
	}
	for p := range ahead(h, all) {
		switch {
		case ctx.Err() != nil:
			return true, ctx.Err()
		case p.err != nil:
			return true, fault.New(fault.NoResources, "read", f.Path, p.err)
		}
		raw := (*p.in)[:p.header+p.body]
		m, err := Described(raw[:p.header], raw[p.header:])
		if err != nil {
			return true, fault.New(fault.Corrupt, "read", f.Path, err)
		}
		m.Release = func() { bodies.Put(p.in) }
		if err := yield(m); err != nil {
			return true, err
		}
	}
	return true, nil
}

// piece is what a file has at a span, at the beginning of memory of bodies.
type piece struct {
	span
	in  *[]byte
	err error
}

// ahead yields what a file has at some spans, and reads the next while its caller is at one.
func ahead(h io.ReaderAt, all []span) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		read, done := make(chan piece), make(chan struct{})
		var reader sync.WaitGroup
		defer reader.Wait()
		defer close(done)
		reader.Go(func() {
			for _, s := range all {
				select {
				case read <- readAt(h, s):
				case <-done:
					return
				}
			}
		})
		for range all {
			if !yield(<-read) {
				return
			}
		}
	}
}

func readAt(h io.ReaderAt, s span) piece {
	p := piece{span: s, in: bodies.Get().(*[]byte)}
	n := s.header + s.body
	if int64(cap(*p.in)) < n {
		*p.in = make([]byte, n)
	}
	_, p.err = h.ReadAt((*p.in)[:n], s.at)
	return p
}

// fileSpans returns where the messages of an Arrow file or stream lie, whose end it has.
func fileSpans(h io.ReaderAt, size int64) ([]span, error) {
	head := make([]byte, len(fileMagic))
	if _, err := h.ReadAt(head, 0); err != nil {
		return nil, err
	}
	if string(head) == fileMagic {
		return spans(h, 8, size, mostBody)
	}
	return spans(h, 0, size, mostBody)
}
