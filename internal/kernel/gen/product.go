package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tile returns the size of a tile of a product that the registers hold: rows,
// and registers of columns.
func (t target) tile() (tall, groups int) {
	if t.wide() {
		return 8, 3
	}
	return 4, 3
}

// product: a tile of a matrix product, kept in registers over all k. A row of
// the tile is broadcast from a, whose entries of one k lie side by side; b has
// a whole row of the tile for each k.
func product(t target) {
	rows, groups := t.tile()
	TEXT("product"+t.name, NOSPLIT, "func(c *float64, cStep int, a *float64, aStep int, b *float64, k int)")
	Pragma("noescape")
	Doc("product" + t.name + " adds Σ_k a[k·aStep+i]·b[k·width+j] to every c[i·cStep+j] of a tile, k in order; steps " +
		"in entries.")
	c, cStep := Load(Param("c"), GP64()), Load(Param("cStep"), GP64())
	a, aStep := Load(Param("a"), GP64()), Load(Param("aStep"), GP64())
	b, k := Load(Param("b"), GP64()), Load(Param("k"), GP64())
	SHLQ(operand.U8(3), cStep)
	SHLQ(operand.U8(3), aStep)
	acc := make([][]reg.VecVirtual, rows)
	row := GP64()
	MOVQ(c, row)
	for i := range acc {
		for g := range groups {
			v := t.vec()
			VMOVUPD(operand.Mem{Base: row, Disp: 8 * t.lanes * g}, v)
			acc[i] = append(acc[i], v)
		}
		ADDQ(cStep, row)
	}
	one := t.vec()
	right := make([]reg.VecVirtual, groups)
	for g := range right {
		right[g] = t.vec()
	}
	Label("loop")
	TESTQ(k, k)
	JZ(operand.LabelRef("done"))
	for g := range right {
		VMOVUPD(operand.Mem{Base: b, Disp: 8 * t.lanes * g}, right[g])
	}
	for i := range acc {
		VBROADCASTSD(operand.Mem{Base: a, Disp: 8 * i}, one)
		for g := range right {
			VFMADD231PD(right[g], one, acc[i][g])
		}
	}
	ADDQ(operand.U32(uint32(8*t.lanes*groups)), b)
	ADDQ(aStep, a)
	DECQ(k)
	JMP(operand.LabelRef("loop"))
	Label("done")
	MOVQ(c, row)
	for i := range acc {
		for g := range groups {
			VMOVUPD(acc[i][g], operand.Mem{Base: row, Disp: 8 * t.lanes * g})
		}
		ADDQ(cStep, row)
	}
	VZEROUPPER()
	RET()
}
