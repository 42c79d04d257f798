package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"strconv"
	"strings"
)

// constMutant is another value of a named constant. It is in force wherever the constant is used
// in this package, but not where the language asks for a constant.
type constMutant struct {
	kind, before, after string
	value               string // in an expression
	pos                 token.Pos
	src                 *source
	made                *mutant
}

// declared notes the constants of a source that are computed from numbers.
func (f *finder) declared() {
	ast.Inspect(f.src.file, func(n ast.Node) bool {
		d, ok := n.(*ast.GenDecl)
		if ok && d.Tok == token.CONST {
			for _, s := range d.Specs {
				f.declaredBy(s.(*ast.ValueSpec))
			}
		}
		return true
	})
}

func (f *finder) declaredBy(s *ast.ValueSpec) {
	for i, e := range s.Values {
		c := f.info.Defs[s.Names[i]]
		if c == nil || strings.Contains(f.raw(e), "iota") {
			continue
		}
		for _, a := range f.alternatives(e, c.Type()) {
			f.consts[c] = append(f.consts[c], &constMutant{kind: a.kind, before: s.Names[i].Name + " = " + f.text(e),
				after: a.text,
				value: a.value, pos: a.pos, src: f.src})
		}
	}
}

// alternative is a constant expression with one of its numbers changed.
type alternative struct {
	kind, text, value string
	pos               token.Pos
}

// alternatives returns the alternatives of an expression whose value is of a type and differs.
func (f *finder) alternatives(e ast.Expr, t types.Type) []alternative {
	var out []alternative
	ast.Inspect(e, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.INT && lit.Kind != token.FLOAT {
			return true
		}
		text := f.replaced(e, lit, changed(lit))
		if value, ok := f.value(e, text, t); ok {
			out = append(out, alternative{"constant", strings.Join(strings.Fields(text), " "), value, lit.Pos()})
		}
		return true
	})
	return out
}

// changed returns the number after a number: 1 for 0 and 0 for 1, and of others with a point the double.
func changed(lit *ast.BasicLit) string {
	v := constant.MakeFromLiteral(lit.Value, lit.Kind, 0)
	one := constant.MakeInt64(1)
	switch {
	case constant.Sign(v) == 0:
		return "1"
	case lit.Kind == token.FLOAT:
		return floatText(constant.BinaryOp(v, token.ADD, v))
	case constant.Compare(v, token.EQL, one):
		return "0"
	}
	return constant.BinaryOp(v, token.ADD, one).ExactString()
}

func floatText(v constant.Value) string {
	x, _ := constant.Float64Val(constant.ToFloat(v))
	s := strconv.FormatFloat(x, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// replaced returns the text of e with a part of it changed.
func (f *finder) replaced(e ast.Expr, part ast.Node, to string) string {
	at := f.off(part.Pos()) - f.off(e.Pos())
	raw := f.raw(e)
	return raw[:at] + to + raw[at+len(f.raw(part)):]
}

// value returns what a changed text of e comes to, if that is something else that the type can hold.
func (f *finder) value(e ast.Expr, text string, t types.Type) (string, bool) {
	tv, err := types.Eval(f.fset, f.pkg, e.Pos(), text)
	if err != nil || tv.Value == nil {
		return "", false
	}
	was := f.info.Types[e].Value
	b, ok := t.Underlying().(*types.Basic)
	if !ok || b.Info()&types.IsNumeric == 0 || was == nil || constant.Compare(was, token.EQL, tv.Value) {
		return "", false
	}
	if b.Info()&types.IsFloat != 0 {
		x, _ := constant.Float64Val(constant.ToFloat(tv.Value))
		return floatText(tv.Value), !math.IsInf(x, 0)
	}
	v := constant.ToInt(tv.Value)
	return v.ExactString(), v.Kind() == constant.Int
}

// constant mutates an expression that is computed when the package is compiled.
func (f *finder) constant(e ast.Expr, tv types.TypeAndValue) {
	if id, ok := e.(*ast.Ident); ok && (id.Name == "true" || id.Name == "false") && f.info.Uses[id].Pkg() == nil {
		m := f.mutant(e.Pos(), "boolean", id.Name, map[string]string{"true": "false", "false": "true"}[id.Name])
		f.place(e, f.around(e, "(", " != "+is(m)+")"), m)
		return
	}
	name := f.out.named.of(tv.Type)
	if name == "" || !f.numeric(e) {
		return
	}
	for _, a := range f.alternatives(e, tv.Type) {
		f.pick(e, name, a.value, f.mutant(a.pos, a.kind, f.text(e), a.text))
	}
	f.namedIn(e, name, tv.Type)
}

// namedIn gives an expression the mutants of the named constants in it.
func (f *finder) namedIn(e ast.Expr, name string, t types.Type) {
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		for _, c := range f.consts[f.info.Uses[id]] {
			if value, ok := f.value(e, f.replaced(e, id, "("+c.value+")"), t); ok {
				f.pick(e, name, value, f.made(c, id.Name))
			}
		}
		return true
	})
}

// made returns the mutant of a constant's declaration, which is made when it is first used.
func (f *finder) made(c *constMutant, name string) *mutant {
	if c.made == nil {
		src, fn := f.src, f.fn
		f.src, f.fn = c.src, "const "+name
		c.made = f.mutant(c.pos, c.kind, c.before, c.after)
		f.src, f.fn = src, fn
	}
	return c.made
}

func (f *finder) pick(e ast.Expr, name, value string, m *mutant) {
	f.place(e, f.around(e, fmt.Sprintf("mutPick[%s](%d, ", name, m.id), ", "+value+")"), m)
}
