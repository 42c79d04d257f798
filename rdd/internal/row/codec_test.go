package row

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type inside struct {
	Name string
	Tags []string
	Next *int32
}

type outer struct {
	B    bool
	I    int
	U8   uint8
	I16  int16
	F32  float32
	F    float64
	S    string
	Raw  []byte
	At   time.Time
	In   inside
	Ins  []inside
	Arr  [3]int64
	Some *inside
	P    Pair[string, []float64]
}

func drawInner(t *rapid.T, label string) inside {
	in := inside{Name: rapid.String().Draw(t, label)}
	if rapid.Bool().Draw(t, label+" tags") {
		in.Tags = rapid.SliceOfN(rapid.String(), 0, 4).Draw(t, label+" list")
	}
	if rapid.Bool().Draw(t, label+" next") {
		n := rapid.Int32().Draw(t, label+" number")
		in.Next = &n
	}
	return in
}

// TestRowsComeBackAsTheyWere: what is written is read again, whatever follows
// it, and equal rows have equal bytes.
func TestRowsComeBackAsTheyWere(t *testing.T) {
	c, err := CodecOf[outer]()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		row := outer{B: rapid.Bool().Draw(t, "b"), I: rapid.Int().Draw(t, "i"), U8: rapid.Uint8().Draw(t, "u8"),
			I16: rapid.Int16().Draw(t, "i16"),
			F32: rapid.Float32().Draw(t, "f32"), F: rapid.Float64().Draw(t, "f"), S: rapid.String().Draw(t, "s"),
			At: time.Unix(rapid.Int64Range(-1e11, 1e11).Draw(t, "at"),
				rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC(),
			In: drawInner(t, "in"), P: Pair[string, []float64]{Key: "k",
				Value: rapid.SliceOf(rapid.Float64()).Draw(t, "p")}}
		if rapid.Bool().Draw(t, "raw") {
			row.Raw = rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		}
		for range rapid.IntRange(0, 3).Draw(t, "ins") {
			row.Ins = append(row.Ins, drawInner(t, "ins"))
		}
		if rapid.Bool().Draw(t, "some") {
			in := drawInner(t, "some")
			row.Some = &in
		}
		raw := c.Append([]byte("before"), &row)
		var back outer
		rest, err := c.Parse(append(raw[6:], "after"...), &back, &Arena{})
		if err != nil || string(rest) != "after" || !reflect.DeepEqual(row, back) {
			t.Fatalf("%+v\n%+v\n%q %v", row, back, rest, err)
		}
		if again := c.Append(nil, &back); !bytes.Equal(again, raw[6:]) {
			t.Fatal("equal rows have other bytes")
		}
		cut := rapid.IntRange(0, len(raw)-7).Draw(t, "cut")
		if _, err := c.Parse(raw[6:6+cut], &outer{}, &Arena{}); err == nil {
			t.Fatalf("a row cut off at %d of %d bytes is taken", cut, len(raw)-6)
		}
	})
}

func TestSpecialNumbersKeepTheirBits(t *testing.T) {
	c, err := CodecOf[float64]()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []float64{math.NaN(), math.Inf(-1), math.Copysign(0, -1), math.SmallestNonzeroFloat64} {
		var back float64
		if _, err := c.Parse(c.Append(nil, &v), &back, &Arena{}); err != nil ||
			math.Float64bits(back) != math.Float64bits(v) {
			t.Errorf("%v comes back as %v", v, back)
		}
	}
}

// TestWhatCannotBeARow is refused, by the name of the field.
func TestWhatCannotBeARow(t *testing.T) {
	type list struct{ Next *list }
	for name, try := range map[string]func() error{
		"map":       func() error { _, err := CodecOf[struct{ In struct{ M map[string]any } }](); return err },
		"func":      func() error { _, err := CodecOf[func()](); return err },
		"chan":      func() error { _, err := CodecOf[[]chan int](); return err },
		"mutex":     func() error { _, err := CodecOf[struct{ mu sync.Mutex }](); return err },
		"itself":    func() error { _, err := CodecOf[list](); return err },
		"interface": func() error { _, err := CodecOf[Pair[string, any]](); return err },
	} {
		if err := try(); err == nil {
			t.Errorf("%s is taken", name)
		} else if name == "map" && !strings.Contains(err.Error(), ".In.M") {
			t.Errorf("%v does not name the field", err)
		}
	}
}

// FuzzRows: whatever is read as a row, nothing is read or allocated beyond it.
func FuzzRows(f *testing.F) {
	c, err := CodecOf[outer]()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(c.Append(nil, &outer{S: "x", Ins: []inside{{Name: "y", Tags: []string{"z"}}}}))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		var row outer
		_, _ = c.Parse(raw, &row, &Arena{})
	})
}

// TestListsOfNumbersShareMemory, and none reaches into another's.
func TestListsOfNumbersShareMemory(t *testing.T) {
	c, err := CodecOf[[]int16]()
	if err != nil {
		t.Fatal(err)
	}
	var raw []byte
	var want [][]int16
	for n := range 3000 {
		list := make([]int16, n%70)
		for i := range list {
			list[i] = int16(n + i)
		}
		want = append(want, list)
		raw = c.Append(raw, &list)
	}
	got, err := c.ParseAll(raw, nil, &Arena{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		_ = append(got[i], -1)
	}
	for i, list := range got {
		if list == nil || !slices.Equal(list, want[i]) {
			t.Fatalf("list %d is %v, want %v", i, list, want[i])
		}
	}
}
