package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// A decoder takes the last of several keys that differ in case at most; other readers take
// another of them, or none. The meaning of a line must not depend on the reader.

// ownKeys are the parts of a line whose keys are the job's own, which may be of any case.
var ownKeys = map[string]bool{"args": true, "values": true}

// plainKeys returns an error where a key of a line is not spelt as it is documented, or is
// there twice. The line is JSON: only where its strings and brackets are is looked at.
func plainKeys(raw []byte, event string) error {
	open, isKey := []keyLevel{{of: event}}, false
	for at := 0; at < len(raw); at++ {
		now := &open[len(open)-1]
		switch raw[at] {
		case '{', '[':
			isKey = raw[at] == '{'
			open = append(open, now.below(isKey))
		case '}', ']':
			open, isKey = open[:len(open)-1], false
		case ',':
			isKey = now.object
		case ':':
			isKey = false
		case '"':
			end := endOfText(raw, at)
			if isKey {
				if err := now.take(raw[at:end]); err != nil {
					return err
				}
			}
			at = end - 1
		}
	}
	return nil
}

// keyLevel is an object, or a list, that a reader is in.
type keyLevel struct {
	of     string // the key that it is of
	own    bool   // its keys are the job's own
	object bool
	key    string   // the last one
	few    []string // that were seen before it
	many   map[string]bool
}

// fewKeys is up to how many keys are compared one by one.
const fewKeys = 32

// below returns what begins within it.
func (l *keyLevel) below(object bool) keyLevel {
	if l.object {
		return keyLevel{of: l.key, own: l.own || ownKeys[l.key], object: object}
	}
	return keyLevel{of: l.of, own: l.own, object: object}
}

// take takes a key, with its quotes.
func (l *keyLevel) take(quoted []byte) error {
	if plain(quoted) {
		l.key = string(quoted[1 : len(quoted)-1])
	} else if err := json.Unmarshal(quoted, &l.key); err != nil {
		return err
	}
	if slices.Contains(l.few, l.key) || l.many[l.key] {
		return fmt.Errorf("%s has the key %q twice", l.of, l.key)
	}
	if !l.own && !documented(l.key) {
		return fmt.Errorf("unknown key %[2]q in %[1]s", l.of, l.key)
	}
	switch {
	case len(l.few) < fewKeys:
		l.few = append(l.few, l.key)
	case l.many == nil:
		l.many = map[string]bool{l.key: true}
	default:
		l.many[l.key] = true
	}
	return nil
}

// documented reports whether a key may be one that is documented: a decoder takes some letters of other alphabets for
// those of this one, too.
func documented(key string) bool {
	return key == strings.ToLower(key) && strings.IndexFunc(key, func(c rune) bool { return c > unicode.MaxASCII }) < 0
}

// plain reports whether a text stands for itself.
func plain(quoted []byte) bool {
	return !slices.ContainsFunc(quoted, func(c byte) bool { return c < ' ' || c > '~' || c == '\\' })
}

// endOfText returns where a string has ended that begins at a place.
func endOfText(raw []byte, at int) int {
	for at++; at < len(raw); at++ {
		switch raw[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(raw)
}
