// Command house measures the tree: how long its functions and files are, what packages export and
// who uses it, how much of it is tests, and what share of its mutants they notice. It writes
// docs/house.md, which is read beside the rules that internal/lint holds. Generated files do not
// count.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// watched are the packages whose exported names are held against what others use of them.
var watched = []string{"driver", "driver/daemon", "executor", "executor/daemon"}

func main() {
	root := flag.String("root", ".", "the module's directory")
	out := flag.String("out", "docs/house.md", "the file that is written, from the module's directory")
	flag.Parse()
	if err := write(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

// write measures the tree and writes down what it has found.
func write(root, out string) error {
	t, err := measure(root)
	if err != nil {
		return err
	}
	mutants, err := mutantsOf(filepath.Join(root, "docs/mutants.md"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, out), []byte(report(t, mutants)), 0o644)
}
