package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// callee returns what a call calls, nil for a value.
func (f *finder) callee(c *ast.CallExpr) types.Object {
	switch fun := c.Fun.(type) {
	case *ast.Ident:
		return f.info.Uses[fun]
	case *ast.SelectorExpr:
		return f.info.Uses[fun.Sel]
	}
	return nil
}

func pathOf(o types.Object) string {
	if o.Pkg() == nil {
		return ""
	}
	return o.Pkg().Path()
}

// aside reports whether a call is only there for what people read, or for what cannot happen.
func (f *finder) aside(c *ast.CallExpr) bool {
	o := f.callee(c)
	if o == nil {
		return false
	}
	if b, ok := o.(*types.Builtin); ok {
		return b.Name() == "panic"
	}
	path := pathOf(o)
	return slices.Contains([]string{"fmt", "errors", "log", "log/slog", "github.com/hashicorp/go-hclog"}, path) ||
		strings.HasSuffix(path, "/internal/fault")
}

// isHook reports whether a call is to a hook, which is what it is given, or does nothing, where no bug can be planted.
func (f *finder) isHook(c *ast.CallExpr) bool {
	o := f.callee(c)
	return o != nil && o.Pkg() == f.pkg && filepath.Base(f.fset.Position(o.Pos()).Filename) == hooks
}

func (f *finder) call(c *ast.CallExpr) bool {
	if f.aside(c) {
		return false
	}
	b, ok := f.callee(c).(*types.Builtin)
	if !ok {
		return true
	}
	switch b.Name() {
	case "make":
		f.sizeHints(c)
	case "min", "max":
		f.extreme(c, b.Name())
	}
	return true
}

// sizeHints leaves alone what changes nothing but how much memory is taken at first.
func (f *finder) sizeHints(c *ast.CallExpr) {
	switch f.info.Types[c.Args[0]].Type.Underlying().(type) {
	case *types.Map:
		f.skipAll(c.Args[1:])
	case *types.Slice:
		f.skipAll(c.Args[2:])
	}
}

func (f *finder) skipAll(list []ast.Expr) {
	for _, e := range list {
		f.skip[e] = true
	}
}

func (f *finder) extreme(c *ast.CallExpr, name string) {
	if len(c.Args) != 2 {
		return
	}
	other, helper := "max", "mutMin"
	if name == "max" {
		other, helper = "min", "mutMax"
	}
	m := f.mutant(c.Pos(), "min/max", f.text(c), other+strings.TrimPrefix(f.text(c), name))
	open := insert{off: f.off(c.Pos()), del: f.off(c.Args[0].Pos()) - f.off(c.Pos()), rank: prefix,
		text: fmt.Sprintf("%s(%d, ", helper, m.id)}
	f.place(c, []insert{open}, m)
}

// binary mutates an operator.
func (f *finder) binary(e *ast.BinaryExpr) {
	switch e.Op {
	case token.LAND, token.LOR:
		f.joined(e)
	case token.EQL, token.NEQ:
		m := f.mutant(e.OpPos, "equality", f.text(e),
			f.other(e, map[token.Token]token.Token{token.EQL: token.NEQ, token.NEQ: token.EQL}[e.Op]))
		f.place(e, f.around(e, "((", ") != "+is(m)+")"), m)
	case token.LSS, token.GTR, token.LEQ, token.GEQ:
		f.compare(e)
	case token.ADD, token.SUB, token.MUL, token.QUO:
		f.arithmetic(e)
	}
}

// other returns the text of an expression with another operator, and with parentheses around what
// that would tear apart.
func (f *finder) other(e *ast.BinaryExpr, op token.Token) string {
	return f.closed(e.X, op) + " " + op.String() + " " + f.closed(e.Y, op)
}

func (f *finder) closed(e ast.Expr, op token.Token) string {
	if inner, pair := e.(*ast.BinaryExpr); pair && inner.Op.Precedence() < op.Precedence() {
		return "(" + f.text(e) + ")"
	}
	return f.text(e)
}

// joined mutates && or ||: one for the other, and each operand that is not itself made of parts, negated.
func (f *finder) joined(e *ast.BinaryExpr) {
	other := map[token.Token]token.Token{token.LAND: token.LOR, token.LOR: token.LAND}[e.Op]
	m := f.mutant(e.OpPos, "and/or", f.text(e), f.other(e, other))
	at := f.around(e, "((((", ") != "+is(m)+")) != "+is(m)+")")
	f.place(e, append(at, f.instead(e.OpPos, e.Op, ") != "+is(m)+") "+e.Op.String()+" ((")), m)
	f.operand(e.X)
	f.operand(e.Y)
}

