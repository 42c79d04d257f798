package text

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestNumberIsTheNearestDouble(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	texts := []string{"0", "-0", "1", "+1", "1e5", "1E-5", "8.692932128906250000e-01", "123456789012345678901234567890",
		"1e400", "-1e400", "5e-324", ".5", "5.", "inf", "-Infinity", "NaN", "0.1", "1e22", "1e23", "9007199254740993"}
	for range 20_000 {
		v := math.Float64frombits(rng.Uint64())
		texts = append(texts, strconv.FormatFloat(v, "efg"[rng.IntN(3)], rng.IntN(20), 64))
	}
	for _, s := range texts {
		want, _ := strconv.ParseFloat(s, 64)
		got, end := Number([]byte(s), 0)
		if end != len(s) || math.Float64bits(got) != math.Float64bits(want) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("%q is %v (%d read), want %v", s, got, end, want)
		}
	}
	for _, s := range []string{"", "x", "-", ".", "e5", "nanx"} {
		if _, end := Number([]byte(s), 0); end != 0 && s != "nanx" {
			t.Errorf("%q reads as a number", s)
		}
	}
}
