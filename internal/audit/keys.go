package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// A decoder takes the last of several keys that differ in case at most; other readers take
// another of them, or none. The meaning of a line must not depend on the reader.

// ownKeys are the parts of a line whose keys are the job's own, which may be of any case.
var ownKeys = map[string]bool{"args": true, "values": true}

// plainKeys returns an error where a key of a line is not spelt as it is documented, or is
// there twice.
func plainKeys(raw []byte, event string) error {
	k := keyReader{json.NewDecoder(bytes.NewReader(raw))}
	k.dec.UseNumber()
	return k.value(event, false)
}

type keyReader struct{ dec *json.Decoder }

// value reads a value, which is part of something.
func (k keyReader) value(of string, own bool) error {
	t, err := k.dec.Token()
	switch {
	case err != nil:
		return err
	case t == json.Delim('{'):
		return k.object(of, own)
	case t == json.Delim('['):
		return k.list(of, own)
	}
	return nil
}

func (k keyReader) list(of string, own bool) error {
	for k.dec.More() {
		if err := k.value(of, own); err != nil {
			return err
		}
	}
	_, err := k.dec.Token()
	return err
}

func (k keyReader) object(of string, own bool) error {
	seen := map[string]bool{}
	for k.dec.More() {
		t, err := k.dec.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		if seen[key] {
			return fmt.Errorf("%s has the key %q twice", of, key)
		}
		if !own && key != strings.ToLower(key) {
			return fmt.Errorf("unknown key %[2]q in %[1]s", of, key)
		}
		seen[key] = true
		if err := k.value(key, own || ownKeys[key]); err != nil {
			return err
		}
	}
	_, err := k.dec.Token()
	return err
}
