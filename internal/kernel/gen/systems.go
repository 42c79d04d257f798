package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tileWidth is how many numbers lie between the rows of a narrow tile.
const tileWidth = 16

// normalRows: Σ w·x·xᵀ above the diagonal and Σ y·x over rows given by number, of a
// tile that is so narrow that all of it stays in registers: the first 8 rows of the
// tile have two groups of columns, the others only the second. Of tiles of 8 rows
// there is one group.
func normalRows(tall int, weighted bool) {
	name, params := fmt.Sprintf("normalRows%dAVX512", tall),
		"func(c, b, x *float64, rows *int32, n, step int, value *float64)"
	if weighted {
		name, params = fmt.Sprintf("normalWeighted%dAVX512", tall),
			"func(c, b, x *float64, rows *int32, n, step int, value, weight *float64)"
	}
	TEXT(name, NOSPLIT, params)
	Pragma("noescape")
	Doc(name + " adds x[r·step+i]·x[r·step+j] to every c[i·16+j] of a tile, and value·x[r·step+j] to b[j], for each " +
		"of n rows r, one after the other; the left factor is times the row's weight, where there are any.")
	c, b, x := Load(Param("c"), GP64()), Load(Param("b"), GP64()), Load(Param("x"), GP64())
	rows, n, step := Load(Param("rows"), GP64()), Load(Param("n"), GP64()), Load(Param("step"), GP64())
	value := Load(Param("value"), GP64())
	var weight reg.Register
	if weighted {
		weight = Load(Param("weight"), GP64())
	}
	SHLQ(operand.U8(3), step)
	groups := min(2, (tall+7)/8)
	acc := make([]map[int]reg.VecVirtual, tall+1) // the last is b
	place := func(i, g int) operand.Mem {
		if i == tall {
			return operand.Mem{Base: b, Disp: 64 * g}
		}
		return operand.Mem{Base: c, Disp: 8*tileWidth*i + 64*g}
	}
	for i := range acc {
		acc[i] = map[int]reg.VecVirtual{}
		for g := range groups {
			if i == tall || i < 8*(g+1) {
				acc[i][g] = ZMM()
				VMOVUPD(place(i, g), acc[i][g])
			}
		}
	}
	one, right, at := ZMM(), make([]reg.VecVirtual, groups), GP64()
	for g := range right {
		right[g] = ZMM()
	}
	Label("loop")
	TESTQ(n, n)
	JZ(operand.LabelRef("done"))
	askSoon(rows, n, step, at, x, groups)
	MOVLQSX(operand.Mem{Base: rows}, at)
	IMULQ(step, at)
	for g := range right {
		VMOVUPD(operand.Mem{Base: x, Index: at, Scale: 1, Disp: 64 * g}, right[g])
	}
	for i := range acc {
		left := operand.Mem{Base: x, Index: at, Scale: 1, Disp: 8 * i}
		switch {
		case i == tall:
			VBROADCASTSD(operand.Mem{Base: value}, one)
		case weighted: // in a register of one number: the product is rounded before it is spread
			w := one.AsX()
			VMOVSD(left, w)
			VMULSD(operand.Mem{Base: weight}, w, w)
			VBROADCASTSD(w, one)
		default:
			VBROADCASTSD(left, one)
		}
		for g := range groups {
			if v, there := acc[i][g]; there {
				VFMADD231PD(right[g], one, v)
			}
		}
	}
	ADDQ(operand.U8(4), rows)
	ADDQ(operand.U8(8), value)
	if weighted {
		ADDQ(operand.U8(8), weight)
	}
	DECQ(n)
	JMP(operand.LabelRef("loop"))
	Label("done")
	for i := range acc {
		for g := range groups {
			if v, there := acc[i][g]; there {
				VMOVUPD(v, place(i, g))
			}
		}
	}
	VZEROUPPER()
	RET()
}

// solveLanes: systems that lie side by side, entry after entry, a lane each: factored
// and solved as Cholesky and Solve do it, except that the right sides are one more
// column of the factors.
func solveLanes(t target) {
	TEXT("solveLanes"+t.name, NOSPLIT, "func(a, b *float64, n int)")
	Pragma("noescape")
	Doc("solveLanes" + t.name + " factors systems of n unknowns, of which a and b have the numbers of 8 side by " +
		"side, and puts the solutions into b.")
	s := &lanes{t: t, a: Load(Param("a"), GP64()), b: Load(Param("b"), GP64()), n: Load(Param("n"), GP64())}
	s.row, s.i, s.j, s.k = GP64(), GP64(), GP64(), GP64()
	s.step, s.at = GP64(), GP64()
	MOVQ(s.n, s.step)
	SHLQ(operand.U8(6), s.step)
	s.lost = t.vec()
	VBROADCASTSD(lostShare, s.lost)
	s.factor()
	s.substitute()
	VZEROUPPER()
	RET()
}

// lostShare is what is taken for the rounding of a diagonal entry.
var lostShare operand.Mem

