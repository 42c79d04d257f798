package wire

import "google.golang.org/protobuf/encoding/protowire"

// Numbers of fields that those look for who only carry messages.
const (
	HoldingField   protowire.Number = 3 // ToDriver.holding
	ResultField    protowire.Number = 5 // ToDriver.result
	FoldedField    protowire.Number = 7 // ToDriver.folded
	PartsField     protowire.Number = 4 // Result.parts
	StartStepField protowire.Number = 3 // ToExecutor.start_step
)

// Outer is the number of the field that an encoded message begins with, which
// of a message that is one of several tells which, and what is in it. Those
// who only carry messages need not decode them for that.
func Outer(raw []byte) (protowire.Number, []byte) {
	num, typ, n := protowire.ConsumeTag(raw)
	if n < 0 || typ != protowire.BytesType {
		return 0, nil
	}
	body, m := protowire.ConsumeBytes(raw[n:])
	if m < 0 {
		return 0, nil
	}
	return num, body
}

// Without is an encoded message without one of its fields, such as its bulk.
func Without(raw []byte, field protowire.Number) []byte {
	var out []byte
	for len(raw) > 0 {
		num, _, n := protowire.ConsumeField(raw)
		if n < 0 {
			return nil
		}
		if num != field {
			out = append(out, raw[:n]...)
		}
		raw = raw[n:]
	}
	return out
}
