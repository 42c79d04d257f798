package text

import (
	"math"
	"strconv"
	"strings"
	"unsafe"
)

var pow10 = [23]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// Number reads the decimal number that begins at b[i] and returns the
// position after it; end == i where there is none. Numbers that a double and
// a power of ten represent exactly are computed at once, the rest by strconv:
// the result is always the nearest double.
func Number(b []byte, i int) (v float64, end int) {
	start, neg := i, false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		neg = b[i] == '-'
		i++
	}
	mant, digits, exp, i := scanMantissa(b, i)
	if digits == 0 {
		return scanSpecial(b, start)
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		e, next := scanExponent(b, i+1)
		if next > i+1 {
			exp, i = exp+e, next
		}
	}
	for mant > 1<<53 && mant%10 == 0 {
		mant, exp = mant/10, exp+1
	}
	if digits > 19 || mant > 1<<53 || exp < -22 || exp > 22 {
		v, err := strconv.ParseFloat(unsafe.String(&b[start], i-start), 64)
		if err != nil && !math.IsInf(v, 0) {
			return 0, start
		}
		return v, i
	}
	v = float64(mant)
	if exp < 0 {
		v /= pow10[-exp]
	} else {
		v *= pow10[exp]
	}
	if neg {
		v = -v
	}
	return v, i
}

// scanMantissa reads digits with at most one point. digits counts the
// significant ones, capped above what mant can hold.
func scanMantissa(b []byte, i int) (mant uint64, digits, exp, end int) {
	seen := 0
	for ; i < len(b); i++ {
		c := b[i] - '0'
		if c > 9 {
			break
		}
		mant, seen = mant*10+uint64(c), seen+1
	}
	if i < len(b) && b[i] == '.' {
		i++
		for from := i; ; i++ {
			if i == len(b) || b[i]-'0' > 9 {
				exp = from - i
				seen -= exp
				break
			}
			mant = mant*10 + uint64(b[i]-'0')
		}
	}
	return mant, seen, exp, i
}

func scanExponent(b []byte, i int) (e, end int) {
	start, neg := i, false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		neg = b[i] == '-'
		i++
	}
	first := i
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		if e < 100000 {
			e = e*10 + int(b[i]-'0')
		}
	}
	if i == first {
		return 0, start
	}
	if neg {
		e = -e
	}
	return e, i
}

// scanSpecial recognizes nan, inf and infinity in any case, with a sign.
func scanSpecial(b []byte, start int) (float64, int) {
	end := start
	for end < len(b) && (b[end] == '-' || b[end] == '+' || b[end]|0x20 >= 'a' && b[end]|0x20 <= 'z') {
		end++
	}
	if end == start || end-start > len("+infinity") {
		return 0, start
	}
	v, err := strconv.ParseFloat(string(b[start:end]), 64)
	if err != nil {
		return 0, start
	}
	return v, end
}

// NoNumber reports whether a field stands for a missing number.
func NoNumber(field []byte) bool {
	switch strings.ToLower(string(field)) {
	case "", "na", "n/a", "nan", "null", "none", "?":
		return true
	}
	return false
}
