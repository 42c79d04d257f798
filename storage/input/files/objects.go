package files

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/objects"
)

// StagedName is the name of what says that a save into a directory has begun.
const StagedName = ".staged"

// resolveObjects returns the objects that a name means: one of that name, those below it, or those that match it. A
// web server has pages, and directories that a save has written.
func resolveObjects(ctx context.Context, name string) ([]File, error) {
	if !strings.HasSuffix(name, "/") {
		i, err := objects.Stat(ctx, name)
		if err == nil {
			return []File{fileOf(i)}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || objects.IsWeb(name) {
			return nil, err
		}
	}
	if !objects.IsWeb(name) && strings.ContainsAny(name, "*?[") {
		return matching(ctx, name)
	}
	m, err := ReadMarker(name)
	switch {
	case err != nil:
		return nil, err
	case m != nil:
		return m.files(name)
	}
	return below(ctx, name)
}

// below returns the data files below a name, with the columns that directories have.
func below(ctx context.Context, dir string) (files []File, err error) {
	root := objects.Join(dir) + "/"
	staged := false
	err = objects.List(ctx, root, func(i objects.Info) bool {
		rel := strings.TrimPrefix(i.Name, root)
		staged = staged || rel == StagedName
		if isData(rel) {
			f := fileOf(i)
			f.Keys = keysOf(rel)
			files = append(files, f)
		}
		return true
	})
	switch {
	case err != nil:
		return nil, err
	case staged:
		return nil, unfinished(dir)
	case len(files) == 0:
		return nil, fault.New(fault.BadInput, "open", dir, errNone)
	}
	return files, nil
}

var errNone = errors.New("there is no such object, and no data file below it")

// isData reports whether a name below a directory is that of a data file.
func isData(rel string) bool {
	if rel == "" || strings.HasSuffix(rel, "/") { // some programs write directories
		return false
	}
	for part := range strings.SplitSeq(rel, "/") {
		if strings.HasPrefix(part, ".") || strings.HasPrefix(part, "_") && !strings.Contains(part, "=") {
			return false
		}
	}
	return true
}

// matching returns the objects that match a pattern.
func matching(ctx context.Context, pattern string) (files []File, err error) {
	fixed := pattern[:strings.IndexAny(pattern, "*?[")]
	var bad error
	err = objects.List(ctx, fixed, func(i objects.Info) bool {
		var ok bool
		if ok, bad = path.Match(pattern, i.Name); ok {
			files = append(files, fileOf(i))
		}
		return bad == nil
	})
	if err == nil && (bad != nil || len(files) == 0) {
		err = fault.Newf(fault.BadInput, "open", pattern, "no object matches the pattern")
	}
	return files, err
}

// asked is how many objects are asked for at a time.
const asked = 16

// statObjects asks for objects, which all must be there.
func statObjects(names []string) ([]File, error) {
	files := make([]File, len(names))
	g, ctx := errgroup.WithContext(context.Background())
	g.SetLimit(asked)
	for n, name := range names {
		g.Go(func() error {
			i, err := objects.Stat(ctx, name)
			files[n] = fileOf(i)
			return err
		})
	}
	return files, g.Wait()
}

// unfinished returns the error about a directory whose save has not come to its end.
func unfinished(dir string) error {
	return fault.Newf(fault.BadInput, "open", dir, "a save into it has not come to its end: it has %s, and no %s",
		StagedName, MarkerName).WithHint("save it again, or remove what is below it")
}
