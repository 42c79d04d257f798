package rdd

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/objects"
)

// Save writes a result as <name>.json into the run's output directory. The
// file appears whole or not at all.
func Save[T any](ctx context.Context, s *Session, name string, value T) error {
	if err := ctx.Err(); err != nil {
		return fault.New(fault.Cancelled, "save", name, err)
	}
	if s.cfg.OutDir == "" {
		return fault.Newf(fault.Usage, "save", name, "the run has no output directory").WithHint("set --out")
	}
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fault.New(fault.UserCode, "save", name, err)
	}
	path := files.Join(s.cfg.OutDir, name+".json")
	if objects.Is(path) {
		return objects.Put(ctx, path, append(raw, '\n'))
	}
	if err := writeWhole(path, append(raw, '\n')); err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return fault.New(fault.NoResources, "save", path, err)
	}
	return nil
}

// writeWhole returns once the disk has the file, under its name.
func writeWhole(path string, raw []byte) error {
	if err := disk.MkdirSynced(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp, err := disk.CreateTemp(filepath.Dir(path), ".save-*")
	if err != nil {
		return err
	}
	defer disk.Remove(tmp.Name())
	_, err = tmp.Write(raw)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if err := disk.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(path))
}
