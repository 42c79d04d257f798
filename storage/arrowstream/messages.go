package arrowstream

import (
	"encoding/binary"
	"errors"
	"io"

	flatbuffers "github.com/google/flatbuffers/go"
)

// Kind is what a message has, as Arrow's format numbers them.
type Kind byte

// The kinds of messages that streams of tables have.
const (
	Schema     Kind = 1
	Dictionary Kind = 2
	Records    Kind = 3
)

// Message is one of an Arrow IPC stream.
type Message struct {
	Kind   Kind
	Rows   int64  // of Records
	Header []byte // the flatbuffer that describes it
	Body   []byte
	// Release gives the memory of Header and Body back once they are needed no more; nil where that is of no pool. Who
	// does not call it leaves that to the garbage collector.
	Release func()
}

// Bounds of what is taken for a message of a stream that may be damaged.
const (
	mostHeader = 16 << 20
	mostBody   = 16 << 20 // a larger one is cut by the child process
	mostOfCut  = 1 << 30  // of what that sends: a value alone may be larger than that
)

var errNoMessages = errors.New("it is not what an Arrow stream consists of")

// span is where a message lies.
type span struct{ at, header, body int64 }

// spans returns where the messages of a stream lie that begins at an offset and ends at another, or before, and whose
// bodies are no larger than most.
func spans(r io.ReaderAt, at, end, most int64) (all []span, err error) {
	var head []byte
	for {
		s, err := spanAt(r, at, end)
		if err != nil || s.header == 0 {
			return all, err
		}
		head = append(head[:0], make([]byte, s.header)...)
		if _, err := r.ReadAt(head, s.at); err != nil {
			return nil, err
		}
		m, body, err := described(head)
		within := body >= 0 && body <= most && body <= end-s.at-s.header
		if err != nil || !within || (m.Kind == Schema) != (len(all) == 0) {
			return nil, errNoMessages
		}
		s.body = body
		all = append(all, s)
		at = s.at + s.header + s.body
	}
}

// spanAt returns where the description of the message at an offset lies; of no length where the stream ends.
func spanAt(r io.ReaderAt, at, end int64) (s span, err error) {
	var prefix [8]byte
	if end-at < int64(len(prefix)) {
		return span{}, nil
	}
	if _, err := r.ReadAt(prefix[:], at); err != nil {
		return span{}, err
	}
	s = span{at: at + 8, header: int64(binary.LittleEndian.Uint32(prefix[4:]))}
	if binary.LittleEndian.Uint32(prefix[:]) != continuation || s.header > mostHeader || s.header > end-s.at {
		return span{}, errNoMessages
	}
	return s, nil
}

// continuation begins each message.
const continuation = 0xffffffff

// described returns a message as its description has it, and the length of its body.
func described(header []byte) (m Message, body int64, err error) {
	defer func() {
		if recover() != nil { // the accessors panic on offsets out of range
			err = errNoMessages
		}
	}()
	t := &flatbuffers.Table{Bytes: header, Pos: flatbuffers.GetUOffsetT(header)}
	m = Message{Kind: Kind(t.GetByteSlot(6, 0)), Header: header}
	body = t.GetInt64Slot(10, 0)
	switch m.Kind {
	case Schema:
		if body != 0 {
			return m, 0, errNoMessages
		}
	case Records:
		var records flatbuffers.Table
		t.Union(&records, flatbuffers.UOffsetT(t.Offset(8)))
		m.Rows = records.GetInt64Slot(4, 0)
	case Dictionary:
	default:
		return m, 0, errNoMessages
	}
	return m, body, nil
}

// Described returns a message that has come as two parts.
func Described(header, body []byte) (Message, error) {
	m, size, err := described(header)
	if err == nil && (size != int64(len(body)) || m.Rows < 0) {
		err = errNoMessages
	}
	m.Body = body
	return m, err
}

// each yields the messages of a stream in memory.
func each(raw []byte, yield func(Message) error) error {
	all, err := spans(inMemory(raw), 0, int64(len(raw)), mostOfCut)
	if err != nil {
		return err
	}
	for _, s := range all {
		m, _, err := described(raw[s.at : s.at+s.header])
		if err != nil {
			return err
		}
		m.Body = raw[s.at+s.header : s.at+s.header+s.body]
		if err := yield(m); err != nil {
			return err
		}
	}
	return nil
}

// inMemory reads bytes.
type inMemory []byte

// ReadAt copies bytes.
func (b inMemory) ReadAt(p []byte, at int64) (int, error) {
	n := copy(p, b[min(at, int64(len(b))):])
	if n < len(p) {
		return n, io.ErrUnexpectedEOF
	}
	return n, nil
}

// Append appends a message as streams and files have it.
func Append(to []byte, m Message) []byte {
	to = appendHeader(to, m.Header)
	return append(to, m.Body...)
}

// appendHeader appends the description of a message, whose end is at a multiple of eight bytes.
func appendHeader(to, header []byte) []byte {
	padding := -len(header) & 7
	to = binary.LittleEndian.AppendUint32(to, continuation)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(header)+padding))
	return append(append(to, header...), make([]byte, padding)...)
}
