package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// source is a file of the package that is mutated.
type source struct {
	path   string // absolute
	name   string // from the root
	raw    []byte
	file   *ast.File
	chosen bool // it may be mutated
}

// loaded is a package with its types.
type loaded struct {
	dir      string // absolute
	fset     *token.FileSet
	files    []*source
	pkg      *types.Package
	info     *types.Info
	importer types.Importer
}

// listed is what go list says of a package.
type listed struct {
	Dir     string
	Name    string
	GoFiles []string
	Export  string

	ImportPath string
}

// load parses a package and checks its types; patterns choose the files that may be mutated.
func load(root, dir string, patterns []string) (*loaded, error) {
	all, err := list(root, dir)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, l := range all {
		exports[l.ImportPath] = l.Export
	}
	own := all[len(all)-1]
	p := &loaded{dir: own.Dir, fset: token.NewFileSet()}
	p.importer = importer.ForCompiler(p.fset, "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, name := range own.GoFiles {
		s, err := read(p.fset, own.Dir, name)
		if err != nil {
			return nil, err
		}
		s.name, s.chosen = filepath.ToSlash(filepath.Join(dir, name)), matches(name, patterns) && name != hooks
		p.files = append(p.files, s)
	}
	return p, p.check(own.ImportPath)
}

// list returns a package and all it needs, itself last.
func list(root, dir string) ([]listed, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=Dir,Name,GoFiles,Export,ImportPath",
		"./"+filepath.ToSlash(dir))
	cmd.Dir = root
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, complaint.String())
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
}

func read(fset *token.FileSet, dir, name string) (*source, error) {
	s := &source{path: filepath.Join(dir, name)}
	var err error
	if s.raw, err = os.ReadFile(s.path); err != nil {
		return nil, err
	}
	s.file, err = parser.ParseFile(fset, s.path, s.raw, parser.ParseComments)
	return s, err
}

// hooks is the file of hooks that do nothing where no bug can be planted.
const hooks = "planted_off.go"

func matches(name string, patterns []string) bool {
	for _, p := range patterns {
		if ok, _ := filepath.Match(p, name); ok {
			return true
		}
	}
	return len(patterns) == 0
}

func (p *loaded) check(path string) error {
	p.info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses: map[*ast.Ident]types.Object{},
	}
	var files []*ast.File
	for _, s := range p.files {
		files = append(files, s.file)
	}
	var err error
	p.pkg, err = checker(p.importer, nil).Check(path, p.fset, files, p.info)
	return err
}

func checker(from types.Importer, complain func(error)) *types.Config {
	return &types.Config{Importer: from, Sizes: types.SizesFor("gc", runtime.GOARCH), Error: complain}
}

func (s *source) offset(fset *token.FileSet, p token.Pos) int { return fset.Position(p).Offset }
