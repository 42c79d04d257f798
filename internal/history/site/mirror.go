package site

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/objects"
)

// Mirror keeps copies of the event logs that lie below a name of objects, in a folder that a Site shows.
type Mirror struct {
	name, dir string
	log       hclog.Logger
	has       map[string]objects.Info // by path in the folder; also of what is no log
}

// NewMirror returns the mirror of a name, in an empty folder.
func NewMirror(name, dir string, log hclog.Logger) *Mirror {
	return &Mirror{name: name, dir: dir, log: log, has: map[string]objects.Info{}}
}

// bringEvery is how often a mirror looks for logs that have come or changed.
const bringEvery = 10 * time.Second

// Keep brings what comes, until the context ends. What cannot be brought is tried again.
func (m *Mirror) Keep(ctx context.Context) {
	tick := time.NewTicker(bringEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if err := m.Bring(ctx); err != nil && ctx.Err() == nil {
			m.log.Warn("cannot bring event logs", "from", m.name, "error", err)
		}
	}
}

// Bring copies the logs that are not here as they are there, and removes those that are not there any more.
func (m *Mirror) Bring(ctx context.Context) error {
	root, there, failed := objects.Join(m.name)+"/", map[string]bool{}, error(nil)
	err := objects.List(ctx, root, func(i objects.Info) bool {
		rel := filepath.FromSlash(strings.TrimPrefix(i.Name, root))
		if !filepath.IsLocal(rel) || strings.HasSuffix(i.Name, "/") {
			return true
		}
		there[rel] = true
		if had, known := m.has[rel]; known && had.Same(i) {
			return true
		}
		if failed = m.copy(ctx, i, rel); failed == nil {
			m.has[rel] = i
		}
		return failed == nil && len(there) < mostLogs && ctx.Err() == nil
	})
	if err = errors.Join(err, failed, ctx.Err()); err != nil {
		return err
	}
	for rel := range m.has {
		if !there[rel] && len(there) < mostLogs {
			delete(m.has, rel)
			if err := os.Remove(filepath.Join(m.dir, rel)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fault.New(fault.NoResources, "remove", rel, err)
			}
		}
	}
	return nil
}

// copy copies an object into the folder, if it is an event log.
func (m *Mirror) copy(ctx context.Context, i objects.Info, rel string) error {
	from, err := objects.OpenAs(ctx, i)
	if err != nil {
		return err
	}
	defer from.Close()
	head := make([]byte, min(int64(len(opening)), i.Size))
	if _, err := io.ReadFull(from, head); err != nil {
		return err
	}
	if string(head) != opening {
		return nil
	}
	path := filepath.Join(m.dir, rel)
	if err := disk.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fault.New(fault.NoResources, "bring", i.Name, err)
	}
	to, err := disk.CreateTemp(m.dir, ".bring-*")
	if err != nil {
		return fault.New(fault.NoResources, "bring", i.Name, err)
	}
	defer disk.Remove(to.Name())
	_, err = io.Copy(to, io.MultiReader(bytes.NewReader(head), from))
	if cerr := to.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Chtimes(to.Name(), i.ModTime, i.ModTime) // by which the list is sorted
	}
	if err == nil {
		err = disk.Rename(to.Name(), path)
	}
	if err != nil {
		return fault.New(fault.NoResources, "bring", i.Name, err)
	}
	return nil
}
