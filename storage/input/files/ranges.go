package files

import "github.com/volley-engine/volley/storage/objects"

// Range is a part of a file: the lines that begin in [Offset, Offset+Length).
// A compressed file has one range, whose length is the compressed size.
type Range struct {
	File   File  `json:"file"`
	Offset int64 `json:"offset"`
	Length int64 `json:"length"`
	Exact  bool  `json:"exact,omitempty"` // a record of a table begins at Offset, and another where the range ends
	Skip   int64 `json:"skip,omitempty"`  // where the file's first row begins, after a header
	Row    int64 `json:"row,omitempty"`   // number of the first row, where the file says how many its parts have
}

// Ranges cuts files into ranges of about size bytes, compressed files excepted.
func Ranges(files []File, size int64) ([]Range, error) {
	var out []Range
	for _, f := range files {
		whole, err := f.undivided(size)
		if err != nil {
			return nil, err
		}
		if whole {
			out = append(out, Range{File: f, Length: f.Size})
			continue
		}
		for off := int64(0); off < f.Size; off += size {
			out = append(out, Range{File: f, Offset: off, Length: min(size, f.Size-off)})
		}
	}
	return out, nil
}

// undivided reports whether a file is read from its beginning to its end, by one reader. A small object is not asked
// for.
func (f File) undivided(size int64) (bool, error) {
	if f.Whole || f.Size <= size && objects.Is(f.Path) {
		return true, nil
	}
	packed, err := sniffCompression(f.Path)
	return packed != plain || f.Size <= size, err
}

// fewParts is about how many parts of little data there are to share out.
const fewParts = 12

// PartSize returns how much of files one part holds: of little data less, so that
// there are about fewParts, but never less than least, nor more than most.
func PartSize(total, least, most int64) int64 { return min(most, max(least, total/fewParts)) }

// TotalSize returns the total size of some files.
func TotalSize(files []File) (total int64) {
	for _, f := range files {
		total += f.Size
	}
	return total
}
