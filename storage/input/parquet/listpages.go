package parquet

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/apache/arrow/go/v15/parquet/file"

	"github.com/volley-engine/volley/internal/raw"
)

// listPages reads a column of lists of numbers page by page, where pages hold the
// numbers as they are: levels are looked at run by run.
type listPages struct {
	pages *plainPages
	size  int    // of a number, in bytes
	def   int    // level of a number that is there
	data  []byte // numbers of the page that are left
	width int    // of every list
	place int    // of the number after the page in its list
	bad   int    // where the first page has an error
	wrong error
}

// listPages opens a column of lists in a row group; nil where it is not of this kind, or
// where the first page does not say how long lists are. An error in that page is
// reported when it is read.
func (f *flatFile) listPages(group, column int) (*listPages, error) {
	descr := f.r.MetaData().Schema.Column(column)
	size := valueSize(descr.PhysicalType())
	pages, err := f.plainPages(group, column)
	if err != nil || pages == nil || size == 0 || descr.MaxRepetitionLevel() != 1 {
		return nil, err
	}
	l := &listPages{pages: pages, size: size, def: int(descr.MaxDefinitionLevel())}
	if more, err := pages.next(); err != nil || !more {
		return nil, err
	}
	rep, _, _, err := l.parts()
	if err != nil {
		return nil, nil
	}
	if l.width = firstList(rep, int(pages.Page().NumValues())); l.width == 0 {
		return nil, nil
	}
	l.bad, l.wrong = l.look()
	return l, nil
}

func (l *listPages) begin() (width, at int, err error) { return l.width, 0, nil }

// more reports whether numbers are left.
func (l *listPages) more() (bool, error) {
	for len(l.data) == 0 {
		if more, err := l.pages.next(); err != nil || !more {
			return false, err
		}
		if _, err := l.look(); err != nil {
			return false, err
		}
	}
	return true, nil
}

// firstList returns how long the first list of a page is; 0 where it does not end there.
func firstList(rep listLevels, n int) (width int) {
	at := 0
	_ = rep.each(n, func(level, times int) error {
		if level == 0 && at > 0 {
			width = at
		} else if level == 0 && times > 1 {
			width = 1
		}
		if at += times; width > 0 {
			return errEnough
		}
		return nil
	})
	return width
}

var errEnough = fmt.Errorf("enough")

// parts returns what a page consists of.
func (l *listPages) parts() (rep, def listLevels, data []byte, err error) {
	page := l.pages.Page()
	data = page.Data()
	switch page := page.(type) {
	case *file.DataPageV1:
		n := int(page.NumValues())
		if rep, data, err = levelsOf(page.RepetitionLevelEncoding(), 1, n, data); err == nil {
			def, data, err = levelsOf(page.DefinitionLevelEncoding(), l.def, n, data)
		}
	case *file.DataPageV2:
		r, d := int(page.RepetitionLevelByteLen()), int(page.DefinitionLevelByteLen())
		if r < 0 || d < 0 || r+d > len(data) {
			return rep, def, nil, errCutPage
		}
		rep, def = listLevels{raw: data[:r], width: 1}, listLevels{raw: data[r : r+d], width: bits.Len(uint(l.def))}
		data = data[r+d:]
	default:
		return rep, def, nil, fmt.Errorf("it has a page of values that are encoded, which its description denies")
	}
	return rep, def, data, err
}

// look checks the levels of a page, and makes its numbers those that come next; bad is
// how many numbers after the last one there is an error.
func (l *listPages) look() (bad int, err error) {
	rep, def, data, err := l.parts()
	if err != nil {
		return 0, err
	}
	n := int(l.pages.Page().NumValues())
	err = def.each(n, func(level, times int) error {
		if level != l.def {
			return fmt.Errorf("it has a null or an empty list,")
		}
		bad += times
		return nil
	})
	if err != nil {
		return l.listOf(rep, bad), err
	}
	if len(data) < n*l.size {
		return 0, errCutPage
	}
	l.data, bad = data[:n*l.size], 0
	err = rep.each(n, func(level, times int) error {
		err := l.advance(level, times)
		switch {
		case err == nil:
			bad += times
		case l.place == 0 && level == 1: // the list before is too long
			bad--
		}
		return err
	})
	return bad, err
}

// listOf returns how many numbers after the last one the list begins, if all before
// it are whole, that an entry of the page is of.
func (l *listPages) listOf(rep listLevels, entry int) int {
	begun := 0
	_ = rep.each(entry+1, func(level, times int) error {
		if level == 0 {
			begun += times
		}
		return nil
	})
	if l.place == 0 {
		begun--
	}
	return max(0, begun)*l.width - l.place
}

// advance takes in some numbers that continue lists (1), or begin one each (0).
func (l *listPages) advance(level, times int) error {
	if level > 1 {
		return l.unequal()
	}
	if level == 1 {
		if l.place == 0 || times > l.width-l.place {
			return l.unequal()
		}
		if l.place += times; l.place == l.width {
			l.place = 0
		}
		return nil
	}
	if l.place != 0 || times > 1 && l.width > 1 {
		return l.unequal()
	}
	if l.width > 1 {
		l.place = 1
	}
	return nil
}

func (l *listPages) unequal() error {
	return fmt.Errorf("it has not %d values, as the first row,", l.width)
}

// fill reads whole lists; at is the number before which there was an error.
func (l *listPages) fill(out []float64) (at int, err error) {
	if l.wrong != nil {
		return max(0, l.bad), l.wrong
	}
	for at < len(out) {
		if len(l.data) == 0 {
			if more, err := l.pages.next(); err != nil || !more {
				return at, cmp.Or(err, fmt.Errorf("the row group has fewer"))
			}
			if bad, err := l.look(); err != nil {
				return max(0, at+bad), err
			}
			continue
		}
		n := min(len(out)-at, len(l.data)/l.size)
		if l.size == 8 {
			copy(raw.Bytes(out[at:at+n]), l.data)
		} else {
			for i := range n {
				out[at+i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(l.data[4*i:])))
			}
		}
		at, l.data = at+n, l.data[n*l.size:]
	}
	return at, nil
}
