package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// mutant is one small way in which a package is broken.
type mutant struct {
	id            int
	kind          string
	file          string // from the root
	fn            string
	line, col     int
	before, after string
	nth           int // among those of a function that read the same, from 1
}

// key returns which mutant it is, wherever in its function it stands.
func (m *mutant) key() string {
	k := m.file + " | " + m.fn + " | " + m.kind + " | " + m.before + " -> " + m.after
	if m.nth > 1 {
		k += " | #" + strconv.Itoa(m.nth)
	}
	return k
}

// insert is text that is put into a source, in place of some that is there or of none.
type insert struct {
	off, del int
	rank     int // of those at one place: suffixes, what stands between, prefixes
	text     string
}

const (
	suffix = iota
	between
	prefix
)

// site is a place at which mutants stand; it is compiled in whole or left out whole.
type site struct {
	src        *source
	start, end int
	inserts    []insert
	mutants    []*mutant
	dropped    bool
}

// finding is all the mutants of a package, and the text that they need.
type finding struct {
	sites   []*site
	mutants []*mutant
	named   *namer
}

// finder walks one source.
type finder struct {
	*loaded
	out    *finding
	src    *source
	fn     string
	skip   map[ast.Node]bool
	consts map[types.Object][]*constMutant
	next   *int
}

// find returns the mutants of a package.
func find(p *loaded) *finding {
	out, next := &finding{named: newNamer(p)}, 1
	f := &finder{loaded: p, out: out, skip: map[ast.Node]bool{}, consts: map[types.Object][]*constMutant{}, next: &next}
	for _, s := range p.files {
		if f.src = s; s.chosen {
			f.declared()
		}
	}
	for _, s := range p.files {
		if f.src = s; s.chosen {
			f.walkFile()
		}
	}
	return out
}

func (f *finder) walkFile() {
	for _, d := range f.src.file.Decls {
		f.fn = "var"
		if fd, ok := d.(*ast.FuncDecl); ok {
			if f.fn = fd.Name.Name; fd.Recv != nil {
				f.fn = f.text(fd.Recv.List[0].Type) + "." + f.fn
			}
			if slices.Contains([]string{"String", "Error", "GoString", "Format"}, fd.Name.Name) {
				continue
			}
		}
		ast.Inspect(d, f.visit)
	}
}

// text returns a node's source on one line.
func (f *finder) text(n ast.Node) string { return strings.Join(strings.Fields(f.raw(n)), " ") }

func (f *finder) raw(n ast.Node) string {
	return string(f.src.raw[f.off(n.Pos()):f.off(n.End())])
}

func (f *finder) off(p token.Pos) int { return f.src.offset(f.fset, p) }

// mutant makes a mutant that stands at p.
func (f *finder) mutant(p token.Pos, kind, before, after string) *mutant {
	at := f.fset.Position(p)
	m := &mutant{id: *f.next, kind: kind, file: f.src.name, fn: f.fn, line: at.Line, col: at.Column,
		before: short(before), after: short(after)}
	*f.next++
	return m
}

// short keeps what is said of a mutant to a line.
func short(s string) string {
	if r := []rune(s); len(r) > 100 {
		return string(r[:99]) + "…"
	}
	return s
}

// place adds a site around a node.
func (f *finder) place(n ast.Node, inserts []insert, mutants ...*mutant) {
	f.out.sites = append(f.out.sites, &site{src: f.src, start: f.off(n.Pos()), end: f.off(n.End()), inserts: inserts,
		mutants: mutants})
}

// around returns the insertion of text before and after a node.
func (f *finder) around(n ast.Node, before, after string) []insert {
	return []insert{{off: f.off(n.Pos()), rank: prefix, text: before}, {off: f.off(n.End()), rank: suffix, text: after}}
}

// instead returns the insertion of text in place of a token.
func (f *finder) instead(p token.Pos, tok token.Token, text string) insert {
	return insert{off: f.off(p), del: len(tok.String()), rank: between, text: text}
}

func is(m *mutant) string { return "mutIs(" + strconv.Itoa(m.id) + ")" }

