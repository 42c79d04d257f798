package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// squares: of each lane the sum of its squares, column after column.
func squares(t target) {
	_, groups := t.tile()
	TEXT("squares"+t.name, NOSPLIT, "func(out, rows *float64, d int)")
	Pragma("noescape")
	Doc("squares" + t.name + " sets out to the sums of squares of rows that lie in lanes, d columns of them.")
	out, rows, d := Load(Param("out"), GP64()), Load(Param("rows"), GP64()), Load(Param("d"), GP64())
	acc, v := make([]reg.VecVirtual, groups), t.vec()
	for g := range acc {
		acc[g] = t.vec()
		t.zero(acc[g])
	}
	Label("loop")
	TESTQ(d, d)
	JZ(operand.LabelRef("done"))
	for g := range acc {
		VMOVUPD(operand.Mem{Base: rows, Disp: 8 * t.lanes * g}, v)
		VFMADD231PD(v, v, acc[g])
	}
	ADDQ(operand.U32(uint32(8*t.lanes*groups)), rows)
	DECQ(d)
	JMP(operand.LabelRef("loop"))
	Label("done")
	for g := range acc {
		VMOVUPD(acc[g], operand.Mem{Base: out, Disp: 8 * t.lanes * g})
	}
	VZEROUPPER()
	RET()
}

// spread: eight rows into lanes, eight columns at a time: a transposition of eight
// by eight by unpacking pairs and shuffling quarters.
func spread() {
	TEXT("spreadAVX512", NOSPLIT, "func(out, x, shift *float64, rows *int32, d, wide, blocks int)")
	Pragma("noescape")
	Doc("spreadAVX512 lays eight rows, less shift, out in lanes: their first 8·blocks columns, wide lanes from one " +
		"to the next.")
	out, x, shift := Load(Param("out"), GP64()), Load(Param("x"), GP64()), Load(Param("shift"), GP64())
	rows, d := Load(Param("rows"), GP64()), Load(Param("d"), GP64())
	var at [8]reg.GPVirtual
	for i := range at {
		at[i] = GP64()
		MOVLQSX(operand.Mem{Base: rows, Disp: 4 * i}, at[i])
		IMULQ(d, at[i])
		LEAQ(operand.Mem{Base: x, Index: at[i], Scale: 8}, at[i])
	}
	wide, blocks := d, rows // their values are not needed any more
	Load(Param("wide"), wide)
	SHLQ(operand.U8(3), wide)
	Load(Param("blocks"), blocks)
	Label("loop")
	TESTQ(blocks, blocks)
	JZ(operand.LabelRef("done"))
	var a, r [8]reg.VecVirtual
	by := ZMM()
	VMOVUPD(operand.Mem{Base: shift}, by)
	for i := range a {
		a[i] = ZMM()
		VMOVUPD(operand.Mem{Base: at[i]}, a[i])
		VSUBPD(by, a[i], a[i])
		ADDQ(operand.U8(64), at[i])
	}
	ADDQ(operand.U8(64), shift)
	for i := 0; i < 8; i += 2 {
		r[i], r[i+1] = ZMM(), ZMM()
		VUNPCKLPD(a[i+1], a[i], r[i])
		VUNPCKHPD(a[i+1], a[i], r[i+1])
	}
	// columns j of all rows: from r[j&1], r[j&1+2], r[j&1+4] and r[j&1+6], whose
	// quarter j/2 holds it
	column := [8]reg.VecVirtual{}
	for odd := range 2 {
		low, high := [2]reg.VecVirtual{ZMM(), ZMM()}, [2]reg.VecVirtual{ZMM(), ZMM()}
		for half := range 2 {
			VSHUFF64X2(operand.U8(0x88), r[4*half+2+odd], r[4*half+odd], low[half])
			VSHUFF64X2(operand.U8(0xdd), r[4*half+2+odd], r[4*half+odd], high[half])
		}
		for k, pair := range [][2]reg.VecVirtual{low, high} {
			first, second := ZMM(), ZMM()
			VSHUFF64X2(operand.U8(0x88), pair[1], pair[0], first)
			VSHUFF64X2(operand.U8(0xdd), pair[1], pair[0], second)
			column[2*k+odd], column[2*k+4+odd] = first, second
		}
	}
	for _, c := range column {
		VMOVUPD(c, operand.Mem{Base: out})
		ADDQ(wide, out)
	}
	DECQ(blocks)
	JMP(operand.LabelRef("loop"))
	Label("done")
	VZEROUPPER()
	RET()
}
