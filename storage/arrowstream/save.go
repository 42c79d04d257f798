package arrowstream

import (
	"context"
	"encoding/binary"
	"io"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/input/parquet"
	"github.com/volley-engine/volley/storage/saved"
)

// partBytes is how many bytes a part of what is saved has, about: parts are read side by side.
const partBytes = 128 << 20

// Save saves the messages that next returns, until io.EOF, as a dataset in a directory of its own: Arrow streams as
// they have come. Each part is read again, by a child process, before any appears: what readers would not read, or have
// fewer rows of, is refused, and so is another number of rows than was announced; −1 announces none. moved is called
// whenever some of it has come, or was read.
func Save(ctx context.Context, dir string, o saved.Options, announced int64, next func() (Message, error),
	moved func()) (rows int64, err error) {
	o.Durable = true
	place := saved.At(dir)
	if err := place.Stage("", o); err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			_ = place.Drop("") // why it is given up is more important
		}
	}()
	s := &saving{ctx: ctx, dir: dir, place: place, moved: moved}
	defer s.giveUp()
	for {
		m, err := next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = s.add(m)
		}
		if err != nil {
			return 0, err
		}
		moved()
	}
	if err := s.end(); err != nil {
		return 0, err
	}
	if s.all != announced && announced >= 0 {
		return 0, fault.Newf(fault.BadInput, "save to", dir, "%d rows have come, and %d were "+
			"announced", s.all, announced)
	}
	if err := ctx.Err(); err != nil {
		return 0, err // who has sent it is told that it is not saved
	}
	Slow(moved, func() { rows, err = place.Commit("", s.parts, o) })
	return rows, err
}

// slowly is how often what takes long is said to move.
const slowly = time.Second

// Slow carries out what says nothing of how far it is, and calls moved meanwhile.
func Slow(moved func(), do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	beat := time.NewTicker(slowly)
	defer beat.Stop()
	for {
		select {
		case <-done:
			return
		case <-beat.C:
			moved()
		}
	}
}

// saving is a save that goes on.
type saving struct {
	ctx    context.Context
	dir    string
	place  saved.Place
	moved  func()
	schema []byte // as streams have it
	whole  bool   // parts have dictionaries that others would lack: there is one only
	file   saved.File
	size   int64
	rows   int64 // of the part
	all    int64 // of all parts
	parts  [][]saved.Part
}

// add writes a message.
func (s *saving) add(m Message) error {
	switch {
	case s.schema == nil && m.Kind == Schema:
		s.schema = Append(nil, m)
		return s.begin()
	case s.schema == nil || m.Kind == Schema:
		return fault.Newf(fault.BadInput, "save to", s.dir, "a schema comes first, and once")
	case m.Kind == Dictionary:
		s.whole = true
	case s.size >= partBytes && !s.whole:
		if err := s.end(); err != nil {
			return err
		}
		if err := s.begin(); err != nil {
			return err
		}
	}
	s.rows, s.all = s.rows+m.Rows, s.all+m.Rows
	if err := s.write(appendHeader(nil, m.Header)); err != nil {
		return err
	}
	return s.write(m.Body)
}

// begin begins a part.
func (s *saving) begin() (err error) {
	if s.file, err = s.place.Parts(s.ctx, len(s.parts), 0).Create(""); err != nil {
		return err
	}
	s.size, s.rows = 0, 0
	return s.write(s.schema)
}

func (s *saving) write(p []byte) error {
	n, err := s.file.Write(p)
	s.size += int64(n)
	return saved.Error(s.dir, err)
}

// end ends a part, if there is one, and reads it again.
func (s *saving) end() error {
	if s.file == nil {
		return fault.Newf(fault.BadInput, "save to", s.dir, "nothing has come, not even a schema")
	}
	if err := s.write(binary.LittleEndian.AppendUint64(nil, continuation)); err != nil { // the stream's end
		return err
	}
	path := s.file.Name()
	var name string
	var err error
	Slow(s.moved, func() { name, err = s.file.Keep(true) })
	s.file = nil
	if err != nil {
		return saved.Error(s.dir, err)
	}
	s.parts = append(s.parts, []saved.Part{{Name: name, Rows: s.rows, Size: s.size}})
	return s.readAgain(path)
}

// readAgain refuses a part of which readers would not have all rows.
func (s *saving) readAgain(path string) error {
	found, err := files.Resolve(path)
	if err != nil {
		return err
	}
	var rows int64
	err = decoded(s.ctx, found[0], parquet.Arrow, false, func(m Message) error {
		rows += m.Rows
		s.moved()
		return nil
	})
	if err == nil && rows != s.rows {
		err = fault.Newf(fault.BadInput, "read", path, "it has %d rows, and its messages %d", rows, s.rows)
	}
	if err != nil {
		return fault.Newf(fault.BadInput, "save to", s.dir, "what has come cannot be read: %v", err)
	}
	return nil
}

// giveUp removes a part that was not ended.
func (s *saving) giveUp() {
	if s.file != nil {
		s.file.Drop()
	}
}
