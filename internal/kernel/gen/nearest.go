package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// nearest: a tile of products of some centres, broadcast, with rows in lanes;
// what it comes to goes into the rows' best so far.
func nearest(t target) {
	tall, groups := t.tile()
	TEXT("nearest"+t.name, NOSPLIT, "func(best, index, centres, norms, numbers, rows *float64, d int)")
	Pragma("noescape")
	Doc("nearest" + t.name + " compares norms[i] − 2·centre i·row for a tile of centres with best of each row, and where it is less sets best to it and index to numbers[i].")
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
	// the registers of the rows are free now
	for i := range acc {
		norm, at, mask, was := right[0], right[1], right[2], one
		VBROADCASTSD(operand.Mem{Base: norms, Disp: 8 * i}, norm)
		VBROADCASTSD(operand.Mem{Base: numbers, Disp: 8 * i}, at)
		for g, v := range acc[i] {
			VADDPD(v, v, v)
			VSUBPD(v, norm, v) // as −2·v + norm, fused: doubling is exact
			bestAt, indexAt := operand.Mem{Base: best, Disp: 8 * t.lanes * g}, operand.Mem{Base: index, Disp: 8 * t.lanes * g}
			VMOVUPD(bestAt, was)
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
