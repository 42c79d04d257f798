package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// steps is the code of stochastic gradient descent: numbers that it keeps in registers, by their names.
type steps struct {
	target
	rule, step       reg.Register
	rank, whole, rem reg.Register
	reg, rate, other reg.VecVirtual // the penalty, and the rates of the row and of the column
}

// The numbers of a rule, by where they are.
const (
	ruleMean = 8 * iota
	ruleRate
	ruleReg
	ruleInverse // of the rank
	ruleOwn     // 0 is that rows and columns have no numbers of their own
	ruleSquares // that the errors' are added to
)

// descent: for each of n ratings a step of its row's and its column's factors.
func descent(t target) {
	TEXT("descent"+t.name, NOSPLIT, "func(rule, rows, columns *float64, ratings *int32, n, rank int)")
	Pragma("noescape")
	Doc("descent" + t.name + " makes a step of stochastic gradient descent for each rating.")
	s := &steps{target: t, rule: Load(Param("rule"), GP64()), rank: Load(Param("rank"), GP64()), whole: GP64(),
		rem: GP64(), step: GP64(), reg: t.vec(), rate: t.vec(), other: t.vec()}
	rows, columns := Load(Param("rows"), GP64()), Load(Param("columns"), GP64())
	at, n := Load(Param("ratings"), GP64()), Load(Param("n"), GP64())
	last := GP64()
	MOVQ(s.rank, s.whole)
	ANDQ(operand.I32(-8), s.whole)
	MOVQ(s.rank, s.rem)
	SUBQ(s.whole, s.rem)
	LEAQ(operand.Mem{Base: s.rank, Disp: 2}, s.step)
	SHLQ(operand.U8(3), s.step)
	VBROADCASTSD(operand.Mem{Base: s.rule, Disp: ruleReg}, s.reg)
	MOVQ(operand.I32(-1), last)
	Label("rating")
	TESTQ(n, n)
	JZ(operand.LabelRef("done"))
	number, row, column := GP64(), GP64(), GP64()
	MOVLQSX(operand.Mem{Base: at}, number)
	MOVQ(number, row)
	IMULQ(s.step, row)
	ADDQ(rows, row)
	MOVLQSX(operand.Mem{Base: at, Disp: 4}, column)
	IMULQ(s.step, column)
	ADDQ(columns, column)
	CMPQ(number, last)
	JE(operand.LabelRef("same"))
	MOVQ(number, last)
	s.rateOf(row, s.rate)
	Label("same")
	s.rateOf(column, s.other)
	s.move(row, column, s.off(row, column, at))
	ADDQ(operand.U32(16), at)
	DECQ(n)
	JMP(operand.LabelRef("rating"))
	Label("done")
	VZEROUPPER()
	RET()
}

// own returns where a row's, or a column's, own numbers are.
func (s *steps) own(of reg.Register, k int) operand.Mem {
	return operand.Mem{Base: of, Index: s.rank, Scale: 8, Disp: 8 * k}
}

// rateOf has the rate of a row, or a column, in all lanes.
func (s *steps) rateOf(of reg.Register, to reg.VecVirtual) {
	moved, rate := XMM(), XMM()
	VMOVSD(s.own(of, 1), moved)
	VADDSD(one, moved, moved)
	VSQRTSD(moved, moved, moved)
	VMOVSD(operand.Mem{Base: s.rule, Disp: ruleRate}, rate)
	VDIVSD(moved, rate, rate)
	VBROADCASTSD(rate, to)
}

// piece is what is left of factors after whole groups of 8: 4, 2 or 1 numbers of them, so that what is loaded next is
// what was stored: a load that is wider than the store before it waits for memory.
type piece struct {
	numbers int
	vec     func() reg.VecVirtual
	load    func(from, to operand.Op)
}

func pieces() []piece {
	return []piece{{4, YMM, func(from, to operand.Op) { VMOVUPD(from, to) }},
		{2, XMM, func(from, to operand.Op) { VMOVUPD(from, to) }},
		{1, XMM, func(from, to operand.Op) { VMOVSD(from, to) }}}
}

// left calls do for each piece that there is, with where it begins.
func (s *steps) left(name string, j reg.Register, do func(p piece)) {
	for _, p := range pieces() {
		none := name + "_no" + string(rune('0'+p.numbers))
		TESTQ(operand.I32(int32(p.numbers)), s.rem)
		JZ(operand.LabelRef(none))
		do(p)
		ADDQ(operand.U32(uint32(p.numbers)), j)
		Label(none)
	}
}

// sum returns that of a piece's lanes.
func (p piece) sum(v reg.VecVirtual) reg.VecVirtual {
	x, y := XMM(), XMM()
	switch p.numbers {
	case 1:
		return v
	case 2:
		x = v
	default:
		VEXTRACTF128(operand.U8(0), v, x)
		VEXTRACTF128(operand.U8(1), v, y)
		VADDPD(y, x, x)
	}
	VPERMILPD(operand.U8(1), x, y)
	out := XMM()
	VADDSD(y, x, out)
	return out
}

