package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// constants lays numbers out eight times each, so that a register of either
// width can be read from memory.
func constants(name string, values []uint64) func(k int) operand.Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for k, v := range values {
		for lane := range 8 {
			DATA(64*k+8*lane, operand.U64(v))
		}
	}
	return func(k int) operand.Mem { return m.Offset(64 * k) }
}

func bits(values ...float64) []uint64 {
	out := make([]uint64, len(values))
	for i, v := range values {
		out[i] = math.Float64bits(v)
	}
	return out
}

// The constants of package kernel's definition.
var (
	expCoef = []float64{
		1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
		1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1, 1,
	}
	atanhCoef = []float64{
		1.0 / 33, 1.0 / 31, 1.0 / 29, 1.0 / 27, 1.0 / 25, 1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17,
		1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1,
	}
)

const (
	cSign = iota
	cMin
	cLog2e
	cLn2Hi
	cLn2Lo
	cMagic // 1.5·2^52: adding it leaves an integer in the low bits
	cBias
	cOne
	cTwo
)

// logistic: coef and loss of n rows, n a multiple of the lanes.
func logistic(t target) {
	scalar := constants("logisticScalars"+t.name, append(bits(math.Copysign(0, -1), -708, 1.44269504088896338700e+00,
		6.93147180369123816490e-01, 1.90821492927058770002e-10, 6755399441055744), append([]uint64{1023}, bits(1, 2)...)...))
	exp := constants("logisticExp"+t.name, bits(expCoef...))
	atanh := constants("logisticAtanh"+t.name, bits(atanhCoef...))
	TEXT("logistic"+t.name, NOSPLIT, "func(coef, loss, z, y *float64, n int)")
	Pragma("noescape")
	Doc("logistic" + t.name + " computes derivative and loss of n rows, a multiple of " + map[int]string{4: "4", 8: "8"}[t.lanes] + ".")
	coef, loss := Load(Param("coef"), GP64()), Load(Param("loss"), GP64())
	zp, yp, n := Load(Param("z"), GP64()), Load(Param("y"), GP64()), Load(Param("n"), GP64())
	i := GP64()
	XORQ(i, i)
	Label("loop")
	CMPQ(i, n)
	JGE(operand.LabelRef("done"))
	at := func(p reg.Register) operand.Mem { return operand.Mem{Base: p, Index: i, Scale: 8} }
	constant := func(k int) reg.VecVirtual {
		v := t.vec()
		VMOVUPD(scalar(k), v)
		return v
	}
	z, y := t.vec(), t.vec()
	VMOVUPD(at(zp), z)
	VMOVUPD(at(yp), y)
	x := t.vec()
	if t.wide() {
		VPORQ(z, constant(cSign), x)
	} else {
		VORPD(z, constant(cSign), x)
	}
	VMAXPD(x, constant(cMin), x) // the second source, x, where either is NaN
	e := t.exp(x, constant, exp)
	t1 := t.vec()
	VADDPD(e, constant(cOne), t1)
	zero := t.vec()
	t.zero(zero)
	num := t.vec()
	if t.wide() {
		k := K()
		VCMPPD(operand.U8(30), zero, z, k) // z > 0
		VBLENDMPD(constant(cOne), e, k, num)
	} else {
		mask := t.vec()
		VCMPPD(operand.U8(30), zero, z, mask)
		VBLENDVPD(mask, constant(cOne), e, num)
	}
	p := t.vec()
	VDIVPD(t1, num, p)
	VSUBPD(y, p, p)
	VMOVUPD(p, at(coef))
	relu := t.vec()
	VMAXPD(zero, z, relu) // zero where z is NaN
	l := t.log1p(e, constant, atanh)
	VADDPD(l, relu, l)
	VFNMADD231PD(z, y, l)
	VMOVUPD(l, at(loss))
	ADDQ(operand.U32(uint32(t.lanes)), i)
	JMP(operand.LabelRef("loop"))
	Label("done")
	VZEROUPPER()
	RET()
}

// exp of x in [−708, 0].
func (t target) exp(x reg.VecVirtual, constant func(int) reg.VecVirtual, coef func(int) operand.Mem) reg.VecVirtual {
	k, r := t.vec(), t.vec()
	VMULPD(x, constant(cLog2e), k)
	if t.wide() {
		VRNDSCALEPD(operand.U8(0), k, k)
	} else {
		VROUNDPD(operand.U8(0), k, k)
	}
	VMOVAPD(x, r)
	VFNMADD231PD(k, constant(cLn2Hi), r)
	VFNMADD231PD(k, constant(cLn2Lo), r)
	s := t.horner(r, coef, len(expCoef))
	VADDPD(k, constant(cMagic), k)
	VPADDQ(k, constant(cBias), k)
	VPSLLQ(operand.U8(52), k, k)
	VMULPD(k, s, s)
	return s
}

// log1p of e in [0, 1].
func (t target) log1p(e reg.VecVirtual, constant func(int) reg.VecVirtual, coef func(int) operand.Mem) reg.VecVirtual {
	two := constant(cTwo)
	s, q := t.vec(), t.vec()
	VADDPD(e, two, s)
	VDIVPD(s, e, s)
	VMULPD(s, s, q)
	p := t.horner(q, coef, len(atanhCoef))
	VMULPD(s, two, s)
	VMULPD(p, s, s)
	return s
}

func (t target) horner(x reg.VecVirtual, coef func(int) operand.Mem, n int) reg.VecVirtual {
	s := t.vec()
	VMOVUPD(coef(0), s)
	for k := 1; k < n; k++ {
		VFMADD213PD(coef(k), x, s)
	}
	return s
}
