package files

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/volley-engine/volley/internal/fault"
)

// Key is a column that a directory's name has for all files below it: country=DE. A null is written as nullName.
type Key struct {
	Name, Value string
	Null        bool
}

// nullName is the value of a directory for null, as Hive and Spark write it.
const nullName = "__HIVE_DEFAULT_PARTITION__"

// KeyDir returns the name of a directory for a key.
func KeyDir(k Key) string {
	if k.Null {
		return escaped(k.Name) + "=" + nullName
	}
	value := escaped(k.Value)
	if value == nullName {
		value = "%5F" + value[1:]
	}
	return escaped(k.Name) + "=" + value
}

// MarshalText returns the name of the key's directory: values need not be UTF-8, which JSON has alone.
func (k Key) MarshalText() ([]byte, error) { return []byte(KeyDir(k)), nil }

// UnmarshalText reads the name of a directory.
func (k *Key) UnmarshalText(raw []byte) error {
	keys := keysOf(string(raw) + "/part")
	if len(keys) != 1 {
		return fmt.Errorf("%q is not the name of a column's directory", raw)
	}
	*k = keys[0]
	return nil
}

// escaped writes as %XX what has a meaning of its own in a path, or in such a name.
func escaped(s string) string {
	var out strings.Builder
	plain := utf8.ValidString(s)
	for _, c := range []byte(s) {
		odd := c < ' ' || c == 0x7f || strings.IndexByte(`"#%'*/:=?\{}[]^`, c) >= 0 // in a path, or such a name
		if odd || c >= utf8.RuneSelf && !plain || c == '.' && out.Len() == 0 {
			const hex = "0123456789ABCDEF"
			out.WriteString("%" + string(hex[c>>4]) + string(hex[c&15]))
			continue
		}
		out.WriteByte(c)
	}
	return out.String()
}

// keysOf returns the keys that the directories of a path below another have.
func keysOf(rel string) (keys []Key) {
	dir := filepath.ToSlash(filepath.Dir(rel))
	for name := range strings.SplitSeq(dir, "/") {
		k, v, ok := strings.Cut(name, "=")
		key, kerr := url.PathUnescape(k)
		value, verr := url.PathUnescape(v)
		if !ok || k == "" || kerr != nil || verr != nil {
			continue
		}
		if v == nullName {
			keys = append(keys, Key{Name: key, Null: true})
		} else {
			keys = append(keys, Key{Name: key, Value: value})
		}
	}
	return keys
}

// SameKeys checks that the directories of all files have the same columns.
func SameKeys(files []File) error {
	names := func(f File) (out string) {
		for _, k := range f.Keys {
			out += k.Name + "="
		}
		return out
	}
	for _, f := range files[min(1, len(files)):] {
		if names(f) != names(files[0]) {
			return fault.Newf(fault.BadInput, "open", f.Path, "its directories have the columns %q, those of %s %q",
				names(f), files[0].Path, names(files[0])).WithHint("read the directories one by one")
		}
	}
	return nil
}
