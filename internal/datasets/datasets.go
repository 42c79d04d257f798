// Package datasets finds the data sets that tests read where they are at hand: they
// are no part of the project.
package datasets

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns where a data set lies, beside the project; a test that wants one that
// is not here is skipped.
func Path(t testing.TB, name string) string {
	t.Helper()
	root, err := os.Getwd()
	for err == nil && root != filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		root = filepath.Dir(root)
	}
	path := filepath.Join(root, "..", "shared", "data", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not here", path)
	}
	return path
}
