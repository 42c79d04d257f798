package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// nearest: a tile of products of some centres, broadcast, with rows in lanes;
// what it comes to goes into the rows' best so far, or also into their second best.
func nearest(t target, two bool) {
	tall, groups := t.tile()
	if two {
		TEXT("nearestTwo"+t.name, NOSPLIT, "func(best, index, centres, norms, numbers, rows *float64, d int, second "+
			"*float64)")
		Doc("nearestTwo" + t.name + " does what nearest" + t.name +
			" does, and sets second to the least of the others.")
	} else {
		TEXT("nearest"+t.name, NOSPLIT, "func(best, index, centres, norms, numbers, rows *float64, d int)")
		Doc("nearest" + t.name + " compares norms[i] − 2·centre i·row for a tile of centres with best of each row, " +
			"and where it is less sets best to it and index to numbers[i].")
	}
	Pragma("noescape")
	best, index := Load(Param("best"), GP64()), Load(Param("index"), GP64())
	centres, norms := Load(Param("centres"), GP64()), Load(Param("norms"), GP64())
	rows, d := Load(Param("rows"), GP64()), Load(Param("d"), GP64())
	acc := make([][]reg.VecVirtual, tall)
	for i := range acc {
		for range groups {
			v := t.vec()
			t.zero(v)
			acc[i] = append(acc[i], v)
		}
	}
	one := t.vec()
	right := make([]reg.VecVirtual, groups)
	for g := range right {
		right[g] = t.vec()
	}
	Label("loop")
	TESTQ(d, d)
	JZ(operand.LabelRef("done"))
	for g := range right {
		VMOVUPD(operand.Mem{Base: rows, Disp: 8 * t.lanes * g}, right[g])
	}
	for i := range acc {
		VBROADCASTSD(operand.Mem{Base: centres, Disp: 8 * i}, one)
		for g := range right {
			VFMADD231PD(right[g], one, acc[i][g])
		}
	}
	ADDQ(operand.U32(uint32(8*t.lanes*groups)), rows)
	ADDQ(operand.U32(uint32(8*tall)), centres)
	DECQ(d)
	JMP(operand.LabelRef("loop"))
	Label("done")
	numbers := Load(Param("numbers"), GP64())
	var second reg.Register
	if two {
		second = Load(Param("second"), GP64())
	}
	// the registers of the rows are free now
	for i := range acc {
		norm, at, mask, was := right[0], right[1], right[2], one
		VBROADCASTSD(operand.Mem{Base: norms, Disp: 8 * i}, norm)
		VBROADCASTSD(operand.Mem{Base: numbers, Disp: 8 * i}, at)
		for g, v := range acc[i] {
			VADDPD(v, v, v)
			VSUBPD(v, norm, v) // as −2·v + norm, fused: doubling is exact
			bestAt, indexAt := operand.Mem{Base: best, Disp: 8 * t.lanes * g},
				operand.Mem{Base: index, Disp: 8 * t.lanes * g}
			VMOVUPD(bestAt, was)
			if two {
				secondAt := operand.Mem{Base: second, Disp: 8 * t.lanes * g}
				VMAXPD(was, v, mask)
				VMINPD(secondAt, mask, mask)
				VMOVUPD(mask, secondAt)
			}
			if t.wide() {
				less := K()
				VCMPPD(operand.U8(17), was, v, less) // v < was, ordered, quiet
				VMOVUPD(v, less, bestAt)
				VMOVUPD(at, less, indexAt)
			} else {
				VCMPPD(operand.U8(17), was, v, mask)
				VMASKMOVPD(v, mask, bestAt)
				VMASKMOVPD(at, mask, indexAt)
			}
		}
	}
	VZEROUPPER()
	RET()
}

