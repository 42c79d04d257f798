package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// noteField is the number of ToDriver.note.
const noteField protowire.Number = 7

// NoteOf returns the note that an encoded ToDriver is; nil where it is anything else, which is not decoded.
func NoteOf(raw []byte) *Note {
	num, _, _ := protowire.ConsumeTag(raw)
	m := &ToDriver{}
	if num != noteField || proto.Unmarshal(raw, m) != nil {
		return nil
	}
	return m.GetNote()
}
