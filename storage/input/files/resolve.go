package files

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/objects"
)

// File is one resolved input file with what is needed to see that it has not
// changed since: its absolute path, size in bytes and modification time.
type File struct {
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	ModTime int64  `json:"mtime_ns"`
	Tag     string `json:"tag,omitempty"`   // of an object: another one has other bytes
	Whole   bool   `json:"whole,omitempty"` // a server's that does not send parts
	Keys    []Key  `json:"keys,omitempty"`  // columns that its directories have
}

// Resolve expands paths, globs, directories, file:// URIs and names of objects to the files
// they name, in sorted order within each argument. Directories are read with those
// below them, of which names such as country=DE are columns. What begins
// with "." or "_" is left out of directories, as Hadoop's readers do. A save of no rows has no files.
func Resolve(uris ...string) ([]File, error) {
	var files []File
	for _, uri := range uris {
		found, err := resolveOne(uri)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}

func resolveOne(uri string) ([]File, error) {
	if objects.Is(uri) {
		return resolveObjects(context.Background(), uri)
	}
	path, err := localPath(uri)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return resolveDir(path)
	case err == nil:
		return statAll([]string{path})
	case strings.ContainsAny(path, "*?["):
		return resolveGlob(uri, path)
	}
	return nil, disk.OpenError(uri, err)
}

func localPath(uri string) (string, error) {
	if !strings.Contains(uri, "://") {
		return uri, nil
	}
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || (u.Host != "" && u.Host != "localhost") {
		return "", fault.Newf(fault.BadInput, "open", uri, "only paths, file://, s3://, gs:// and https:// can be read")
	}
	return u.Path, nil
}

func resolveDir(dir string) ([]File, error) {
	m, err := ReadMarker(dir)
	if err != nil {
		return nil, err
	}
	if m != nil {
		return m.files(dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, disk.OpenError(dir, err)
	}
	if _, err := os.Stat(filepath.Join(dir, StagedName)); err == nil {
		if _, err := os.Stat(filepath.Join(dir, MarkerName)); err != nil {
			return nil, unfinished(dir)
		}
	}
	paths, err := dataFiles(dir, entries, 0)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fault.Newf(fault.BadInput, "open", dir, "the directory holds no data file")
	}
	return keyed(dir, paths)
}

// deepest is how many directories may lie within one another: links may go round.
const deepest = 32

// dataFiles returns the files of a directory and of those below it, in order.
func dataFiles(dir string, entries []os.DirEntry, depth int) (paths []string, err error) {
	if depth > deepest {
		return nil, fault.Newf(fault.BadInput, "open", dir, "more than %d directories lie within one another", deepest)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_") && !strings.Contains(e.Name(), "=") {
			continue
		}
		info, err := os.Stat(path) // of what a link leads to
		if err != nil {
			return nil, disk.OpenError(path, err)
		}
		if !info.IsDir() {
			paths = append(paths, path)
			continue
		}
		below, err := os.ReadDir(path)
		if err != nil {
			return nil, disk.OpenError(path, err)
		}
		more, err := dataFiles(path, below, depth+1)
		if err != nil {
			return nil, err
		}
		paths = append(paths, more...)
	}
	return paths, nil
}

// keyed returns the files of a directory, with the columns that the directories below it have.
func keyed(dir string, paths []string) ([]File, error) {
	stat := statAll
	if objects.Is(dir) {
		stat = statObjects
	}
	files, err := stat(paths)
	for i := range files {
		rel := strings.TrimPrefix(paths[i], Join(dir)+"/")
		files[i].Keys = keysOf(rel)
	}
	return files, err
}

func resolveGlob(uri, pattern string) ([]File, error) {
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		return nil, fault.Newf(fault.BadInput, "open", uri, "no file matches the pattern")
	}
	sort.Strings(paths)
	return statAll(paths)
}

func statAll(paths []string) ([]File, error) {
	files := make([]File, 0, len(paths))
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, disk.OpenError(p, err)
		}
		info, err := os.Stat(abs)
		if err != nil {
			return nil, disk.OpenError(p, err)
		}
		if !info.Mode().IsRegular() {
			return nil, fault.Newf(fault.BadInput, "open", p, "not a regular file")
		}
		files = append(files, File{Path: abs, Size: info.Size(), ModTime: info.ModTime().UnixNano()})
	}
	return files, nil
}

// Unchanged checks that a resolved file is still the one that was resolved.
func (f File) Unchanged() error {
	if objects.Is(f.Path) {
		now, err := objects.Stat(context.Background(), f.Path)
		if err == nil && !f.object().Same(now) {
			err = f.changed()
		}
		return err
	}
	info, err := os.Stat(f.Path)
	if err != nil {
		return disk.OpenError(f.Path, err)
	}
	if info.Size() != f.Size || info.ModTime().UnixNano() != f.ModTime {
		return f.changed()
	}
	return nil
}

func (f File) changed() error {
	return fault.New(fault.BadInput, "read", f.Path, errors.New("the file changed since the job resolved it")).
		WithHint("run the job again")
}
