// Command gen writes the assembly of package kernel. Each function is made
// for two widths, 4 lanes (AVX2 with FMA) and 8 (AVX-512), and computes what
// the plain Go code defines, bit for bit.
package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	tailMasks()
	lostShare = ConstData("lost", operand.F64(1e-13))
	one = ConstData("one", operand.F64(1))
	for _, t := range []target{{name: "AVX2", lanes: 4}, {name: "AVX512", lanes: 8}} {
		for _, single := range []bool{false, true} {
			dots(t, single)
			accumulate(t, single)
			pipeline(t, single)
		}
		logistic(t)
		product(t)
		gramRows(t)
		solveLanes(t)
		nearest(t, false)
		nearest(t, true)
		products(t)
		addRows(t)
		squares(t)
		descent(t)
	}
	for _, tall := range []int{8, 12, 16} {
		normalRows(tall, false)
		normalRows(tall, true)
	}
	spread()
	sparseDots(false)
	sparseDots(true)
	sparseAccumulate(false)
	sparseAccumulate(true)
	prefetch()
	prefetchAt()
	read()
	Generate()
}

// target is a set of instructions with registers of some lanes of float64.
type target struct {
	name  string
	lanes int
}

func (t target) wide() bool { return t.lanes == 8 }

func (t target) vec() reg.VecVirtual {
	if t.wide() {
		return ZMM()
	}
	return YMM()
}

func (t target) zero(v reg.VecVirtual) {
	if t.wide() {
		VPXORQ(v, v, v)
	} else {
		VPXOR(v, v, v)
	}
}

// table of masks for AVX2's masked loads: from entry 8−n on, n lanes are set.
var masks64, masks32 operand.Mem

func tailMasks() {
	masks64 = GLOBL("tailMasks64", RODATA|NOPTR)
	for i := range 16 {
		v := uint64(0)
		if i < 8 {
			v = math.MaxUint64
		}
		DATA(8*i, operand.U64(v))
	}
	masks32 = GLOBL("tailMasks32", RODATA|NOPTR)
	for i := range 16 {
		v := uint32(0)
		if i < 8 {
			v = math.MaxUint32
		}
		DATA(4*i, operand.U32(v))
	}
}

func floatName(single bool) string {
	if single {
		return "float32"
	}
	return "float64"
}

func elem(single bool) (size int, suffix string) {
	if single {
		return 4, "F32"
	}
	return 8, "F64"
}

// load reads a full register of elements as float64.
func (t target) load(m operand.Mem, single bool) reg.VecVirtual {
	v := t.vec()
	if single {
		VCVTPS2PD(m, v)
	} else {
		VMOVUPD(m, v)
	}
	return v
}

// tail describes the columns left over after whole groups of 8: as a mask
// register, or as two vectors of masks.
type tail struct {
	k       reg.OpmaskVirtual
	m64     [2]reg.VecVirtual
	m32     [2]reg.VecVirtual
	present reg.GPVirtual
}

func (t target) tail(rem reg.GPVirtual, single bool) tail {
	out := tail{present: rem}
	if t.wide() {
		out.k = K()
		bits, cl := GP32(), rem
		one := GP32()
		MOVL(operand.U32(1), one)
		MOVQ(cl, reg.RCX)
		MOVL(one, bits)
		SHLL(reg.CL, bits)
		SUBL(operand.U32(1), bits)
		KMOVW(bits, out.k)
		return out
	}
	base, idx := GP64(), GP64()
	MOVQ(operand.U32(8), idx)
	SUBQ(rem, idx)
	LEAQ(masks64, base)
	for h := range 2 {
		out.m64[h] = YMM()
		VMOVDQU(operand.Mem{Base: base, Index: idx, Scale: 8, Disp: 32 * h}, out.m64[h])
	}
	if single {
		LEAQ(masks32, base)
		for h := range 2 {
			out.m32[h] = XMM()
			VMOVDQU(operand.Mem{Base: base, Index: idx, Scale: 4, Disp: 16 * h}, out.m32[h])
		}
	}
	return out
}

// loadTail reads half h (0 unless the target is narrow) of the columns left
// over, zeros beyond them.
func (t target) loadTail(tl tail, m operand.Mem, single bool, h int) reg.VecVirtual {
	v := t.vec()
	switch {
	case t.wide() && single:
		VCVTPS2PD_Z(m, tl.k, v)
	case t.wide():
		VMOVUPD_Z(m, tl.k, v)
	case single:
		x := XMM()
		VMASKMOVPS(m.Offset(16*h), tl.m32[h], x)
		VCVTPS2PD(x, v)
	default:
		VMASKMOVPD(m.Offset(32*h), tl.m64[h], v)
	}
	return v
}

// storeTail writes half h of the columns left over.
func (t target) storeTail(tl tail, v reg.VecVirtual, m operand.Mem, h int) {
	if t.wide() {
		VMOVUPD(v, tl.k, m)
	} else {
		VMASKMOVPD(v, tl.m64[h], m.Offset(32*h))
	}
}