// products: of rows in lanes with a centre each, which are gathered from wherever
// they lie.
func products(t target) {
	tall, groups := t.tile()
	TEXT("products"+t.name, NOSPLIT, "func(out, centres *float64, at *int64, rows *float64, d int)")
	Pragma("noescape")
	Doc("products" + t.name + " sets out to the products of rows that lie in lanes with centres of which the first " +
		"columns are the numbers at[i] of centres.")
	out, centres, at := Load(Param("out"), GP64()), Load(Param("centres"), GP64()), Load(Param("at"), GP64())
	rows, d := Load(Param("rows"), GP64()), Load(Param("d"), GP64())
	acc, where := make([]reg.VecVirtual, groups), make([]reg.VecVirtual, groups)
	for g := range acc {
		acc[g], where[g] = t.vec(), t.vec()
		t.zero(acc[g])
		if t.wide() {
			VMOVDQU64(operand.Mem{Base: at, Disp: 8 * t.lanes * g}, where[g])
		} else {
			VMOVDQU(operand.Mem{Base: at, Disp: 8 * t.lanes * g}, where[g])
		}
	}
	centre, mask := t.vec(), t.vec()
	Label("loop")
	TESTQ(d, d)
	JZ(operand.LabelRef("done"))
	for g := range acc {
		from := operand.Mem{Base: centres, Index: where[g], Scale: 8}
		if t.wide() {
			all := K()
			KXNORW(all, all, all)
			t.zero(centre) // nothing is waited for
			VGATHERQPD(from, all, centre)
		} else {
			VPCMPEQD(mask, mask, mask)
			VGATHERQPD(mask, from, centre)
		}
		VFMADD231PD(operand.Mem{Base: rows, Disp: 8 * t.lanes * g}, centre, acc[g])
	}
	ADDQ(operand.U32(uint32(8*t.lanes*groups)), rows)
	ADDQ(operand.U32(uint32(8*tall)), centres)
	DECQ(d)
	JMP(operand.LabelRef("loop"))
	Label("done")
	for g := range acc {
		VMOVUPD(acc[g], operand.Mem{Base: out, Disp: 8 * t.lanes * g})
	}
	VZEROUPPER()
	RET()
}

// addRows: each row of some to one of several sums.
func addRows(t target) {
	TEXT("addRows"+t.name, NOSPLIT, "func(sums *float64, at *int32, x *float64, rows *int32, n, d int)")
	Pragma("noescape")
	Doc("addRows" + t.name + " adds n rows of d columns of x, given by number, to the rows at[i] of sums.")
	sums, at, x := Load(Param("sums"), GP64()), Load(Param("at"), GP64()), Load(Param("x"), GP64())
	rows, n, d := Load(Param("rows"), GP64()), Load(Param("n"), GP64()), Load(Param("d"), GP64())
	whole, rem := GP64(), GP64()
	MOVQ(d, whole)
	ANDQ(operand.I32(-8), whole)
	MOVQ(d, rem)
	SUBQ(whole, rem)
	tl := t.tail(rem.(reg.GPVirtual), false)
	i, j, from, to := GP64(), GP64(), GP64(), GP64()
	XORQ(i, i)
	Label("rows")
	CMPQ(i, n)
	JGE(operand.LabelRef("done"))
	rowAddress(rows, i, x, d, from)
	rowAddress(at, i, sums, d, to)
	XORQ(j, j)
	Label("columns")
	CMPQ(j, whole)
	JGE(operand.LabelRef("rest"))
	for h := range t.halves() {
		v, m := t.vec(), operand.Mem{Base: to, Index: j, Scale: 8, Disp: 32 * h}
		VMOVUPD(operand.Mem{Base: from, Index: j, Scale: 8, Disp: 32 * h}, v)
		VADDPD(m, v, v)
		VMOVUPD(v, m)
	}
	ADDQ(operand.U32(8), j)
	JMP(operand.LabelRef("columns"))
	Label("rest")
	TESTQ(rem, rem)
	JZ(operand.LabelRef("next"))
	for h := range t.halves() {
		m := operand.Mem{Base: to, Index: j, Scale: 8}
		v, sum := t.loadTail(tl, operand.Mem{Base: from, Index: j, Scale: 8}, false, h), t.loadTail(tl, m, false, h)
		VADDPD(v, sum, sum)
		t.storeTail(tl, sum, m, h)
	}
	Label("next")
	INCQ(i)
	JMP(operand.LabelRef("rows"))
	Label("done")
	VZEROUPPER()
	RET()
}

// rowAddress emits the address of the row of d numbers whose index is the i-th of some.
func rowAddress(numbers, i, x, d, out reg.Register) {
	MOVLQSX(operand.Mem{Base: numbers, Index: i, Scale: 4}, out)
	IMULQ(d, out)
	LEAQ(operand.Mem{Base: x, Index: out, Scale: 8}, out)
}
