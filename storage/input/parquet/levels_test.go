package parquet

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
)

// bare returns levels as packed bits without runs, the most significant first.
func bare(width int, levels ...int) []byte {
	out := make([]byte, (len(levels)*width+7)/8)
	for i, level := range levels {
		for b := range width {
			k := i*width + b
			out[k/8] |= byte(level>>(width-1-b)&1) << (7 - k%8)
		}
	}
	return out
}

func TestLevelsWithoutRunsAreRead(t *testing.T) {
	want := []int{3, 3, 0, 1, 2, 2, 2, 3, 0, 0, 1}
	l, rest, err := levelsOf(parquet.Encodings.BitPacked, 3, len(want), append(bare(2, want...), 7, 8))
	if err != nil || !slices.Equal(rest, []byte{7, 8}) {
		t.Fatalf("%v, %v", rest, err)
	}
	var got []int
	_ = l.each(len(want), func(level, times int) error {
		got = append(got, slices.Repeat([]int{level}, times)...)
		return nil
	})
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, _, err := levelsOf(parquet.Encodings.BitPacked, 3, len(want), make([]byte, 2)); err == nil {
		t.Error("levels that are cut short are taken")
	}
	if _, _, err := levelsOf(parquet.Encodings.DeltaByteArray, 3, 1, make([]byte, 9)); err == nil {
		t.Error("levels of an unknown encoding are taken")
	}
}

// somePages is a reader of pages that are there.
type somePages struct {
	file.PageReader
	pages []file.Page
}

func (s *somePages) Next() bool {
	s.pages = s.pages[1:]
	return len(s.pages) > 0
}
func (s *somePages) Page() file.Page { return s.pages[0] }
func (s *somePages) Err() error      { return nil }

// TestPagesOfBothKindsOfLevelsAreRead: the first has runs, later ones have none, or have a null.
func TestPagesOfBothKindsOfLevelsAreRead(t *testing.T) {
	numbers := func(head []byte, n int) []byte {
		for i := range n {
			head = binary.LittleEndian.AppendUint64(head, math.Float64bits(float64(i)))
		}
		return head
	}
	page := func(kind parquet.Encoding, head []byte) file.Page {
		raw := numbers(head, 4)
		return file.NewDataPageV1(memory.NewBufferBytes(raw), 4, parquet.Encodings.Plain, kind, kind, int32(len(raw)))
	}
	first := page(parquet.Encodings.RLE, []byte{2, 0, 0, 0, 3, 0b1010, 2, 0, 0, 0, 8, 3})
	whole := page(parquet.Encodings.BitPacked, append(bare(1, 0, 1, 0, 1), bare(2, 3, 3, 3, 3)...))
	null := page(parquet.Encodings.BitPacked, append(bare(1, 0, 1, 0, 1), bare(2, 3, 3, 3, 2)...))
	for name, want := range map[string]struct {
		second file.Page
		sound  bool
	}{"whole": {whole, true}, "null": {null, false}} {
		reader := &somePages{pages: []file.Page{nil, first, want.second}}
		pages := &plainPages{PageReader: reader, stream: &soundStream{}, room: &pageMemory{}}
		l := &listPages{pages: pages, size: 8, def: 3, width: 2}
		out := make([]float64, 8)
		n, err := l.fill(out)
		if (err == nil) != want.sound || want.sound && !slices.Equal(out, []float64{0, 1, 2, 3, 0, 1, 2, 3}) {
			t.Errorf("%s: %v, %d, %v", name, out, n, err)
		}
	}
}
