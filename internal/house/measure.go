package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// wide is the number of columns that a line is to keep to, with a tab as four of them.
const wide = 120

// tree is what is measured of a module.
type tree struct {
	module string
	rooms  map[string]*room // by directory, from the root
	uses   map[string]use   // by directory and name
}

// room is a package.
type room struct {
	files     []int // lines of each, tests apart
	functions []int // lines of each
	exported  []string
	lines     int
	tests     int // lines, those of testdata among them
	wide      int // lines, tests apart
	wideTests int
}

// use is where an exported name is used outside of its package.
type use struct{ product, tests bool }

// measure reads all of a module.
func measure(root string) (*tree, error) {
	module, err := moduleOf(root)
	if err != nil {
		return nil, err
	}
	t := &tree{module: module, rooms: map[string]*room{}, uses: map[string]use{}}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return t.enter(rel, d.Name())
		}
		return t.file(path, filepath.ToSlash(rel))
	})
	for dir, r := range t.rooms {
		if len(r.files) == 0 && r.tests == 0 {
			delete(t.rooms, dir)
		}
	}
	return t, err
}

func moduleOf(root string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	name, ok := strings.CutPrefix(line, "module ")
	if !ok {
		return "", fmt.Errorf("%s/go.mod does not begin with the module's name", root)
	}
	return strings.TrimSpace(name), nil
}

// enter leaves out what is hidden, and what is built.
func (t *tree) enter(rel, name string) error {
	if rel != "." && (strings.HasPrefix(name, ".") || rel == "bin") {
		return filepath.SkipDir
	}
	return nil
}

// file measures a file: Go, or data of tests.
func (t *tree) file(at, rel string) error {
	dir, data, _ := strings.Cut("/"+rel, "/testdata/")
	if dir = strings.TrimPrefix(dir, "/"); data == "" {
		dir = path.Dir(rel)
	} else if dir == "" {
		dir = "."
	}
	if data == "" && !strings.HasSuffix(rel, ".go") {
		return nil
	}
	raw, err := os.ReadFile(at)
	if err != nil {
		return err
	}
	if data != "" {
		if utf8.Valid(raw) {
			t.room(dir).tests += bytes.Count(raw, []byte("\n"))
		}
		return nil
	}
	return t.source(dir, rel, raw)
}

func (t *tree) room(dir string) *room {
	if t.rooms[dir] == nil {
		t.rooms[dir] = &room{}
	}
	return t.rooms[dir]
}

// source measures a file of a package.
func (t *tree) source(dir, rel string, raw []byte) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, rel, raw, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil || ast.IsGenerated(file) || strings.HasSuffix(rel, ".pb.go") {
		return err
	}
	r, lines, test := t.room(dir), bytes.Count(raw, []byte("\n")), strings.HasSuffix(rel, "_test.go")
	t.used(dir, file, test)
	if test {
		r.tests += lines
		r.wideTests += wideLines(raw)
		return nil
	}
	r.files, r.lines, r.wide = append(r.files, lines), r.lines+lines, r.wide+wideLines(raw)
	for _, d := range file.Decls {
		r.declared(fset, d)
	}
	return nil
}

func wideLines(raw []byte) int {
	n := 0
	for line := range bytes.Lines(raw) {
		line = bytes.TrimRight(line, "\n")
		if utf8.RuneCount(line)+3*bytes.Count(line, []byte("\t")) > wide {
			n++
		}
	}
	return n
}

// declared counts a function, and notes what is exported at the top.
func (r *room) declared(fset *token.FileSet, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Body != nil {
			r.functions = append(r.functions, fset.Position(d.End()).Line-fset.Position(d.Pos()).Line+1)
		}
		if d.Recv == nil {
			r.export(d.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				r.export(s.Name)
			case *ast.ValueSpec:
				r.export(s.Names...)
			}
		}
	}
}

func (r *room) export(names ...*ast.Ident) {
	for _, n := range names {
		if n.IsExported() {
			r.exported = append(r.exported, n.Name)
		}
	}
}

// used notes what a file names of other packages of the module.
func (t *tree) used(dir string, file *ast.File, test bool) {
	imports := map[string]string{} // directories by the names in this file
	for _, i := range file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		if from, ok := strings.CutPrefix(p, t.module+"/"); ok && from != dir {
			name := path.Base(p)
			if i.Name != nil {
				name = i.Name.Name
			}
			imports[name] = from
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && imports[x.Name] != "" {
			key := imports[x.Name] + "." + s.Sel.Name
			u := t.uses[key]
			t.uses[key] = use{u.product || !test, u.tests || test}
		}
		return true
	})
}