// halves returns how many registers hold a group of 8 lanes.
func (t target) halves() int { return 8 / t.lanes }

// dots: z[i] = w · x[off[i]], four rows together.
func dots(t target, single bool) {
	size, suffix := elem(single)
	TEXT("dots"+suffix+t.name, NOSPLIT, "func(z, w *float64, x *"+floatName(single)+", off *int64, n, d int)")
	Pragma("noescape")
	Doc("dots" + suffix + t.name + " computes z[i] as the dot product of w and the row of d columns at byte offset " +
		"off[i] of x.")
	z, w, x := Load(Param("z"), GP64()), Load(Param("w"), GP64()), Load(Param("x"), GP64())
	off, n, d := Load(Param("off"), GP64()), Load(Param("n"), GP64()), Load(Param("d"), GP64())
	whole, rem := GP64(), GP64()
	MOVQ(d, whole)
	ANDQ(operand.I32(-8), whole)
	MOVQ(d, rem)
	SUBQ(whole, rem)
	tl := t.tail(rem.(reg.GPVirtual), single)
	for _, rows := range []int{4, 1} {
		label := map[int]string{4: "four", 1: "one"}[rows]
		Label(label)
		CMPQ(n, operand.U32(uint32(rows)))
		JL(operand.LabelRef(label + "_done"))
		ptr := make([]reg.GPVirtual, rows)
		acc := make([][]reg.VecVirtual, rows)
		for r := range rows {
			ptr[r] = GP64()
			MOVQ(operand.Mem{Base: off, Disp: 8 * r}, ptr[r])
			ADDQ(x, ptr[r])
			for range t.halves() {
				v := t.vec()
				t.zero(v)
				acc[r] = append(acc[r], v)
			}
		}
		j := GP64()
		XORQ(j, j)
		Label(label + "_cols")
		CMPQ(j, whole)
		JGE(operand.LabelRef(label + "_tail"))
		for h := range t.halves() {
			wv := t.vec()
			VMOVUPD(operand.Mem{Base: w, Index: j, Scale: 8, Disp: 32 * h}, wv)
			for r := range rows {
				m := operand.Mem{Base: ptr[r], Index: j, Scale: uint8(size), Disp: 4 * size * h}
				t.fma(m, single, wv, acc[r][h])
			}
		}
		ADDQ(operand.U32(8), j)
		JMP(operand.LabelRef(label + "_cols"))
		Label(label + "_tail")
		TESTQ(rem, rem)
		JZ(operand.LabelRef(label + "_sum"))
		for h := range t.halves() {
			wv := t.loadTail(tl, operand.Mem{Base: w, Index: j, Scale: 8}, false, h)
			for r := range rows {
				xv := t.loadTail(tl, operand.Mem{Base: ptr[r], Index: j, Scale: uint8(size)}, single, h)
				VFMADD231PD(xv, wv, acc[r][h])
			}
		}
		Label(label + "_sum")
		for r := range rows {
			t.combine(acc[r], operand.Mem{Base: z, Disp: 8 * r})
		}
		ADDQ(operand.U32(uint32(8*rows)), z)
		ADDQ(operand.U32(uint32(8*rows)), off)
		SUBQ(operand.U32(uint32(rows)), n)
		JMP(operand.LabelRef(label))
		Label(label + "_done")
	}
	VZEROUPPER()
	RET()
}

// one is 1, in memory.
var one operand.Mem

// combine halves the lanes of a sum until one is left, and stores it.
func (t target) combine(acc []reg.VecVirtual, to operand.Mem) { VMOVSD(t.sum(acc), to) }

// sum halves the lanes of a sum until one is left, and returns it.
func (t target) sum(acc []reg.VecVirtual) reg.VecVirtual {
	lo, hi := YMM(), YMM()
	if t.wide() {
		VEXTRACTF64X4(operand.U8(1), acc[0], hi)
		VEXTRACTF64X4(operand.U8(0), acc[0], lo)
	} else {
		lo, hi = acc[0], acc[1]
	}
	sum := YMM()
	VADDPD(hi, lo, sum)
	x, y := XMM(), XMM()
	VEXTRACTF128(operand.U8(0), sum, x)
	VEXTRACTF128(operand.U8(1), sum, y)
	VADDPD(y, x, x)
	VPERMILPD(operand.U8(1), x, y)
	VADDSD(y, x, x)
	return x
}

