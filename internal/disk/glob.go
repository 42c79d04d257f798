package disk

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Glob returns the files under a directory whose paths in it match a pattern of [path.Match], in order; none where it
// cannot be read. Unlike [filepath.Glob] it takes the directory's own name as it is: a user's may have brackets.
func Glob(dir, pattern string) []string {
	names, _ := fs.Glob(os.DirFS(dir), pattern) // patterns are well formed
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return names
}