// off returns by how much a rating is off, in all lanes.
func (s *steps) off(row, column, at reg.Register) reg.VecVirtual {
	acc := make([]reg.VecVirtual, s.halves())
	for h := range acc {
		acc[h] = s.vec()
		s.zero(acc[h])
	}
	j := GP64()
	XORQ(j, j)
	Label("product")
	CMPQ(j, s.whole)
	JGE(operand.LabelRef("product_left"))
	for h := range acc {
		a := s.load(operand.Mem{Base: row, Index: j, Scale: 8, Disp: 32 * h}, false)
		VFMADD231PD(operand.Mem{Base: column, Index: j, Scale: 8, Disp: 32 * h}, a, acc[h])
	}
	ADDQ(operand.U32(8), j)
	JMP(operand.LabelRef("product"))
	Label("product_left")
	product := s.sum(acc)
	s.left("product", j, func(p piece) {
		a, b := p.vec(), p.vec()
		p.load(operand.Mem{Base: row, Index: j, Scale: 8}, a)
		p.load(operand.Mem{Base: column, Index: j, Scale: 8}, b)
		VMULPD(b, a, a)
		VADDSD(p.sum(a), product, product)
	})
	off, squares := XMM(), XMM()
	VMOVSD(operand.Mem{Base: at, Disp: 8}, off)
	VSUBSD(operand.Mem{Base: s.rule, Disp: ruleMean}, off, off)
	VSUBSD(s.own(row, 0), off, off)
	VSUBSD(s.own(column, 0), off, off)
	VSUBSD(product, off, off)
	VMOVSD(operand.Mem{Base: s.rule, Disp: ruleSquares}, squares)
	VFMADD231SD(off, off, squares)
	VMOVSD(squares, operand.Mem{Base: s.rule, Disp: ruleSquares})
	all := s.vec()
	VBROADCASTSD(off, all)
	return all
}

// move moves a row and a column by the step for a rating that is off.
func (s *steps) move(row, column reg.Register, off reg.VecVirtual) {
	ofRow, ofColumn := make([]reg.VecVirtual, s.halves()), make([]reg.VecVirtual, s.halves())
	for h := range ofRow {
		ofRow[h], ofColumn[h] = s.vec(), s.vec()
		s.zero(ofRow[h])
		s.zero(ofColumn[h])
	}
	j := GP64()
	XORQ(j, j)
	Label("move")
	CMPQ(j, s.whole)
	JGE(operand.LabelRef("move_left"))
	for h := range ofRow {
		x := operand.Mem{Base: row, Index: j, Scale: 8, Disp: 32 * h}
		y := operand.Mem{Base: column, Index: j, Scale: 8, Disp: 32 * h}
		a, b := s.load(x, false), s.load(y, false)
		ga, gb := s.moved(s.vec, func(v reg.VecVirtual) reg.VecVirtual { return v }, off, a, b)
		VFMADD231PD(ga, ga, ofRow[h])
		VFMADD231PD(gb, gb, ofColumn[h])
		VMOVUPD(a, x)
		VMOVUPD(b, y)
	}
	ADDQ(operand.U32(8), j)
	JMP(operand.LabelRef("move"))
	Label("move_left")
	sumRow, sumColumn := s.sum(ofRow), s.sum(ofColumn)
	s.left("move", j, func(p piece) {
		x, y := operand.Mem{Base: row, Index: j, Scale: 8}, operand.Mem{Base: column, Index: j, Scale: 8}
		a, b := p.vec(), p.vec()
		p.load(x, a)
		p.load(y, b)
		ga, gb := s.moved(p.vec, p.part, off, a, b)
		VMULPD(ga, ga, ga)
		VMULPD(gb, gb, gb)
		VADDSD(p.sum(ga), sumRow, sumRow)
		VADDSD(p.sum(gb), sumColumn, sumColumn)
		p.load(a, x)
		p.load(b, y)
	})
	s.note(row, sumRow)
	s.note(column, sumColumn)
	has := GP64()
	MOVQ(operand.Mem{Base: s.rule, Disp: ruleOwn}, has)
	TESTQ(has, has)
	JZ(operand.LabelRef("moved"))
	s.moveOwn(row, off, s.rate)
	s.moveOwn(column, off, s.other)
	Label("moved")
}

// part returns the first lanes of a register.
func (p piece) part(v reg.VecVirtual) reg.VecVirtual {
	if p.numbers == 4 {
		return v.AsY().(reg.VecVirtual)
	}
	return v.AsX().(reg.VecVirtual)
}

// moved moves numbers of a row, and those of a column, and returns the gradients.
func (s *steps) moved(vec func() reg.VecVirtual, part func(reg.VecVirtual) reg.VecVirtual, off, a,
	b reg.VecVirtual) (ga, gb reg.VecVirtual) {
	ga, gb = vec(), vec()
	VMULPD(a, part(s.reg), ga)
	VFMSUB231PD(part(off), b, ga)
	VMULPD(b, part(s.reg), gb)
	VFMSUB231PD(part(off), a, gb)
	VFMADD231PD(part(s.rate), ga, a)
	VFMADD231PD(part(s.other), gb, b)
	return ga, gb
}

// note adds the mean of squares to what a row, or a column, has moved.
func (s *steps) note(of reg.Register, sum reg.VecVirtual) {
	moved := XMM()
	VMOVSD(s.own(of, 1), moved)
	VFMADD231SD(operand.Mem{Base: s.rule, Disp: ruleInverse}, sum, moved)
	VMOVSD(moved, s.own(of, 1))
}

// moveOwn moves a row's, or a column's, own number.
func (s *steps) moveOwn(of reg.Register, off, rate reg.VecVirtual) {
	own, gradient := XMM(), XMM()
	VMOVSD(s.own(of, 0), own)
	VMOVAPD(off.AsX(), gradient)
	VFNMADD231SD(s.reg.AsX(), own, gradient)
	VFMADD231SD(rate.AsX(), gradient, own)
	VMOVSD(own, s.own(of, 0))
}
