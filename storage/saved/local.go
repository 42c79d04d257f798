package saved

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/files"
)

// A save writes its parts into a directory beside the one that it is for, then the
// marker, which lists them, and puts the whole in its place by one operation of the
// file system.

// partName is what a part of a saved dataset is called.
const partName = "part-%05d"

// ownerName is the file that says whose save a staged directory is.
const ownerName = "_owner"

// stagedDir returns where the parts of a save lie until it is committed.
func stagedDir(dir string) string {
	return filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".staged")
}

// attemptsDir returns where tasks write the parts of a save: it is gone before the save is put in its place, so that a
// task that was given up, and goes on all the same, can add nothing to what is saved.
func attemptsDir(dir string) string { return filepath.Join(stagedDir(dir), ".attempts") }

// By reports whether the same save was completed before its job was started
// again, and how many rows it wrote.
func By(dir, owner string) (rows int64, done bool) {
	m, err := files.ReadMarker(dir)
	if err != nil || m == nil || owner == "" {
		return 0, false
	}
	return m.SavedBy(owner)
}

// stage prepares the directory that a save's parts are written into.
func stage(dir, owner string, o Options) error {
	staged := stagedDir(dir)
	if err := disk.Recover(staged, dir); err != nil {
		return Error(dir, err)
	}
	if err := mayReplace(dir, o); err != nil {
		return err
	}
	if err := disk.RemoveAll(staged); err != nil {
		return Error(dir, err)
	}
	mkdir := disk.MkdirAll
	if o.Durable {
		mkdir = disk.MkdirSynced
	}
	if err := mkdir(attemptsDir(dir), 0o755); err != nil {
		return Error(dir, err)
	}
	return Error(dir, disk.WriteFile(filepath.Join(staged, ownerName), []byte(owner), 0o644))
}

// ownParts are the names that saves give to their files.
var ownParts = regexp.MustCompile(`^(part-\d{5,}(-\d+(-[0-9a-f]{12})?)?|_SUCCESS|_owner)$`)

// mayReplace refuses a directory that a save must not replace, or append to: any that is not empty, with
// Overwrite one that has files that no save has written, with Append one that is not a save's.
func mayReplace(dir string, o Options) error {
	found, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(found) == 0 {
		return nil
	}
	if err != nil {
		return Error(dir, err)
	}
	switch {
	case o.Append:
		m, err := files.ReadMarker(dir)
		if err == nil && m == nil {
			err = notSaved(dir)
		}
		return err
	case !o.Overwrite:
		return notEmpty(dir)
	}
	return onlySaved(dir, found)
}

func notSaved(dir string) error {
	return fault.Newf(fault.BadInput, "append to", dir, "no save has written it: it has no %s of one",
		files.MarkerName).WithHint("save into a directory of its own: readers take several")
}

func notEmpty(dir string) error {
	return fault.Newf(fault.BadInput, "save to", dir, "it exists and is not empty").
		WithHint("remove it, replace it (--overwrite, rdd.Overwrite) or add to it (rdd.Append)")
}

func holdsOther(dir, name string) error {
	return fault.Newf(fault.BadInput, "save to", dir, "it holds %s, which no save has written", name).
		WithHint("it would be gone: remove it, or choose another directory")
}

// onlySaved refuses a directory that has files that no save has written, or has such directories.
func onlySaved(dir string, found []os.DirEntry) error {
	for _, f := range found {
		below := filepath.Join(dir, f.Name())
		switch {
		case f.IsDir() && strings.Contains(f.Name(), "="):
			more, err := os.ReadDir(below)
			if err != nil {
				return Error(below, err)
			}
			if err := onlySaved(below, more); err != nil {
				return err
			}
		case f.IsDir() && f.Name() != ".staged" || !f.IsDir() && !ownParts.MatchString(f.Name()):
			return holdsOther(dir, f.Name())
		}
	}
	return nil
}

