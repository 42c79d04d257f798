package synth

import "math"

// Random is java.util.Random's law: a 48-bit linear congruential generator.
type Random struct {
	seed     uint64
	next     float64 // the second value of a polar pair
	haveNext bool
}

const (
	lcgMultiplier = 0x5DEECE66D
	lcgAddend     = 0xB
	lcgMask       = 1<<48 - 1
)

// NewRandom seeds a generator as Java's constructor does.
func NewRandom(seed int64) *Random { return &Random{seed: (uint64(seed) ^ lcgMultiplier) & lcgMask} }

func (r *Random) bits(n uint) uint64 {
	r.seed = (r.seed*lcgMultiplier + lcgAddend) & lcgMask
	return r.seed >> (48 - n)
}

// NextDouble returns a number uniform in [0, 1).
func (r *Random) NextDouble() float64 {
	hi := r.bits(26) << 27
	return float64(hi+r.bits(27)) / (1 << 53)
}

// NextGaussian returns a standard normal number by the polar method; the second
// value of a pair is kept for the next call. Java specifies it with StrictMath,
// whose log and sqrt are those of fdlibm.
func (r *Random) NextGaussian() float64 {
	if r.haveNext {
		r.haveNext = false
		return r.next
	}
	for {
		v1, v2 := 2*r.NextDouble()-1, 2*r.NextDouble()-1
		s := float64(v1*v1) + float64(v2*v2)
		if s >= 1 || s == 0 {
			continue
		}
		m := math.Sqrt(float64(-2*strictLog(s)) / s)
		r.next, r.haveNext = float64(v2*m), true
		return float64(v1 * m)
	}
}

// strictLog returns fdlibm's natural logarithm of a positive normal number,
// step by step, so that its last bit is Java's.
func strictLog(x float64) float64 {
	const (
		ln2Hi = 6.93147180369123816490e-01
		ln2Lo = 1.90821492927058770002e-10
		lg1   = 6.666666666666735130e-01
		lg2   = 3.999999999940941908e-01
		lg3   = 2.857142874366239149e-01
		lg4   = 2.222219843214978396e-01
		lg5   = 1.818357216161805012e-01
		lg6   = 1.531383769920937332e-01
		lg7   = 1.479819860511658591e-01
	)
	bits := math.Float64bits(x)
	hx := int32(bits >> 32)
	k := hx>>20 - 1023
	hx &= 0xfffff
	i := (hx + 0x95f64) & 0x100000
	m := math.Float64frombits(uint64(uint32(hx|(i^0x3ff00000)))<<32 | bits&0xffffffff)
	k += i >> 20
	f, dk := m-1, float64(k)
	if (0xfffff & (2 + hx)) < 3 { // |f| < 2^-20
		if f == 0 {
			return float64(dk*ln2Hi) + float64(dk*ln2Lo)
		}
		r := float64(float64(f*f) * (0.5 - float64(0.33333333333333333*f)))
		return float64(dk*ln2Hi) - ((r - float64(dk*ln2Lo)) - f)
	}
	s := f / (2 + f)
	z := float64(s * s)
	w := float64(z * z)
	t1 := float64(w * (lg2 + float64(w*(lg4+float64(w*lg6)))))
	t2 := float64(z * (lg1 + float64(w*(lg3+float64(w*(lg5+float64(w*lg7)))))))
	r := t2 + t1
	if (hx-0x6147a)|(0x6b851-hx) > 0 {
		half := float64(0.5 * float64(f*f))
		return float64(dk*ln2Hi) - ((half - (float64(s*(half+r)) + float64(dk*ln2Lo))) - f)
	}
	return float64(dk*ln2Hi) - ((float64(s*(f-r)) - float64(dk*ln2Lo)) - f)
}
