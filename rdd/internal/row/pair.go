package row

import "fmt"

// Pair is a key with a value.
type Pair[K comparable, V any] struct {
	Key   K
	Value V
}

// textPair is what a Pair is as text.
type textPair interface{ tabbed() string }

func (p Pair[K, V]) tabbed() string { return TextLine(p.Key) + "\t" + TextLine(p.Value) }

// TextLine returns a row as a line of text: a string as it is, a Pair as key, tab and value, anything else as
// fmt prints it.
func TextLine(row any) string {
	switch r := row.(type) {
	case string:
		return r
	case []byte:
		return string(r)
	case textPair:
		return r.tabbed()
	}
	return fmt.Sprint(row)
}
