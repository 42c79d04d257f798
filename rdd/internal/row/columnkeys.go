package row

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/files"
)

// Keyed returns the columns that are in a file, and a function that sets the others of rows: those that the file's
// directories have. It is nil where there are none.
func (c *Columns[T]) Keyed(f files.File) (inFile *Columns[T], set func(rows []T), err error) {
	inFile, set, err = c.Split(f)
	if err == nil && len(inFile.fields) == 0 {
		err = fault.Newf(fault.BadInput, "read", f.Path, "all columns of the rows are names of its directories").
			WithHint("give the rows a column of the files, too")
	}
	return inFile, set, err
}

// Split does what Keyed does, where all columns may be those of directories.
func (c *Columns[T]) Split(f files.File) (inFile *Columns[T], set func(rows []T), err error) {
	if len(f.Keys) == 0 {
		return c, nil, nil
	}
	inFile = &Columns[T]{}
	var from T // has the columns of the directories
	var fields []column
	for _, field := range c.fields {
		key := keyNamed(f.Keys, field.name)
		if key == nil {
			inFile.fields = append(inFile.fields, field)
			continue
		}
		fields = append(fields, field)
		if err := field.setKey(key, unsafe.Add(unsafe.Pointer(&from), field.offset)); err != nil {
			return nil, nil, fault.New(fault.BadInput, "read", f.Path, err)
		}
	}
	if len(fields) == 0 {
		return c, nil, nil
	}
	inFile.schema = arrow.NewSchema(arrowFields(inFile.fields), nil)
	return inFile, func(rows []T) {
		for i := range rows {
			for _, field := range fields {
				to := reflect.NewAt(field.typ, unsafe.Add(unsafe.Pointer(&rows[i]), field.offset)).Elem()
				to.Set(reflect.NewAt(field.typ, unsafe.Add(unsafe.Pointer(&from), field.offset)).Elem())
			}
		}
	}, nil
}

// KeysOnly returns a row that has the columns of a file's directories, and no other.
func (c *Columns[T]) KeysOnly(f files.File) (row T, err error) {
	named := false
	for _, field := range c.fields {
		if key := keyNamed(f.Keys, field.name); key != nil && err == nil {
			named = true
			if err = field.setKey(key, unsafe.Add(unsafe.Pointer(&row), field.offset)); err != nil {
				err = fault.New(fault.BadInput, "read", f.Path, err)
			}
		}
	}
	if err == nil && !named {
		err = fault.Newf(fault.BadInput, "read", f.Path,
			"its directories have no column of the rows, as country=DE is one")
	}
	return row, err
}

func keyNamed(keys []files.Key, name string) *files.Key {
	for i := range keys {
		if strings.EqualFold(keys[i].Name, name) {
			return &keys[i]
		}
	}
	return nil
}

// setKey sets a field to the value of a directory.
func (f *column) setKey(k *files.Key, p unsafe.Pointer) error {
	switch {
	case f.parse == nil:
		return fmt.Errorf("column %q cannot be the name of a directory", f.name)
	case k.Null && f.null:
		f.clear(p)
		return nil
	case k.Null && f.text:
		return nil // an empty text is written as a null is
	case k.Null:
		return fmt.Errorf("column %q: %w", f.name, errIsNull)
	}
	if err := f.parse([]byte(k.Value), p, &Arena{}); err != nil {
		return fmt.Errorf("column %q: the directory's %q: %w", f.name, k.Value, err)
	}
	return nil
}

// Keys returns the columns that are in a file if some of them are its directories' names, and a function that returns
// these of a row.
func (c *Columns[T]) Keys(names []string) (inFile *Columns[T], of func(row *T) ([]files.Key, error), err error) {
	inFile = &Columns[T]{}
	at := make([]*column, len(names))
	for i := range c.fields {
		f := &c.fields[i]
		k := indexOf(names, f.name)
		if k < 0 {
			inFile.fields = append(inFile.fields, *f)
			continue
		}
		if indexOf(names[k+1:], f.name) >= 0 {
			return nil, nil, fmt.Errorf("column %q is named twice", f.name)
		}
		if at[k] = f; f.print == nil {
			return nil, nil, fmt.Errorf("column %q cannot be the name of a directory", f.name)
		}
	}
	for k, f := range at {
		if f == nil {
			return nil, nil, fmt.Errorf("there is no column %q; the columns are %s", names[k],
				strings.Join(c.Names(), " "))
		}
	}
	if len(inFile.fields) == 0 {
		return nil, nil, fmt.Errorf("all columns are names of directories: none is left for the files")
	}
	inFile.schema = arrow.NewSchema(arrowFields(inFile.fields), nil)
	return inFile, func(row *T) ([]files.Key, error) {
		keys := make([]files.Key, len(at))
		for i, f := range at {
			p := unsafe.Add(unsafe.Pointer(row), f.offset)
			keys[i] = files.Key{Name: f.name, Null: f.null && f.at(p) == nil}
			if keys[i].Null {
				continue
			}
			if keys[i].Value = string(f.print(nil, p)); keys[i].Value != "" {
				continue
			}
			if keys[i].Null = true; f.null {
				return nil, fmt.Errorf("column %q is an empty text, which a directory's name cannot tell from a null",
					f.name)
			}
		}
		return keys, nil
	}, nil
}

func indexOf(names []string, name string) int {
	for i, n := range names {
		if strings.EqualFold(n, name) {
			return i
		}
	}
	return -1
}