// commitParts names the parts, writes the marker, and puts all in its place.
func commitParts(dir, owner string, parts [][]Part, o Options) (rows int64, err error) {
	staged := stagedDir(dir)
	defer func() {
		if err != nil {
			err = errors.Join(err, disk.RemoveAll(staged))
		}
	}()
	if err := mayReplace(dir, o); err != nil { // hours may have passed
		return 0, err
	}
	var before *files.Marker
	if o.Append {
		if before, err = files.ReadMarker(dir); err != nil {
			return 0, err
		}
	}
	m, rows, err := nameParts(staged, dir, parts, before)
	if err == nil && before != nil {
		err = m.SameKeys(dir)
	}
	if err == nil {
		err = Error(dir, dropAttempts(dir))
	}
	if err != nil {
		return 0, err
	}
	if m.Owner = owner; before != nil {
		m.Owner = before.OwnersAnd(owner, rows)
		return rows, Error(dir, appendParts(staged, dir, m, before, o.Durable))
	}
	err = disk.Remove(filepath.Join(staged, ownerName))
	if err == nil {
		err = writeMarker(filepath.Join(staged, files.MarkerName), m, o.Durable)
	}
	if err == nil && o.Durable {
		err = syncDirs(staged, m)
	}
	if err == nil {
		err = disk.PutDir(staged, dir, o.Durable)
	}
	return rows, Error(dir, err)
}

// nameParts gives parts the names that they have in a saved directory, after those that it has.
func nameParts(staged, dir string, parts [][]Part, before *files.Marker) (m *files.Marker, rows int64, err error) {
	m = &files.Marker{}
	next := 0
	if before != nil {
		m.Files, m.Rows = slices.Clone(before.Files), before.Rows
		for _, f := range before.Files {
			var n int
			if _, err := fmt.Sscanf(filepath.Base(f.Name), "part-%d", &n); err == nil {
				next = max(next, n+1)
			}
		}
	}
	for part, written := range parts {
		again := map[string]int{} // files of the part, by directory
		for _, w := range written {
			name := filepath.Join(w.Dir, fmt.Sprintf(partName, next+part))
			if k := again[w.Dir]; k > 0 {
				name = filepath.Join(w.Dir, fmt.Sprintf(partName+"-%d", next+part, k))
			}
			again[w.Dir]++
			to := filepath.Join(staged, name)
			err := disk.MkdirAll(filepath.Dir(to), 0o755)
			if err == nil {
				err = disk.Rename(filepath.Join(attemptsDir(dir), filepath.Base(w.Name)), to)
			}
			if err != nil {
				return nil, 0, Error(filepath.Join(dir, name), err)
			}
			m.Files = append(m.Files, files.MarkedFile{Name: name, Size: w.Size})
			rows += w.Rows
		}
	}
	m.Rows, m.Added = m.Rows+rows, rows
	return m, rows, nil
}

// appendParts moves parts into a directory, and then lists them in its marker: until then they are not read.
func appendParts(staged, dir string, m, before *files.Marker, durable bool) error {
	for _, f := range m.Files[len(before.Files):] {
		to := filepath.Join(dir, f.Name)
		if err := disk.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := disk.Rename(filepath.Join(staged, f.Name), to); err != nil {
			return err
		}
	}
	if durable {
		if err := syncDirs(dir, m); err != nil {
			return err
		}
	}
	marker := filepath.Join(staged, files.MarkerName)
	if err := writeMarker(marker, m, true); err != nil { // a marker that is cut off would hide all
		return err
	}
	if err := disk.Rename(marker, filepath.Join(dir, files.MarkerName)); err != nil {
		return err
	}
	if durable {
		if err := disk.SyncDir(dir); err != nil {
			return err
		}
	}
	return disk.RemoveAll(staged)
}

func writeMarker(path string, m *files.Marker, durable bool) error {
	write := disk.WriteFile
	if durable {
		write = disk.WriteSynced
	}
	return write(path, m.Encode(), 0o644)
}

// syncDirs syncs a directory and those below it that have files of a marker, the deepest first.
func syncDirs(dir string, m *files.Marker) error {
	dirs := map[string]bool{".": true}
	for _, f := range m.Files {
		for d := filepath.Dir(f.Name); d != "."; d = filepath.Dir(d) {
			dirs[d] = true
		}
	}
	all := slices.Collect(maps.Keys(dirs))
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	for _, d := range all {
		if err := disk.SyncDir(filepath.Join(dir, d)); err != nil {
			return err
		}
	}
	return nil
}

// dropAttempts removes what other attempts of tasks have left. Their directory is gone at once, so that no more can
// come meanwhile.
func dropAttempts(dir string) error {
	gone := filepath.Join(stagedDir(dir), ".gone")
	if err := disk.Rename(attemptsDir(dir), gone); err != nil {
		return err
	}
	err := disk.RemoveAll(gone)
	for k := 0; err != nil && k < goneTries; k++ { // a file that was being made comes after all
		err = disk.RemoveAll(gone)
	}
	return err
}

// goneTries is how often the removal of a directory is tried again that nothing finds any more.
const goneTries = 10

// Error returns why a save into a place has failed.
func Error(path string, err error) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fault.New(fault.NoResources, "save to", path, err)
}
