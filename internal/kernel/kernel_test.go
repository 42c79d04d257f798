package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestExpNegAndLog1pAgainstTheLibrary(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		x := -rng.Float64() * 50
		if got, want := ExpNeg(x), math.Exp(x); math.Abs(got-want) > 4e-16*want {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
		u := rng.Float64()
		if got, want := Log1p(u), math.Log1p(u); math.Abs(got-want) > 1e-15*want {
			t.Fatalf("log1p(%v) = %v, want %v", u, got, want)
		}
		v := math.Exp(rng.Float64()*80 - 40)
		if got, want := Log(v), math.Log(v); math.Abs(got-want) > 1e-15*(1+math.Abs(want)) {
			t.Fatalf("log(%v) = %v, want %v", v, got, want)
		}
	}
}

func TestLogisticAtTheEdges(t *testing.T) {
	for _, z := range []float64{0, 1e-300, -1e-300, 40, -40, 800, -800, 1e6, -1e6} {
		coef, loss := logisticPlain(z, 1)
		wantLoss := math.Max(-z, 0) + math.Log1p(math.Exp(-math.Abs(z)))
		if math.Abs(loss-wantLoss) > 1e-15*(1+wantLoss) {
			t.Errorf("loss(%v) = %v, want %v", z, loss, wantLoss)
		}
		if coef < -1 || coef > 0 {
			t.Errorf("coef(%v) = %v", z, coef)
		}
	}
	if c, l := logisticPlain(math.NaN(), 0); !math.IsNaN(c) || !math.IsNaN(l) {
		t.Error("NaN must stay NaN")
	}
}
