package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// ahead is how many bytes before their use rows are asked for: far enough for
// the way from memory, near enough to be still there.
const ahead = 4096

// pipeline: the dots of n rows of the next block, and the accumulation of n
// rows of the current one, four and four, n a multiple of four, both by the
// same walk over the columns. So the next rows are asked of memory without a
// pause, while the current ones, which are in the nearest cache, keep the
// units busy.
func pipeline(t target, single bool) {
	size, suffix := elem(single)
	TEXT("pipeline"+suffix+t.name, NOSPLIT, "func(z, w, sum, coef *float64, x *"+floatName(single)+
		", next, current *int32, n, d int)")
	Pragma("noescape")
	Doc("pipeline" + suffix + t.name + " computes z[i] = w · next[i] and adds coef[i] times current[i] to sum, rows " +
		"of d columns of x given by number.")
	whole, rem := Load(Param("d"), GP64()), GP64()
	MOVQ(whole, rem)
	ANDQ(operand.U8(7), rem)
	tl := t.tail(rem.(reg.GPVirtual), single)
	SUBQ(rem, whole)
	i := GP64()
	XORQ(i, i)
	Label("loop")
	n := Load(Param("n"), GP64())
	CMPQ(i, n)
	JGE(operand.LabelRef("done"))
	t.fourRows(i, whole, rem, tl, single, size)
	ADDQ(operand.U8(4), i)
	JMP(operand.LabelRef("loop"))
	Label("done")
	VZEROUPPER()
	RET()
}

// prefetch prefetches n rows of the given size, and, by every 32nd row, for the
// labels of four: rows in visiting order are eight apart there, a cache line.
func prefetch() {
	TEXT("prefetchRows", NOSPLIT, "func(x *byte, rows *int32, n, bytes int)")
	Pragma("noescape")
	Doc("prefetchRows prefetches n rows of the given size of x, given by number.")
	x, rows := Load(Param("x"), GP64()), Load(Param("rows"), GP64())
	n, size := Load(Param("n"), GP64()), Load(Param("bytes"), GP64())
	i, at, j := GP64(), GP64(), GP64()
	XORQ(i, i)
	Label("rows")
	CMPQ(i, n)
	JGE(operand.LabelRef("done"))
	MOVLQSX(operand.Mem{Base: rows, Index: i, Scale: 4}, at)
	IMULQ(size, at)
	ADDQ(x, at)
	XORQ(j, j)
	Label("lines")
	PREFETCHT1(operand.Mem{Base: at, Index: j, Scale: 1})
	ADDQ(operand.U8(64), j)
	CMPQ(j, size)
	JL(operand.LabelRef("lines"))
	INCQ(i)
	JMP(operand.LabelRef("rows"))
	Label("done")
	RET()

	TEXT("prefetchLabels", NOSPLIT, "func(labels *float64, rows *int32, n int)")
	Pragma("noescape")
	Doc("prefetchLabels asks for the labels of the first four of every 32 rows.")
	labels, rows := Load(Param("labels"), GP64()), Load(Param("rows"), GP64())
	n, i, at = Load(Param("n"), GP64()), GP64(), GP64()
	SUBQ(operand.U8(4), n)
	XORQ(i, i)
	Label("loop")
	CMPQ(i, n)
	JG(operand.LabelRef("end"))
	for r := range 4 {
		MOVLQSX(operand.Mem{Base: rows, Index: i, Scale: 4, Disp: 4 * r}, at)
		PREFETCHT0(operand.Mem{Base: labels, Index: at, Scale: 8})
	}
	ADDQ(operand.U8(32), i)
	JMP(operand.LabelRef("loop"))
	Label("end")
	RET()
}

// prefetchAt asks for the first and the last byte of elements.
func prefetchAt() {
	TEXT("prefetchAt", NOSPLIT, "func(x *byte, at *uint32, n, size int)")
	Pragma("noescape")
	Doc("prefetchAt prefetches n elements of the given size of x, given by number; the greatest number is none.")
	x, at := Load(Param("x"), GP64()), Load(Param("at"), GP64())
	n, size := Load(Param("n"), GP64()), Load(Param("size"), GP64())
	i, element := GP64(), GP64()
	XORQ(i, i)
	Label("loop")
	CMPQ(i, n)
	JGE(operand.LabelRef("done"))
	MOVLQSX(operand.Mem{Base: at, Index: i, Scale: 4}, element)
	IMULQ(size, element)
	ADDQ(x, element)
	PREFETCHT0(operand.Mem{Base: element})
	PREFETCHT0(operand.Mem{Base: element, Index: size, Scale: 1, Disp: -1})
	INCQ(i)
	JMP(operand.LabelRef("loop"))
	Label("done")
	RET()
}