func (f *finder) operand(e ast.Expr) {
	if inner, ok := e.(*ast.ParenExpr); ok {
		f.operand(inner.X)
	} else if _, pair := e.(*ast.BinaryExpr); !pair {
		f.condition(e)
	}
}

// comparison is what a bound becomes when it moves by one, and when it is turned round.
type comparison struct {
	edge, round token.Token
	helper      string
}

var comparisons = map[token.Token]comparison{
	token.LSS: {token.LEQ, token.GEQ, "mutLT"}, token.GTR: {token.GEQ, token.LEQ, "mutGT"},
	token.LEQ: {token.LSS, token.GTR, "mutLE"}, token.GEQ: {token.GTR, token.LSS, "mutGE"},
}

func (f *finder) compare(e *ast.BinaryExpr) {
	to := comparisons[e.Op]
	a, b := f.mutant(e.OpPos, "boundary", f.text(e), f.other(e, to.edge)),
		f.mutant(e.OpPos, "reversal", f.text(e), f.other(e, to.round))
	at := f.around(e, fmt.Sprintf("(%s(%d, ", to.helper, a.id), ") != "+is(b)+")")
	f.place(e, append(at, f.instead(e.OpPos, e.Op, ",")), a, b)
}

// exchange is the operator that stands for another, and what chooses between them.
type exchange struct {
	op     token.Token
	helper string
}

var arithmetic = map[token.Token]exchange{
	token.ADD: {token.SUB, "mutAdd"}, token.SUB: {token.ADD, "mutSub"}, token.MUL: {token.QUO, "mutMul"},
	token.QUO: {token.MUL, "mutDiv"},
}

func (f *finder) arithmetic(e *ast.BinaryExpr) {
	if !f.numeric(e) {
		return
	}
	to := arithmetic[e.Op]
	m := f.mutant(e.OpPos, "arithmetic", f.text(e), f.other(e, to.op))
	at := f.around(e, fmt.Sprintf("%s(%d, ", to.helper, m.id), ")")
	f.place(e, append(at, f.instead(e.OpPos, e.Op, ",")), m)
}

func (f *finder) numeric(e ast.Expr) bool {
	t := f.info.Types[e].Type
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsInteger|types.IsFloat) != 0 && b.Info()&types.IsUntyped == 0
}

// step mutates ++ or --.
func (f *finder) step(s *ast.IncDecStmt) {
	if !simple(s.X) {
		return
	}
	helper, other := "mutInc", "--"
	if s.Tok == token.DEC {
		helper, other = "mutDec", "++"
	}
	m := f.mutant(s.TokPos, "arithmetic", f.text(s), f.text(s.X)+other)
	f.place(s, []insert{f.instead(s.TokPos, s.Tok, fmt.Sprintf(" = %s(%d, %s)", helper, m.id, f.raw(s.X)))}, m)
}

var updates = map[token.Token]token.Token{
	token.ADD_ASSIGN: token.ADD, token.SUB_ASSIGN: token.SUB, token.MUL_ASSIGN: token.MUL, token.QUO_ASSIGN: token.QUO,
}

// update mutates an assignment that adds or subtracts.
func (f *finder) update(s *ast.AssignStmt) {
	op, ok := updates[s.Tok]
	if !ok || !simple(s.Lhs[0]) || !f.numeric(s.Lhs[0]) {
		return
	}
	to := arithmetic[op]
	m := f.mutant(s.TokPos, "arithmetic", f.text(s), f.text(s.Lhs[0])+" "+to.op.String()+"= "+f.text(s.Rhs[0]))
	f.skip[s.Lhs[0]] = true
	at := []insert{f.instead(s.TokPos, s.Tok, fmt.Sprintf("= %s(%d, %s, ", to.helper, m.id, f.raw(s.Lhs[0]))),
		{off: f.off(s.End()), rank: suffix, text: ")"}}
	f.place(s, at, m)
}

// simple reports whether an expression can be computed twice.
func simple(e ast.Expr) bool {
	ok := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr, *ast.FuncLit:
			ok = false
		case *ast.UnaryExpr:
			ok = ok && n.Op != token.ARROW
		}
		return ok
	})
	return ok
}
