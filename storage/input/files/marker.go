package files

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
)

// MarkerName is the file that marks a saved directory as complete.
const MarkerName = "_SUCCESS"

// Marker is what a save of this engine writes into it: its files, with their sizes in
// bytes, so that a directory that has lost one, or has others beside them, is read as
// it was saved or not at all. Other programs' markers are empty, or different.
type Marker struct {
	Owner string // of the save; may be empty
	Rows  int64
	Added int64 // of these, by the last save
	Files []MarkedFile
}

// MarkedFile is a file of a saved directory.
type MarkedFile struct {
	Name string
	Size int64
}

// markerHead begins our markers.
const markerHead = "volley-save 1"

// Encode returns the marker's text: a line with the rows, and with those of the last save where it was not the only
// one, a line with the owner, and one for each file.
func (m *Marker) Encode() []byte {
	rows := strconv.FormatInt(m.Rows, 10)
	if m.Added != m.Rows {
		rows += " " + strconv.FormatInt(m.Added, 10)
	}
	out := fmt.Appendf(nil, "%s\nrows %s\nowner %s\n", markerHead, rows, m.Owner)
	for _, f := range m.Files {
		out = fmt.Appendf(out, "%d %s\n", f.Size, f.Name)
	}
	return append(out, "end\n"...)
}

// ownerBreak separates owners of appended saves, each from its number of rows and from the next.
const ownerBreak = "\t"

// OwnersAnd returns the owners of a directory to which another one has appended rows.
func (m *Marker) OwnersAnd(owner string, rows int64) string {
	owners := m.Owner
	if !strings.Contains(owners, ownerBreak) {
		owners += ownerBreak + strconv.FormatInt(m.Added, 10)
	}
	return owners + ownerBreak + owner + ownerBreak + strconv.FormatInt(rows, 10)
}

// SavedBy reports whether an owner has saved to the directory, and how many rows.
func (m *Marker) SavedBy(owner string) (rows int64, done bool) {
	owners := strings.Split(m.Owner, ownerBreak)
	if len(owners) == 1 {
		return m.Added, owners[0] == owner
	}
	for i := 0; i+1 < len(owners); i += 2 {
		if owners[i] == owner {
			rows, err := strconv.ParseInt(owners[i+1], 10, 64)
			return rows, err == nil
		}
	}
	return 0, false
}

// SameKeys checks that all files lie in directories of the same columns.
func (m *Marker) SameKeys(dir string) error {
	all := make([]File, len(m.Files))
	for i, f := range m.Files {
		all[i] = File{Path: Join(dir, f.Name), Keys: keysOf(f.Name)}
	}
	return SameKeys(all)
}

// ReadMarker reads a directory's marker; nil where it has none of this engine's.
func ReadMarker(dir string) (*Marker, error) {
	path := Join(dir, MarkerName)
	raw, err := ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(raw) > 0 && len(raw) <= len(markerHead) && strings.HasPrefix(markerHead+"\n", string(raw)) {
		return nil, fault.Newf(fault.Corrupt, "read", path, "it is cut off").
			WithHint("the directory was not saved to its end: save it again")
	}
	if !bytes.HasPrefix(raw, []byte(markerHead+"\n")) {
		return nil, nil
	}
	m := &Marker{}
	if err := m.parse(raw); err != nil {
		return nil, fault.New(fault.Corrupt, "read", path, err).
			WithHint("the directory was not saved to its end, or has been damaged since: save it again")
	}
	return m, nil
}

func (m *Marker) parse(raw []byte) error {
	lines := bufio.NewScanner(bytes.NewReader(raw))
	whole := false
	for n := 1; lines.Scan(); n++ {
		text := lines.Text()
		var ok bool
		var err error
		switch n {
		case 1:
			ok = true
		case 2:
			text, ok = strings.CutPrefix(text, "rows ")
			all, added, appended := strings.Cut(text, " ")
			if m.Rows, err = strconv.ParseInt(all, 10, 64); !appended {
				m.Added = m.Rows
			} else if err == nil {
				m.Added, err = strconv.ParseInt(added, 10, 64)
			}
		case 3:
			m.Owner, ok = strings.CutPrefix(text, "owner ")
		default:
			if text == "end" {
				whole, ok = true, true
				break
			}
			var size string
			f := MarkedFile{}
			size, f.Name, ok = strings.Cut(text, " ")
			f.Size, err = strconv.ParseInt(size, 10, 64)
			ok = ok && !whole && filepath.IsLocal(f.Name) && filepath.Clean(f.Name) == f.Name && f.Name != "."
			m.Files = append(m.Files, f)
		}
		if !ok || err != nil {
			return fmt.Errorf("line %d is %.100q", n, text)
		}
	}
	if !whole {
		return errors.New("it is cut off")
	}
	return nil
}

// files returns the files that the marker lists, each as long as it was.
func (m *Marker) files(dir string) ([]File, error) {
	paths := make([]string, len(m.Files))
	for i, f := range m.Files {
		paths[i] = Join(dir, f.Name)
	}
	files, err := keyed(dir, paths)
	for i := range files {
		if want := m.Files[i].Size; err == nil && files[i].Size != want {
			err = fault.Newf(fault.Corrupt, "open", paths[i], "it has %d bytes, and was saved with %d", files[i].Size,
				want).WithHint("save the directory again")
		}
	}
	return files, err
}
