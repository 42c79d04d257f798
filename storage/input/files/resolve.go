package files

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
)

// File is one resolved input file with what is needed to see that it has not
// changed since: its absolute path, size in bytes and modification time.
type File struct {
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	ModTime int64  `json:"mtime_ns"`
}

// Resolve expands paths, globs, directories and file:// URIs to the files
// they name, in sorted order within each argument. Files whose names begin
// with "." or "_" are left out of directories, as Hadoop's readers do.
func Resolve(uris ...string) ([]File, error) {
	var files []File
	for _, uri := range uris {
		found, err := resolveOne(uri)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return nil, fault.Newf(fault.BadInput, "open", strings.Join(uris, " "), "names no file")
	}
	return files, nil
}

func resolveOne(uri string) ([]File, error) {
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
		return "", fault.Newf(fault.BadInput, "open", uri, "only local paths and file:// URIs can be read")
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
	if _, err := os.Stat(filepath.Join(dir, ".staged")); err == nil {
		if _, err := os.Stat(filepath.Join(dir, MarkerName)); err != nil {
			return nil, fault.Newf(fault.BadInput, "open", dir,
				"a save into it has not come to its end: it has .staged, and no %s", MarkerName).
				WithHint("save it again; or, to read what is there, remove .staged")
		}
	}
	var paths []string
	for _, e := range entries {
		if hidden := strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_"); !e.IsDir() && !hidden {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fault.Newf(fault.BadInput, "open", dir, "the directory holds no data file")
	}
	return statAll(paths)
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
	info, err := os.Stat(f.Path)
	if err != nil {
		return disk.OpenError(f.Path, err)
	}
	if info.Size() != f.Size || info.ModTime().UnixNano() != f.ModTime {
		return fault.New(fault.BadInput, "read", f.Path, fmt.Errorf("the file changed since the job resolved it")).
			WithHint("run the job again")
	}
	return nil
}