// four are the rows in work: addresses and dots of the next ones, addresses
// and coefficients of the current ones.
type four struct {
	next, current []reg.Register
	dots          [][]reg.VecVirtual // by row and half
	coef          func(row int) reg.VecVirtual
}

func (t target) four(i reg.Register, single bool) four {
	x, size := Load(Param("x"), GP64()), Load(Param("d"), GP64())
	SHLQ(operand.U8(map[bool]uint8{true: 2, false: 3}[single]), size)
	f := four{next: rowsAt("next", i, x, size), current: rowsAt("current", i, x, size)}
	for range f.next {
		var halves []reg.VecVirtual
		for range t.halves() {
			v := t.vec()
			t.zero(v)
			halves = append(halves, v)
		}
		f.dots = append(f.dots, halves)
	}
	base := Load(Param("coef"), GP64())
	broadcast := func(row int) reg.VecVirtual {
		v := t.vec()
		VBROADCASTSD(operand.Mem{Base: base, Index: i, Scale: 8, Disp: 8 * row}, v)
		return v
	}
	f.coef = broadcast // the narrow target has no registers left to keep them in
	if t.wide() {
		var kept []reg.VecVirtual
		for row := range f.current {
			kept = append(kept, broadcast(row))
		}
		f.coef = func(row int) reg.VecVirtual { return kept[row] }
	}
	return f
}

// rowsAt computes the addresses of four rows of a list, a parameter.
func rowsAt(list string, i, x, size reg.Register) []reg.Register {
	base := Load(Param(list), GP64())
	out := make([]reg.Register, 4)
	for r := range out {
		out[r] = GP64()
		MOVLQSX(operand.Mem{Base: base, Index: i, Scale: 4, Disp: 4 * r}, out[r])
		IMULQ(size, out[r])
		ADDQ(x, out[r])
	}
	return out
}

func (t target) fourRows(i, whole, rem reg.Register, tl tail, single bool, size int) {
	f := t.four(i, single)
	w, sum, j := Load(Param("w"), GP64()), Load(Param("sum"), GP64()), GP64()
	XORQ(j, j)
	Label("columns")
	CMPQ(j, whole)
	JGE(operand.LabelRef("tail"))
	for _, row := range f.next {
		PREFETCHT1(operand.Mem{Base: row, Index: j, Scale: uint8(size), Disp: ahead})
	}
	for h := range t.halves() {
		wv, s := t.vec(), t.vec()
		to := operand.Mem{Base: sum, Index: j, Scale: 8, Disp: 32 * h}
		VMOVUPD(operand.Mem{Base: w, Index: j, Scale: 8, Disp: 32 * h}, wv)
		VMOVUPD(to, s)
		for r := range f.next {
			t.fma(operand.Mem{Base: f.next[r], Index: j, Scale: uint8(size), Disp: 4 * size * h}, single, wv,
				f.dots[r][h])
			t.fma(operand.Mem{Base: f.current[r], Index: j, Scale: uint8(size), Disp: 4 * size * h}, single, f.coef(r),
				s)
		}
		VMOVUPD(s, to)
	}
	ADDQ(operand.U8(8), j)
	JMP(operand.LabelRef("columns"))
	Label("tail")
	TESTQ(rem, rem)
	JZ(operand.LabelRef("sums"))
	t.fourTails(f, w, sum, j, tl, single, size)
	Label("sums")
	z := Load(Param("z"), GP64())
	for r, halves := range f.dots {
		t.combine(halves, operand.Mem{Base: z, Index: i, Scale: 8, Disp: 8 * r})
	}
}

// fourTails does the columns that do not fill a group of 8.
func (t target) fourTails(f four, w, sum, j reg.Register, tl tail, single bool, size int) {
	for h := range t.halves() {
		wv := t.loadTail(tl, operand.Mem{Base: w, Index: j, Scale: 8}, false, h)
		for r, row := range f.next {
			VFMADD231PD(t.loadTail(tl, operand.Mem{Base: row, Index: j, Scale: uint8(size)}, single, h), wv,
				f.dots[r][h])
		}
		to := operand.Mem{Base: sum, Index: j, Scale: 8}
		s := t.loadTail(tl, to, false, h)
		for r, row := range f.current {
			VFMADD231PD(t.loadTail(tl, operand.Mem{Base: row, Index: j, Scale: uint8(size)}, single, h), f.coef(r), s)
		}
		t.storeTail(tl, s, to, h)
	}
}

// fma adds the product of a factor and what lies in memory.
func (t target) fma(m operand.Mem, single bool, factor, acc reg.VecVirtual) {
	if single {
		VFMADD231PD(t.load(m, true), factor, acc)
	} else {
		VFMADD231PD(m, factor, acc)
	}
}
