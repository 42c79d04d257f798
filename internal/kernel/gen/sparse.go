package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// How many nonzeros before their use indices and values are asked for.
const sparseAhead = 128

// sparseDots: z[i] = w · row rows[i] of a sparse matrix, four lanes. (To ask
// early for the entries of the sum that the rows are added to next makes it
// slower.)
func sparseDots(single bool) {
	size, suffix := elem(single)
	TEXT("sparseDots"+suffix+"AVX2", NOSPLIT,
		"func(z, w *float64, offsets, indices *int32, values *"+floatName(single)+", rows *int32, n int)")
	Pragma("noescape")
	Doc("sparseDots" + suffix + "AVX2 computes the dots of n rows, given by number.")
	w := Load(Param("w"), GP64())
	offsets, indices, values := Load(Param("offsets"), GP64()), Load(Param("indices"), GP64()),
		Load(Param("values"), GP64())
	rows, n, i := Load(Param("rows"), GP64()), Load(Param("n"), GP64()), GP64()
	XORQ(i, i)
	Label("row")
	CMPQ(i, n)
	JGE(operand.LabelRef("done"))
	k, end, whole := GP64(), GP64(), GP64()
	MOVLQSX(operand.Mem{Base: rows, Index: i, Scale: 4}, whole)
	MOVLQSX(operand.Mem{Base: offsets, Index: whole, Scale: 4}, k)
	MOVLQSX(operand.Mem{Base: offsets, Index: whole, Scale: 4, Disp: 4}, end)
	MOVQ(end, whole)
	SUBQ(operand.U8(4), whole)
	acc := YMM()
	VPXOR(acc, acc, acc)
	Label("four")
	CMPQ(k, whole)
	JG(operand.LabelRef("fold"))
	PREFETCHT1(operand.Mem{Base: indices, Index: k, Scale: 4, Disp: 4 * sparseAhead})
	PREFETCHT1(operand.Mem{Base: values, Index: k, Scale: uint8(size), Disp: size * sparseAhead})
	lo, hi := XMM(), XMM()
	for lane, half := range []reg.VecVirtual{lo, lo, hi, hi} {
		at := GP64()
		MOVL(operand.Mem{Base: indices, Index: k, Scale: 4, Disp: 4 * lane}, at.As32())
		from := operand.Mem{Base: w, Index: at, Scale: 8}
		if lane%2 == 0 {
			VMOVSD(from, half)
		} else {
			VMOVHPD(from, half, half)
		}
	}
	products, x := YMM(), YMM()
	VINSERTF128(operand.U8(1), hi, lo.AsY(), products)
	from := operand.Mem{Base: values, Index: k, Scale: uint8(size)}
	if single {
		VCVTPS2PD(from, x)
	} else {
		VMOVUPD(from, x)
	}
	VMULPD(x, products, products)
	VADDPD(products, acc, acc)
	ADDQ(operand.U8(4), k)
	JMP(operand.LabelRef("four"))
	Label("fold")
	lanes := []reg.VecVirtual{XMM(), XMM(), XMM(), XMM()}
	VEXTRACTF128(operand.U8(0), acc, lanes[0])
	VEXTRACTF128(operand.U8(1), acc, lanes[2])
	VPERMILPD(operand.U8(1), lanes[0], lanes[1])
	VPERMILPD(operand.U8(1), lanes[2], lanes[3])
	for lane := range 3 {
		sparseTail(lanes[lane], w, indices, values, k, end, single, size)
	}
	Label("sum")
	VADDSD(lanes[2], lanes[0], lanes[0])
	VADDSD(lanes[3], lanes[1], lanes[1])
	VADDSD(lanes[1], lanes[0], lanes[0])
	VMOVSD(lanes[0], operand.Mem{Base: Load(Param("z"), GP64()), Index: i, Scale: 8})
	INCQ(i)
	JMP(operand.LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}

// sparseTail adds one more nonzero to its lane, where there is one.
func sparseTail(lane reg.VecVirtual, w, indices, values, k, end reg.Register, single bool, size int) {
	CMPQ(k, end)
	JGE(operand.LabelRef("sum"))
	at, v := GP64(), XMM()
	MOVL(operand.Mem{Base: indices, Index: k, Scale: 4}, at.As32())
	from := operand.Mem{Base: values, Index: k, Scale: uint8(size)}
	if single {
		VXORPD(v, v, v)
		VCVTSS2SD(from, v, v)
	} else {
		VMOVSD(from, v)
	}
	VMULSD(operand.Mem{Base: w, Index: at, Scale: 8}, v, v)
	VADDSD(v, lane, lane)
	INCQ(k)
}

// sparseAccumulate: sum += coef[i] · row rows[i] of a sparse matrix, nonzero
// by nonzero, in the order of rows.
func sparseAccumulate(single bool) {
	size, suffix := elem(single)
	TEXT("sparseAccumulate"+suffix+"AVX2", NOSPLIT,
		"func(sum, coef *float64, offsets, indices *int32, values *"+floatName(single)+", rows *int32, n int)")
	Pragma("noescape")
	Doc("sparseAccumulate" + suffix + "AVX2 adds coef[i] times each of n rows, given by number, to sum.")
	sum, coef := Load(Param("sum"), GP64()), Load(Param("coef"), GP64())
	offsets, indices, values := Load(Param("offsets"), GP64()), Load(Param("indices"), GP64()),
		Load(Param("values"), GP64())
	rows, n, i := Load(Param("rows"), GP64()), Load(Param("n"), GP64()), GP64()
	XORQ(i, i)
	Label("row")
	CMPQ(i, n)
	JGE(operand.LabelRef("done"))
	k, end, whole := GP64(), GP64(), GP64()
	MOVLQSX(operand.Mem{Base: rows, Index: i, Scale: 4}, whole)
	MOVLQSX(operand.Mem{Base: offsets, Index: whole, Scale: 4}, k)
	MOVLQSX(operand.Mem{Base: offsets, Index: whole, Scale: 4, Disp: 4}, end)
	MOVQ(end, whole)
	SUBQ(operand.U8(4), whole)
	c := XMM()
	VMOVSD(operand.Mem{Base: coef, Index: i, Scale: 8}, c)
	one := func(disp int) {
		at, v := GP64(), XMM()
		MOVL(operand.Mem{Base: indices, Index: k, Scale: 4, Disp: 4 * disp}, at.As32())
		from := operand.Mem{Base: values, Index: k, Scale: uint8(size), Disp: size * disp}
		if single {
			VXORPD(v, v, v)
			VCVTSS2SD(from, v, v)
			VMULSD(c, v, v)
		} else {
			VMULSD(from, c, v)
		}
		to := operand.Mem{Base: sum, Index: at, Scale: 8}
		VADDSD(to, v, v)
		VMOVSD(v, to)
	}
	Label("four")
	CMPQ(k, whole)
	JG(operand.LabelRef("rest"))
	for disp := range 4 {
		one(disp)
	}
	ADDQ(operand.U8(4), k)
	JMP(operand.LabelRef("four"))
	Label("rest")
	CMPQ(k, end)
	JGE(operand.LabelRef("next"))
	one(0)
	INCQ(k)
	JMP(operand.LabelRef("rest"))
	Label("next")
	INCQ(i)
	JMP(operand.LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}
