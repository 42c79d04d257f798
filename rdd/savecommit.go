package rdd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/files"
)

// A save writes its parts into a directory beside the one that it is for, then the
// marker, which lists them, and puts the whole in its place by one operation of the
// file system.

// ownerName is the file that says whose save a staged directory is.
const ownerName = "_owner"

// stagedDir returns where the parts of a save lie until it is committed.
func stagedDir(dir string) string {
	return filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".staged")
}

// ownerOf names a save of a job that may be started again; empty where it
// cannot be.
func ownerOf(s *Session, id int) string {
	if s.cfg.Owner == "" {
		return ""
	}
	return fmt.Sprintf("%s %d.%d", s.cfg.Owner, id, s.saves[id])
}

// savedBy reports whether the same save was completed before its job was started
// again, and how many rows it wrote.
func savedBy(dir, owner string) (rows int64, done bool) {
	m, err := files.ReadMarker(dir)
	if err != nil || m == nil || owner == "" || m.Owner != owner {
		return 0, false
	}
	return m.Rows, true
}

// stage prepares the directory that a save's parts are written into.
func stage(dir, owner string, o saveOptions) error {
	staged := stagedDir(dir)
	if err := disk.Recover(staged, dir); err != nil {
		return saveError(dir, err)
	}
	if err := mayReplace(dir, o.overwrite); err != nil {
		return err
	}
	if err := disk.RemoveAll(staged); err != nil {
		return saveError(dir, err)
	}
	mkdir := disk.MkdirAll
	if o.durable {
		mkdir = disk.MkdirSynced
	}
	if err := mkdir(staged, 0o755); err != nil {
		return saveError(dir, err)
	}
	return saveError(dir, disk.WriteFile(filepath.Join(staged, ownerName), []byte(owner), 0o644))
}

// ownParts are the names that saves give to their files.
var ownParts = regexp.MustCompile(`^(part-\d{5,}|_SUCCESS|_owner)$`)

// mayReplace refuses a directory that a save must not replace: any that is not empty, or
// with Overwrite one that has files that no save has written.
func mayReplace(dir string, overwrite bool) error {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return saveError(dir, err)
	}
	if len(files) > 0 && !overwrite {
		return fault.Newf(fault.BadInput, "save to", dir,
			"it exists and is not empty").WithHint("remove it, or save with Overwrite")
	}
	for _, f := range files {
		if f.IsDir() && f.Name() != ".staged" || !f.IsDir() && !ownParts.MatchString(f.Name()) {
			return fault.Newf(fault.BadInput, "save to", dir, "it holds %s, which no save has written", f.Name()).
				WithHint("it would be gone: remove it, or choose another directory")
		}
	}
	return nil
}

// commitParts names the parts, writes the marker, and puts all in its place.
func commitParts(dir, owner string, raws [][]byte, o saveOptions) (int64, error) {
	staged, durable := stagedDir(dir), o.durable
	if err := mayReplace(dir, o.overwrite); err != nil { // hours may have passed
		return 0, errors.Join(err, disk.RemoveAll(staged))
	}
	m := &files.Marker{Owner: owner}
	for part, raw := range raws {
		var written stagedPart
		if err := cborReading.Unmarshal(raw, &written); err != nil {
			return 0, err
		}
		name := fmt.Sprintf(partName, part)
		if err := disk.Rename(filepath.Join(staged, filepath.Base(written.Name)),
			filepath.Join(staged, name)); err != nil {
			return 0, saveError(filepath.Join(dir, name), err)
		}
		m.Files = append(m.Files, files.MarkedFile{Name: name, Size: written.Size})
		m.Rows += written.Rows
	}
	err := dropOthers(staged, m)
	if err == nil {
		write := disk.WriteFile
		if durable {
			write = disk.WriteSynced
		}
		err = write(filepath.Join(staged, files.MarkerName), m.Encode(), 0o644)
	}
	if err == nil && durable {
		err = disk.SyncDir(staged)
	}
	if err == nil {
		err = disk.PutDir(staged, dir, durable)
	}
	return m.Rows, saveError(dir, err)
}

// dropOthers removes what other attempts of tasks have left.
func dropOthers(staged string, m *files.Marker) error {
	files, err := os.ReadDir(staged)
	for _, f := range files {
		if !m.Has(f.Name()) {
			err = errors.Join(err, disk.Remove(filepath.Join(staged, f.Name())))
		}
	}
	return err
}
