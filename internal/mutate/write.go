package main

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"
)

//go:embed schemata.txt
var schemata string

// schemataName is the file that is added to the package that is mutated.
const schemataName = "mutate_schemata.go"

// namer gives the types that changed constants have names that hold in all of the package.
type namer struct {
	pkg     *types.Package
	aliases map[string]string // of the types, by how they are written
	imports map[string]string // the names under which packages are imported, by path
}

func newNamer(p *loaded) *namer {
	return &namer{pkg: p.pkg, aliases: map[string]string{}, imports: map[string]string{}}
}

// of returns the name of a type, "" if it has none outside of where it is declared.
func (n *namer) of(t types.Type) string {
	switch t := types.Unalias(t).(type) {
	case *types.Basic:
		return t.Name()
	case *types.Named:
		o := t.Obj()
		if t.TypeArgs().Len() > 0 || o.Parent() != o.Pkg().Scope() || o.Pkg() != n.pkg && !o.Exported() {
			return ""
		}
		return n.alias(t)
	}
	return ""
}

func (n *namer) alias(t types.Type) string {
	full := types.TypeString(t, func(p *types.Package) string {
		if p == n.pkg {
			return ""
		}
		if n.imports[p.Path()] == "" {
			n.imports[p.Path()] = fmt.Sprintf("mutImport%d", len(n.imports))
		}
		return n.imports[p.Path()]
	})
	if n.aliases[full] == "" {
		n.aliases[full] = fmt.Sprintf("mutType%d", len(n.aliases))
	}
	return n.aliases[full]
}

// schemata returns the text of the file that is added.
func (n *namer) schemata(count int) string {
	var imports, names strings.Builder
	for _, path := range slices.Sorted(maps.Keys(n.imports)) {
		fmt.Fprintf(&imports, "\t%s %q\n", n.imports[path], path)
	}
	for _, full := range slices.Sorted(maps.Keys(n.aliases)) {
		fmt.Fprintf(&names, "\ntype %s = %s\n", n.aliases[full], full)
	}
	return strings.NewReplacer("PACKAGE", n.pkg.Name(), "IMPORTS", imports.String(), "COUNT",
		strconv.Itoa(count)).Replace(schemata) + names.String()
}

// written is a source with its mutants, and from where in the source each part of it is.
type written struct {
	text  []byte
	edits []placed
}

// placed is an insert of a site that has been made, and where it ends in what is written.
type placed struct {
	insert
	site  int
	ended int
}

// write puts the mutants of a source into it.
func write(src *source, sites []*site) written {
	var all []placed
	for i, s := range sites {
		if s.src == src && !s.dropped {
			for _, in := range s.inserts {
				all = append(all, placed{insert: in, site: i})
			}
		}
	}
	slices.SortStableFunc(all, before)
	w, at := written{edits: all}, 0
	for i, p := range all {
		w.text = append(append(w.text, src.raw[at:p.off]...), p.text...)
		at = p.off + p.del
		all[i].ended = len(w.text)
	}
	w.text = append(w.text, src.raw[at:]...)
	return w
}

// before orders what stands at one place: sites are numbered from the outside in.
func before(a, b placed) int {
	if a.off != b.off {
		return a.off - b.off
	}
	if a.rank != b.rank {
		return a.rank - b.rank
	}
	if a.rank == suffix {
		return b.site - a.site
	}
	return a.site - b.site
}

// original returns the place in the source of a place in what was written from it.
func (w written) original(at int) int {
	i, _ := slices.BinarySearchFunc(w.edits, at, func(p placed, at int) int { return p.ended - at })
	switch {
	case i < len(w.edits) && w.edits[i].ended-len(w.edits[i].text) <= at:
		return w.edits[i].off
	case i == 0:
		return at
	}
	p := w.edits[i-1]
	return p.off + p.del + at - p.ended
}

// settle writes the sources until what is written compiles: a site that does not is left out,
// since no test has to notice what no compiler takes. It returns the texts by path.
func settle(p *loaded, f *finding) (map[string][]byte, error) {
	for range 50 {
		texts, writtens, err := attempt(p, f)
		if err == nil {
			f.settle()
			return texts, nil
		}
		if !f.drop(p, writtens, err) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("what is written of %s does not compile", p.pkg.Path())
}

// settle numbers the mutants that are left, and those that read the same.
func (f *finding) settle() {
	known, same := map[*mutant]bool{}, map[string]int{}
	for _, s := range f.sites {
		for _, m := range s.mutants {
			if !s.dropped && !known[m] {
				known[m] = true
				f.mutants = append(f.mutants, m)
			}
		}
	}
	slices.SortStableFunc(f.mutants, func(a, b *mutant) int {
		if c := strings.Compare(a.file, b.file); c != 0 {
			return c
		}
		return (a.line-b.line)*10000 + a.col - b.col
	})
	for _, m := range f.mutants {
		same[m.key()]++
		m.nth = same[m.key()]
	}
}

// complaints is what the checker has against what was written.
type complaints []types.Error

func (c complaints) Error() string { return c[0].Error() }

func attempt(p *loaded, f *finding) (map[string][]byte, map[string]written, error) {
	texts, writtens := map[string][]byte{}, map[string]written{}
	for _, s := range p.files {
		w := write(s, f.sites)
		texts[s.path], writtens[s.path] = w.text, w
	}
	texts[p.dir+"/"+schemataName] = []byte(f.named.schemata(f.most()))
	fset := token.NewFileSet()
	var files []*ast.File
	for path, text := range texts {
		file, err := parser.ParseFile(fset, path, text, 0)
		if err != nil {
			return nil, nil, fmt.Errorf("what is written of %s: %w", path, err)
		}
		files = append(files, file)
	}
	var bad complaints
	_, _ = checker(p.importer, func(err error) {
		if e, ok := err.(types.Error); ok {
			bad = append(bad, e)
		}
	}).Check(p.pkg.Path(), fset, files, nil)
	if len(bad) > 0 {
		return nil, writtens, bad
	}
	return texts, writtens, nil
}

// most returns one more than the highest number of a mutant.
func (f *finding) most() int {
	n := 1
	for _, s := range f.sites {
		for _, m := range s.mutants {
			n = max(n, m.id+1)
		}
	}
	return n
}

// drop leaves out the innermost sites at which the checker complains.
func (f *finding) drop(p *loaded, writtens map[string]written, err error) bool {
	bad, ok := err.(complaints)
	any := false
	for _, e := range bad {
		at := e.Fset.Position(e.Pos)
		w, known := writtens[at.Filename]
		if !ok || !known {
			return false
		}
		if s := f.innermost(at.Filename, w.original(at.Offset)); s != nil {
			s.dropped, any = true, true
		}
	}
	return any
}

func (f *finding) innermost(path string, at int) *site {
	var in *site
	for _, s := range f.sites {
		if s.src.path == path && !s.dropped && s.start <= at && at <= s.end {
			in = s
		}
	}
	return in
}