// accumulate: sum += Σ coef[i]·x[off[i]], one row after the other.
func accumulate(t target, single bool) {
	size, suffix := elem(single)
	TEXT("accumulate"+suffix+t.name, NOSPLIT,
		"func(sum, coef *float64, x *"+floatName(single)+", off *int64, n, d int)")
	Pragma("noescape")
	Doc("accumulate" + suffix + t.name + " adds coef[i] times the row of d columns at byte offset off[i] of x to " +
		"sum, row by row.")
	sum, coef, x := Load(Param("sum"), GP64()), Load(Param("coef"), GP64()), Load(Param("x"), GP64())
	off, n, d := Load(Param("off"), GP64()), Load(Param("n"), GP64()), Load(Param("d"), GP64())
	whole, rem := GP64(), GP64()
	MOVQ(d, whole)
	ANDQ(operand.I32(-8), whole)
	MOVQ(d, rem)
	SUBQ(whole, rem)
	tl := t.tail(rem.(reg.GPVirtual), single)
	j, left := GP64(), GP64()
	XORQ(j, j)
	for _, groups := range []int{4, 1} { // groups of 8 columns
		label := map[int]string{4: "wide", 1: "narrow"}[groups]
		Label(label)
		MOVQ(whole, left)
		SUBQ(j, left)
		CMPQ(left, operand.U32(uint32(8*groups)))
		JL(operand.LabelRef(label + "_done"))
		acc := make([]reg.VecVirtual, groups*t.halves())
		for k := range acc {
			acc[k] = t.vec()
			VMOVUPD(operand.Mem{Base: sum, Index: j, Scale: 8, Disp: 8 * t.lanes * k}, acc[k])
		}
		t.overRows(label, x, off, coef, n, func(row reg.GPVirtual, c reg.VecVirtual) {
			for k := range acc {
				m := operand.Mem{Base: row, Index: j, Scale: uint8(size), Disp: size * t.lanes * k}
				t.fma(m, single, c, acc[k])
			}
		})
		for k := range acc {
			VMOVUPD(acc[k], operand.Mem{Base: sum, Index: j, Scale: 8, Disp: 8 * t.lanes * k})
		}
		ADDQ(operand.U32(uint32(8*groups)), j)
		JMP(operand.LabelRef(label))
		Label(label + "_done")
	}
	TESTQ(rem, rem)
	JZ(operand.LabelRef("end"))
	acc := make([]reg.VecVirtual, t.halves())
	to := operand.Mem{Base: sum, Index: j, Scale: 8}
	for h := range acc {
		acc[h] = t.loadTail(tl, to, false, h)
	}
	t.overRows("tail", x, off, coef, n, func(row reg.GPVirtual, c reg.VecVirtual) {
		for h := range acc {
			VFMADD231PD(t.loadTail(tl, operand.Mem{Base: row, Index: j, Scale: uint8(size)}, single, h), c, acc[h])
		}
	})
	for h := range acc {
		t.storeTail(tl, acc[h], to, h)
	}
	Label("end")
	VZEROUPPER()
	RET()
}

// overRows calls body with the pointer and the broadcast coefficient of each
// row.
func (t target) overRows(label string, x, off, coef, n reg.Register, body func(row reg.GPVirtual, c reg.VecVirtual)) {
	i, row, c := GP64(), GP64(), t.vec()
	XORQ(i, i)
	Label(label + "_rows")
	CMPQ(i, n)
	JGE(operand.LabelRef(label + "_rows_done"))
	MOVQ(operand.Mem{Base: off, Index: i, Scale: 8}, row)
	ADDQ(x, row)
	VBROADCASTSD(operand.Mem{Base: coef, Index: i, Scale: 8}, c)
	body(row.(reg.GPVirtual), c)
	INCQ(i)
	JMP(operand.LabelRef(label + "_rows"))
	Label(label + "_rows_done")
}

// read: the sum of four streams of n float64 each (a multiple of 16), AVX2,
// as a measure of what memory can deliver.
func read() {
	TEXT("readStreams", NOSPLIT, "func(a, b, c, d *float64, n int) float64")
	Pragma("noescape")
	Doc("readStreams reads four streams of n numbers together and adds them up.")
	p := []reg.Register{Load(Param("a"), GP64()), Load(Param("b"), GP64()), Load(Param("c"), GP64()),
		Load(Param("d"), GP64())}
	n := Load(Param("n"), GP64())
	i := GP64()
	XORQ(i, i)
	acc := make([]reg.VecVirtual, 8)
	for k := range acc {
		acc[k] = YMM()
		VPXOR(acc[k], acc[k], acc[k])
	}
	Label("loop")
	CMPQ(i, n)
	JGE(operand.LabelRef("done"))
	for k := range p {
		for h := range 4 {
			VADDPD(operand.Mem{Base: p[k], Index: i, Scale: 8, Disp: 32 * h}, acc[2*k+h&1], acc[2*k+h&1])
		}
	}
	ADDQ(operand.U32(16), i)
	JMP(operand.LabelRef("loop"))
	Label("done")
	for k := 1; k < len(acc); k++ {
		VADDPD(acc[k], acc[0], acc[0])
	}
	x := XMM()
	VEXTRACTF128(operand.U8(0), acc[0], x)
	VZEROUPPER()
	Store(x, ReturnIndex(0))
	RET()
}