// lanes has the registers of solveLanes.
type lanes struct {
	t              target
	a, b, n, step  reg.Register // step is of bytes between rows
	row, i, j, k   reg.Register // row begins at row; i, j and k are times 64
	at             reg.Register
	lost           reg.VecVirtual
	pivot, present reg.VecVirtual
	here           reg.OpmaskVirtual
}

// factor makes the rows of Lᵀ and those of the right sides.
func (s *lanes) factor() {
	t := s.t
	s.pivot, s.present = t.vec(), t.vec()
	if t.wide() {
		s.here = K()
	}
	MOVQ(s.a, s.row)
	XORQ(s.i, s.i)
	Label("rows")
	CMPQ(s.i, s.step)
	JGE(operand.LabelRef("factored"))

	acc, whole := t.vec(), t.vec()
	VMOVUPD(operand.Mem{Base: s.row, Index: s.i, Scale: 1}, acc)
	VMULPD(acc, s.lost, whole)
	s.reduce("pivot", acc, operand.Mem{Base: s.at, Index: s.i, Scale: 1})
	s.mask(acc, whole, 30) // greater, false of what is no number
	VSQRTPD(acc, s.pivot)
	s.store(s.pivot, operand.Mem{Base: s.row, Index: s.i, Scale: 1})

	LEAQ(operand.Mem{Base: s.i, Disp: 64}, s.j)
	Label("columns")
	CMPQ(s.j, s.step)
	JGE(operand.LabelRef("right"))
	VMOVUPD(operand.Mem{Base: s.row, Index: s.j, Scale: 1}, acc)
	s.reduce("column", acc, operand.Mem{Base: s.at, Index: s.j, Scale: 1})
	VDIVPD(s.pivot, acc, acc)
	s.store(acc, operand.Mem{Base: s.row, Index: s.j, Scale: 1})
	ADDQ(operand.U8(64), s.j)
	JMP(operand.LabelRef("columns"))

	Label("right")
	VMOVUPD(operand.Mem{Base: s.b, Index: s.i, Scale: 1}, acc)
	s.reduce("right", acc, operand.Mem{Base: s.b, Index: s.k, Scale: 1})
	VDIVPD(s.pivot, acc, acc)
	s.store(acc, operand.Mem{Base: s.b, Index: s.i, Scale: 1})

	ADDQ(s.step, s.row)
	ADDQ(operand.U8(64), s.i)
	JMP(operand.LabelRef("rows"))
	Label("factored")
}

// reduce takes a[k][i] times what lies in memory off, for every row k above, which
// begins at s.at, one after the other.
func (s *lanes) reduce(label string, acc reg.VecVirtual, times operand.Mem) {
	left := s.t.vec()
	MOVQ(s.a, s.at)
	XORQ(s.k, s.k)
	Label(label + "_above")
	CMPQ(s.k, s.i)
	JGE(operand.LabelRef(label + "_reduced"))
	VMOVUPD(operand.Mem{Base: s.at, Index: s.i, Scale: 1}, left)
	VFNMADD231PD(times, left, acc)
	ADDQ(s.step, s.at)
	ADDQ(operand.U8(64), s.k)
	JMP(operand.LabelRef(label + "_above"))
	Label(label + "_reduced")
}

// mask notes the lanes in which x compares with y as asked for.
func (s *lanes) mask(x, y reg.VecVirtual, how uint8) {
	if s.t.wide() {
		VCMPPD(operand.U8(how), y, x, s.here)
		return
	}
	VCMPPD(operand.U8(how), y, x, s.present)
}

// store puts zeros where the mask is not set.
func (s *lanes) store(v reg.VecVirtual, to operand.Mem) {
	out := s.t.vec()
	if s.t.wide() {
		VMOVUPD_Z(v, s.here, out)
	} else {
		VANDPD(v, s.present, out)
	}
	VMOVUPD(out, to)
}

// substitute solves for the unknowns, the last first.
func (s *lanes) substitute() {
	t := s.t
	acc, zero := t.vec(), t.vec()
	t.zero(zero)
	Label("unknowns")
	SUBQ(s.step, s.row)
	SUBQ(operand.U8(64), s.i)
	JL(operand.LabelRef("solved"))
	VMOVUPD(operand.Mem{Base: s.b, Index: s.i, Scale: 1}, acc)
	LEAQ(operand.Mem{Base: s.i, Disp: 64}, s.j)
	Label("known")
	CMPQ(s.j, s.step)
	JGE(operand.LabelRef("divide"))
	v := t.vec()
	VMOVUPD(operand.Mem{Base: s.row, Index: s.j, Scale: 1}, v)
	VFNMADD231PD(operand.Mem{Base: s.b, Index: s.j, Scale: 1}, v, acc)
	ADDQ(operand.U8(64), s.j)
	JMP(operand.LabelRef("known"))
	Label("divide")
	VMOVUPD(operand.Mem{Base: s.row, Index: s.i, Scale: 1}, s.pivot)
	s.mask(s.pivot, zero, 4) // not equal
	VDIVPD(s.pivot, acc, acc)
	s.store(acc, operand.Mem{Base: s.b, Index: s.i, Scale: 1})
	JMP(operand.LabelRef("unknowns"))
	Label("solved")
}
