package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// soon is how many rows before its turn a row is asked for.
const soon = 12

// gramRows: a tile of Σ w·x·xᵀ over rows given by number, read where they lie. What
// is loaded beyond a row's end goes to entries of the tile that are never read.
func gramRows(t target) {
	tall, groups := t.tile()
	for _, weighted := range []bool{false, true} {
		name, params := "gramRows"+t.name, "func(c, left, right *float64, rows *int32, n, step int)"
		if weighted {
			name, params = "gramWeighted"+t.name, "func(c, left, right *float64, rows *int32, n, step int, weight "+
				"*float64)"
		}
		TEXT(name, NOSPLIT, params)
		Pragma("noescape")
		Doc(name + " adds left[r·step+i]·right[r·step+j] to every c[i·width+j] of a tile for each of n rows r, one " +
			"after the other; the left factor is times the row's weight, where there are any.")
		c, left, right := Load(Param("c"), GP64()), Load(Param("left"), GP64()), Load(Param("right"), GP64())
		rows, n, step := Load(Param("rows"), GP64()), Load(Param("n"), GP64()), Load(Param("step"), GP64())
		var weight reg.Register
		if weighted {
			weight = Load(Param("weight"), GP64())
		}
		SHLQ(operand.U8(3), step)
		acc := make([][]reg.VecVirtual, tall)
		for i := range acc {
			for g := range groups {
				v := t.vec()
				VMOVUPD(operand.Mem{Base: c, Disp: 8 * (i*t.lanes*groups + t.lanes*g)}, v)
				acc[i] = append(acc[i], v)
			}
		}
		one := t.vec()
		b := make([]reg.VecVirtual, groups)
		for g := range b {
			b[g] = t.vec()
		}
		at := GP64()
		Label("loop")
		TESTQ(n, n)
		JZ(operand.LabelRef("done"))
		askSoon(rows, n, step, at, right, 2)
		MOVLQSX(operand.Mem{Base: rows}, at)
		IMULQ(step, at)
		for g := range b {
			VMOVUPD(operand.Mem{Base: right, Index: at, Scale: 1, Disp: 8 * t.lanes * g}, b[g])
		}
		for i := range acc {
			if weighted { // in a register of one number: the product is rounded before it is spread
				x := one.(reg.VecVirtual).AsX()
				VMOVSD(operand.Mem{Base: left, Index: at, Scale: 1, Disp: 8 * i}, x)
				VMULSD(operand.Mem{Base: weight}, x, x)
				VBROADCASTSD(x, one)
			} else {
				VBROADCASTSD(operand.Mem{Base: left, Index: at, Scale: 1, Disp: 8 * i}, one)
			}
			for g := range b {
				VFMADD231PD(b[g], one, acc[i][g])
			}
		}
		ADDQ(operand.U8(4), rows)
		if weighted {
			ADDQ(operand.U8(8), weight)
		}
		DECQ(n)
		JMP(operand.LabelRef("loop"))
		Label("done")
		for i := range acc {
			for g := range groups {
				VMOVUPD(acc[i][g], operand.Mem{Base: c, Disp: 8 * (i*t.lanes*groups + t.lanes*g)})
			}
		}
		VZEROUPPER()
		RET()
	}
}

// askSoon prefetches a number of cache lines of the row that comes soon: rows lie far apart.
func askSoon(rows, n, step, at, x reg.Register, lines int) {
	CMPQ(n, operand.U8(soon))
	JLE(operand.LabelRef("here"))
	MOVLQSX(operand.Mem{Base: rows, Disp: 4 * soon}, at)
	IMULQ(step, at)
	for line := range lines {
		PREFETCHT0(operand.Mem{Base: x, Index: at, Scale: 1, Disp: 64 * line})
	}
	Label("here")
}
