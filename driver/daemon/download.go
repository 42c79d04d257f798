package daemon

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// madeFiles returns a job's output files, by their paths in its directory: those that its
// process has listed, or, for a job that has not ended, or ended under an older driver,
// those that exist.
func (w *jobHandle) madeFiles() (names []string, made []MadeFile, err error) {
	w.mu.Lock()
	made = w.files
	w.mu.Unlock()
	for _, f := range made {
		if f.Path != driver.EventsName && !ofDriver(f.Path) {
			names = append(names, f.Path)
		}
	}
	if made != nil {
		return names, made, nil
	}
	out := filepath.Join(w.dir, "out")
	err = filepath.WalkDir(out, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == out {
			return nil
		}
		if err != nil {
			return fault.New(fault.NoResources, "read", path, err)
		}
		if e.IsDir() {
			inside, err := os.ReadDir(path)
			if err == nil && len(inside) == 0 && path != out {
				err = fault.Newf(fault.Corrupt, "send", path, "it is a directory without files")
			}
			return err
		}
		name, err := filepath.Rel(w.dir, path)
		names = append(names, name)
		return err
	})
	return names, nil, err
}

// sendWhole sends a file, and fails where it differs from what the job has written. An
// empty file is sent as one empty part.
func (w *jobHandle) sendWhole(name string, all []MadeFile, stream wire.Cluster_DownloadServer) error {
	if err := w.heal(stream.Context(), name, all); err != nil {
		return fault.New(fault.Corrupt, "send", name, err)
	}
	f, err := os.Open(filepath.Join(w.dir, name))
	if errors.Is(err, fs.ErrNotExist) && name == driver.EventsName &&
		!slices.ContainsFunc(all, func(f MadeFile) bool { return f.Path == name }) {
		return nil // not every job has one
	}
	if err != nil {
		return fault.New(fault.Corrupt, "send", name, err)
	}
	defer f.Close()
	sum, buf, total := sha256.New(), make([]byte, 256<<10), int64(0)
	for {
		n, err := f.Read(buf)
		if n > 0 || total == 0 && err == io.EOF {
			sum.Write(buf[:n])
			if err := stream.Send(&wire.FilePart{Path: name, Data: buf[:n]}); err != nil {
				return err
			}
			total += int64(n)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fault.New(fault.Corrupt, "send", name, err)
		}
	}
	for _, made := range all {
		if made.Path == name && (made.Size != total || made.SHA256 != plan.DigestFromBytes(sum.Sum(nil))) {
			return fault.Newf(fault.Corrupt, "send", name,
				"it is not what the job has made: it has changed since the job ended")
		}
	}
	return nil
}
