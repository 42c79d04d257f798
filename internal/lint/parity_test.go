package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// exported are the exported names of packages, by directory: Name and Type.Method. An alias of another package's type
// has that one's methods.
type exported map[string]map[string]bool

func exportedOf(t *testing.T, dirs ...string) exported {
	out, aliases := exported{}, map[[2]string][2]string{}
	for _, dir := range dirs {
		out[dir] = map[string]bool{}
		for _, path := range tracked(t, dir+"/*.go") {
			if filepath.Dir(path) != dir || strings.HasSuffix(path, "_test.go") {
				continue
			}
			path = filepath.Join(rootPath, path)
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				out.declare(dir, f, d, aliases)
			}
		}
	}
	for alias, of := range aliases {
		for name := range out[of[0]] {
			if method, ok := strings.CutPrefix(name, of[1]+"."); ok {
				out[alias[0]][alias[1]+"."+method] = true
			}
		}
	}
	return out
}

// declare adds the names of a declaration, and notes aliases by directory and name.
func (e exported) declare(dir string, f *ast.File, d ast.Decl, aliases map[[2]string][2]string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			name = typeName(d.Recv.List[0].Type) + "." + name
		}
		e[dir][name] = true
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					e[dir][n.Name] = true
				}
			case *ast.TypeSpec:
				e[dir][s.Name.Name] = true
				if s.Assign == token.NoPos {
					continue
				}
				if pkg, name := selected(s.Type); pkg != "" {
					aliases[[2]string{dir, s.Name.Name}] = [2]string{importedAs(f, pkg), name}
				}
			}
		}
	}
}

// typeName returns the name of a receiver's type.
func typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.IndexExpr:
		return typeName(x.X)
	case *ast.IndexListExpr:
		return typeName(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// selected returns package and name of a type of another package.
func selected(x ast.Expr) (pkg, name string) {
	switch x := x.(type) {
	case *ast.IndexExpr:
		return selected(x.X)
	case *ast.IndexListExpr:
		return selected(x.X)
	case *ast.SelectorExpr:
		if id, ok := x.X.(*ast.Ident); ok {
			return id.Name, x.Sel.Name
		}
	}
	return "", ""
}

// importedAs returns the directory of a package of this module that a file imports.
func importedAs(f *ast.File, pkg string) string {
	for _, i := range f.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		if dir, ok := strings.CutPrefix(path, modulePath+"/"); ok && filepath.Base(dir) == pkg {
			return dir
		}
	}
	return ""
}

const modulePath = "github.com/volley-engine/volley"

var (
	quoted    = regexp.MustCompile("`([^`]+)`")
	plainBars = strings.NewReplacer(`\|`, "\x00")
)

// TestSparkParityNamesExist: every name that docs/spark-parity.md has for a method of Spark is one of a package or a
// command, and what of the RDD API is not here has one of the reasons that the page gives.
func TestSparkParityNamesExist(t *testing.T) {
	names := exportedOf(t, "rdd", "rdd/internal/row", "rdd/internal/exec", "mllib", "mllib/linear", "mllib/kmeans",
		"mllib/als", "mllib/mlp", "mllib/internal/model", "mllib/internal/train", "mllib/internal/solver")
	commands, err := os.ReadFile(filepath.Join(rootPath, "docs/cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(rootPath, "docs/spark-parity.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(plainBars.Replace(line), "|")
		if len(cells) < 4 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[1]) == "Spark" {
			continue
		}
		rows++
		state := strings.TrimSpace(cells[2])
		if !strings.HasPrefix(state, "`") && !strings.HasPrefix(state, "by combination: ") &&
			!strings.HasPrefix(state, "not here: ") && !strings.HasPrefix(state, "missing: ") {
			t.Errorf("%s: the second column is none of the four: %s", cells[1], state)
		}
		for _, m := range quoted.FindAllStringSubmatch(state, -1) {
			pkg, name, ok := strings.Cut(m[1], ".")
			if command, is := strings.CutPrefix(m[1], "volley "); is {
				if !regexp.MustCompile("(?m)^## volley " + command + `(\s|$)`).Match(commands) {
					t.Errorf("%s: there is no command %q", cells[1], m[1])
				}
			} else if !ok || !names[pkg][name] {
				t.Errorf("%s: there is no %s", cells[1], m[1])
			}
		}
	}
	if rows < 400 {
		t.Errorf("the page has %d rows", rows)
	}
}
