package disk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

// Seal returns a text with a last line that is the digest of what is before it, so that a torn or damaged file is
// noticed. The text must end in a line feed.
func Seal(text []byte) []byte {
	sum := sha256.Sum256(text)
	return append(hex.AppendEncode(text, sum[:]), '\n')
}

// Unseal returns the text of what Seal returns, and reports whether it is whole.
func Unseal(raw []byte) (text []byte, whole bool) {
	body := bytes.TrimSuffix(raw, []byte{'\n'})
	at := bytes.LastIndexByte(body, '\n') + 1
	sum := sha256.Sum256(body[:at])
	return body[:at], at > 0 && string(body[at:]) == hex.EncodeToString(sum[:])
}