// visit takes a node, outer ones first, and reports whether to go on into it.
func (f *finder) visit(n ast.Node) bool {
	if n == nil || f.skip[n] {
		return false
	}
	if e, ok := n.(ast.Expr); ok {
		if tv := f.info.Types[e]; tv.Value != nil {
			f.constant(e, tv)
			return false
		}
		return f.expression(e)
	}
	return f.statement(n)
}

func (f *finder) statement(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.BlockStmt:
		f.removals(n.List)
	case *ast.CaseClause:
		f.removals(n.Body)
	case *ast.CommClause:
		f.removals(n.Body)
	case *ast.IfStmt:
		f.choice(n)
	case *ast.ForStmt:
		f.condition(n.Cond)
	case *ast.SwitchStmt:
		f.cases(n)
	case *ast.IncDecStmt:
		f.step(n)
		return false
	case *ast.AssignStmt:
		f.update(n)
	}
	return true
}

func (f *finder) expression(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ArrayType:
		return false
	case *ast.CompositeLit:
		f.skipKeys(e)
	case *ast.CallExpr:
		return f.call(e)
	case *ast.BinaryExpr:
		f.binary(e)
	}
	return true
}

// skipKeys leaves the indices of a literal's elements alone, which have to be constants.
func (f *finder) skipKeys(e *ast.CompositeLit) {
	switch f.info.Types[e].Type.Underlying().(type) {
	case *types.Array, *types.Slice:
		for _, el := range e.Elts {
			if kv, ok := el.(*ast.KeyValueExpr); ok {
				f.skip[kv.Key] = true
			}
		}
	}
}

// choice mutates an if, unless its body only panics.
func (f *finder) choice(n *ast.IfStmt) {
	if impossible(n.Body) {
		f.skip[n.Cond], f.skip[n.Body] = true, true
		return
	}
	f.condition(n.Cond)
}

// impossible reports whether all that a block does is to panic.
func impossible(b *ast.BlockStmt) bool {
	if len(b.List) != 1 {
		return false
	}
	s, ok := b.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	c, ok := s.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := c.Fun.(*ast.Ident)
	return ok && name.Name == "panic"
}

func (f *finder) cases(n *ast.SwitchStmt) {
	if n.Tag != nil {
		return
	}
	for _, c := range n.Body.List {
		for _, e := range c.(*ast.CaseClause).List {
			f.condition(e)
		}
	}
}

// condition negates what decides a branch; a comparison is turned round where it stands.
func (f *finder) condition(e ast.Expr) {
	if e == nil || f.skip[e] || f.info.Types[e].Value != nil {
		return
	}
	switch x := e.(type) {
	case *ast.ParenExpr:
		f.condition(x.X)
	case *ast.UnaryExpr:
		if x.Op == token.NOT {
			f.condition(x.X)
			return
		}
		f.negate(e)
	case *ast.BinaryExpr:
		if x.Op == token.LAND || x.Op == token.LOR {
			f.negate(e)
		}
	case *ast.CallExpr:
		if f.isHook(x) {
			f.given(x)
			return
		}
		f.negate(e)
	default:
		f.negate(e)
	}
}

// given negates the conditions that go through a hook.
func (f *finder) given(hook *ast.CallExpr) {
	for _, e := range hook.Args {
		if b, ok := f.info.Types[e].Type.Underlying().(*types.Basic); ok && b.Info()&types.IsBoolean != 0 {
			f.condition(e)
		}
	}
}

func (f *finder) negate(e ast.Expr) {
	m := f.mutant(e.Pos(), "negation", f.text(e), "!("+f.text(e)+")")
	f.place(e, f.around(e, "((", ") != "+is(m)+")"), m)
}

// removals leaves out calls, and what is assigned to fields and elements.
func (f *finder) removals(list []ast.Stmt) {
	for _, s := range list {
		if !f.skip[s] && f.removable(s) {
			m := f.mutant(s.Pos(), "removal", f.text(s), "nothing")
			f.place(s, f.around(s, "if !"+is(m)+" { ", " }"), m)
		}
	}
}

func (f *finder) removable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		c, ok := s.X.(*ast.CallExpr)
		return ok && !f.aside(c) && !f.isHook(c)
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return false
		}
		for _, l := range s.Lhs {
			if _, plain := l.(*ast.Ident); plain {
				return false
			}
		}
		return true
	}
	return false
}
