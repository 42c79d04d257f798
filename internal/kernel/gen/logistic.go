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
		2.510038549551032e-08, 2.7620088445409746e-07, 2.7557268459997064e-06, 2.4801521295954376e-05,
		0.00019841269863053618, 0.0013888888917213717, 0.008333333333330062, 0.04166666666662413,
		0.16666666666666669, 0.5000000000000001, 1, 1,
	}
	atanhCoef = []float64{
		0.08082469084735669, 0.04400158825434387, 0.06000577591428889, 0.06657067775440581,
		0.07692785296456121, 0.09090894708663223, 0.11111111358900891, 0.1428571428355253,
		0.20000000000007298, 0.3333333333333333, 1,
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

// logistic: the derivatives and losses of n rows, n a multiple of the lanes.
func logistic(t target) {
	scalar := constants("logisticScalars"+t.name, append(bits(math.Copysign(0, -1), -708, 1.44269504088896338700e+00,
		6.93147180369123816490e-01, 1.90821492927058770002e-10, 6755399441055744),
		append([]uint64{1023}, bits(1, 2)...)...))
	exp := constants("logisticExp"+t.name, bits(expCoef...))
	atanh := constants("logisticAtanh"+t.name, bits(atanhCoef...))
	constant := func(k int) reg.VecVirtual {
		v := t.vec()
		VMOVUPD(scalar(k), v)
		return v
	}
	TEXT("logistic"+t.name, NOSPLIT, "func(coef, loss, z, y *float64, bias float64, n int)")
	Pragma("noescape")
	Doc("logistic" + t.name + " computes derivative and loss of n rows, a multiple of " + map[int]string{4: "4",
		8: "8"}[t.lanes] + ".")
	coef, loss := Load(Param("coef"), GP64()), Load(Param("loss"), GP64())
	zp, yp, n := Load(Param("z"), GP64()), Load(Param("y"), GP64()), Load(Param("n"), GP64())
	bias := t.vec()
	at, _ := Param("bias").Resolve()
	VBROADCASTSD(at.Addr, bias)
	i := GP64()
	XORQ(i, i)
	Label("loop")
	CMPQ(i, n)
	JGE(operand.LabelRef("done"))
	row := func(p reg.Register) operand.Mem { return operand.Mem{Base: p, Index: i, Scale: 8} }
	z, y := t.vec(), t.vec()
	VADDPD(row(zp), bias, z)
	VMOVUPD(row(yp), y)
	p, l := t.derivative(z, y, constant, exp, atanh)
	VMOVUPD(p, row(coef))
	VMOVUPD(l, row(loss))
	ADDQ(operand.U32(uint32(t.lanes)), i)
	JMP(operand.LabelRef("loop"))
	Label("done")
	VZEROUPPER()
	RET()
}

// derivative and loss of one register of margins and labels.
func (t target) derivative(z, y reg.VecVirtual, constant func(int) reg.VecVirtual, exp, atanh func(int) operand.Mem) (p,
	l reg.VecVirtual) {
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
	zero, num := t.vec(), t.vec()
	t.zero(zero)
	if t.wide() {
		k := K()
		VCMPPD(operand.U8(30), zero, z, k) // z > 0
		VBLENDMPD(constant(cOne), e, k, num)
	} else {
		mask := t.vec()
		VCMPPD(operand.U8(30), zero, z, mask)
		VBLENDVPD(mask, constant(cOne), e, num)
	}
	p = t.vec()
	VDIVPD(t1, num, p)
	VSUBPD(y, p, p)
	relu := t.vec()
	VMAXPD(zero, z, relu) // zero where z is NaN
	l = t.log1p(e, constant, atanh)
	VADDPD(l, relu, l)
	VFNMADD231PD(z, y, l)
	return p, l
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
