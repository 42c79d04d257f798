package csv

import (
	"bytes"
	"testing"
)

// fuzzOptions are the options that some bits say.
func fuzzOptions(bits uint16) csvOptions {
	pick := func(shift, n int) int { return int(bits>>shift) % n }
	header := bits>>8&1 == 1
	return csvOptions{Separator: ",;\t|"[pick(0, 4):][:1], Quote: "\"'"[pick(2, 2):][:1],
		Escape:  []string{"", "\\"}[pick(3, 2)],
		Comment: []string{"", "#"}[pick(4, 2)], Null: []string{"", "NA", "\\N"}[pick(5, 4)%3], NoQuotes: bits>>7&1 == 1,
		Header: &header}
}

// FuzzCSV reports whether any bytes are read as the law has it, as a whole and in parts:
// the same records, with the numbers of their lines, and as many malformed ones.
func FuzzCSV(f *testing.F) {
	for _, s := range []string{"1,2\n3,4\n", "#a;b\n1;2\n", "\"x\",\"y\"\n\"1\",\"2\"\n",
		"a,b\r\n\"1\n\"\"2\",3\r\n\r\n#\n", "a,b\r\"1\r2\",\r",
		"\xef\xbb\xbfa,b\n \"x\" ,NA\n1\n\"2\"x,3\n\"", "a\t\n\\N\t\"\\\"\n\\\\\"\n", "'a,\n',1\n2,'it''s'",
		"\r\n\n a,b\n,\n"} {
		for _, bits := range []uint16{0, 1 << 8, 2, 1<<3 | 2<<5, 1<<8 | 1<<4 | 1<<5, 1 << 2, 1 << 7} {
			f.Add([]byte(s), bits, uint16(3))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, bits, size uint16) {
		o := fuzzOptions(bits)
		names, good, bad := newLaw(raw, o).read(*o.Header)
		if len(bytes.Trim(raw, "# \t")) == 0 { // a header of nothing: the file is empty
			return
		}
		if len(raw) > 1<<16 || startsMalformed(good, bad, len(names)) {
			return // what a header or a first record has that is malformed decides how many fields there are
		}
		o.Malformed = "drop"
		path := tableFile(t, raw)
		for _, ends := range [][]int64{nil, {int64(size)}, every(max(1, int(size), len(raw)/300), len(raw))} {
			got := readCSV(path, o, ends...)
			if nothing := len(names)+len(good)+len(bad) == 0; nothing != (got.refused != nil) || got.err != nil {
				t.Fatalf("%q %+v to %v: %v %v, want %v", raw, o, ends, got.refused, got.err, good)
			}
			if diff := unlike(got.records, good); diff != "" || got.malformed != int64(len(bad)) {
				t.Fatalf("%q %+v to %v: %s; %d malformed, want %v", raw, o, ends, diff, got.malformed, bad)
			}
		}
	})
}

// startsMalformed reports whether the first record, a header or not, is a malformed one.
func startsMalformed(good []csvRecord, bad []csvBad, names int) bool {
	return names == 0 && len(bad) > 0 && (len(good) == 0 || bad[0].Line <= good[0].line)
}
