package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pipeline: the dots of n rows of the next block between the accumulation of
// n rows of the current one, four and four, n a multiple of four. While the
// next rows are on their way from memory the current ones, which are in the
// nearest cache, keep the units busy.
func pipeline(t target, single bool) {
	size, suffix := elem(single)
	TEXT("pipeline"+suffix+t.name, NOSPLIT, "func(z, w, sum, coef *float64, next, current *uintptr, n, d int)")
	Pragma("noescape")
	Doc("pipeline" + suffix + t.name + " computes z[i] = w · next[i] and adds coef[i] times current[i] to sum, rows given by address.")
	z, w := Load(Param("z"), GP64()), Load(Param("w"), GP64())
	sum, coef := Load(Param("sum"), GP64()), Load(Param("coef"), GP64())
	next, current := Load(Param("next"), GP64()), Load(Param("current"), GP64())
	n, d := Load(Param("n"), GP64()), Load(Param("d"), GP64())
	rem := GP64()
	MOVQ(d, rem)
	ANDQ(operand.U8(7), rem)
	tl := t.tail(rem.(reg.GPVirtual), single)
	whole := d
	SUBQ(rem, whole)
	Label("loop")
	CMPQ(n, operand.U8(4))
	JL(operand.LabelRef("done"))
	t.fourDots(z, w, next, whole, rem, tl, single, size)
	t.fourAdds(sum, coef, current, whole, rem, tl, single, size)
	for _, p := range []reg.Register{z, coef, next, current} {
		ADDQ(operand.U8(32), p)
	}
	SUBQ(operand.U8(4), n)
	JMP(operand.LabelRef("loop"))
	Label("done")
	VZEROUPPER()
	RET()
}

// rowsAt loads the addresses of four rows.
func rowsAt(list reg.Register) []reg.Register {
	out := make([]reg.Register, 4)
	for r := range out {
		out[r] = GP64()
		MOVQ(operand.Mem{Base: list, Disp: 8 * r}, out[r])
	}
	return out
}

func (t target) fourDots(z, w, list, whole, rem reg.Register, tl tail, single bool, size int) {
	ptr := rowsAt(list)
	acc := make([][]reg.VecVirtual, 4)
	for r := range acc {
		for range t.halves() {
			v := t.vec()
			t.zero(v)
			acc[r] = append(acc[r], v)
		}
	}
	j := GP64()
	XORQ(j, j)
	Label("dots")
	CMPQ(j, whole)
	JGE(operand.LabelRef("dots_tail"))
	for h := range t.halves() {
		wv := t.vec()
		VMOVUPD(operand.Mem{Base: w, Index: j, Scale: 8, Disp: 32 * h}, wv)
		for r := range ptr {
			m := operand.Mem{Base: ptr[r], Index: j, Scale: uint8(size), Disp: 4 * size * h}
			if single {
				VFMADD231PD(t.load(m, true), wv, acc[r][h])
			} else {
				VFMADD231PD(m, wv, acc[r][h])
			}
		}
	}
	ADDQ(operand.U8(8), j)
	JMP(operand.LabelRef("dots"))
	Label("dots_tail")
	TESTQ(rem, rem)
	JZ(operand.LabelRef("dots_sum"))
	for h := range t.halves() {
		wv := t.loadTail(tl, operand.Mem{Base: w, Index: j, Scale: 8}, false, h)
		for r := range ptr {
			VFMADD231PD(t.loadTail(tl, operand.Mem{Base: ptr[r], Index: j, Scale: uint8(size)}, single, h), wv, acc[r][h])
		}
	}
	Label("dots_sum")
	for r := range ptr {
		t.combine(acc[r], operand.Mem{Base: z, Disp: 8 * r})
	}
}

func (t target) fourAdds(sum, coef, list, whole, rem reg.Register, tl tail, single bool, size int) {
	ptr := rowsAt(list)
	c := make([]reg.VecVirtual, 4)
	for r := range c {
		c[r] = t.vec()
		VBROADCASTSD(operand.Mem{Base: coef, Disp: 8 * r}, c[r])
	}
	j := GP64()
	XORQ(j, j)
	Label("adds")
	CMPQ(j, whole)
	JGE(operand.LabelRef("adds_tail"))
	for h := range t.halves() {
		s := t.vec()
		to := operand.Mem{Base: sum, Index: j, Scale: 8, Disp: 32 * h}
		VMOVUPD(to, s)
		for r := range ptr {
			m := operand.Mem{Base: ptr[r], Index: j, Scale: uint8(size), Disp: 4 * size * h}
			if single {
				VFMADD231PD(t.load(m, true), c[r], s)
			} else {
				VFMADD231PD(m, c[r], s)
			}
		}
		VMOVUPD(s, to)
	}
	ADDQ(operand.U8(8), j)
	JMP(operand.LabelRef("adds"))
	Label("adds_tail")
	TESTQ(rem, rem)
	JZ(operand.LabelRef("adds_done"))
	for h := range t.halves() {
		to := operand.Mem{Base: sum, Index: j, Scale: 8}
		s := t.loadTail(tl, to, false, h)
		for r := range ptr {
			VFMADD231PD(t.loadTail(tl, operand.Mem{Base: ptr[r], Index: j, Scale: uint8(size)}, single, h), c[r], s)
		}
		if t.wide() {
			VMOVUPD(s, tl.k, to)
		} else {
			VMASKMOVPD(s, tl.m64[h], to.Offset(32*h))
		}
	}
	Label("adds_done")
}
