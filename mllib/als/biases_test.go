package als

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/volley-engine/volley/mllib/internal/model"
)

// shifted are ratings of a mean, a number of each user's and each item's, and products of vectors of rank f.
func shifted(users, items, f int) (all []rating) {
	rng := rand.New(rand.NewPCG(5, uint64(f)))
	u, v := make([]float64, users), make([]float64, items)
	for i := range u {
		u[i] = rng.NormFloat64()
	}
	for j := range v {
		v[j] = rng.NormFloat64()
	}
	all = planted(users, items, f, 0.6)
	for i := range all {
		r := &all[i]
		user, item := int(r.user)%1_000_000, int(r.item)/3
		r.value += 3.5 + u[user] + v[item]
	}
	return all
}

// TestItemsAreSolvedWithBiases: with users given, no item's numbers can be better. What is minimized is written down
// anew: (r − mean − user's − item's − x·y)², and reg·n times the squares of the item's numbers.
func TestItemsAreSolvedWithBiases(t *testing.T) {
	t.Parallel()
	all := shifted(30, 20, 3)
	c := Config{Data: []string{writeRatings(t, all, ratingsHead)}, Rank: 4, Reg: 0.05, Biases: true, MaxIterations: 5,
		Seed: 1}
	m := factored(t, c, "--executors", "2").Model
	if m.Rank != 6 || !m.Biases {
		t.Fatalf("rank %d", m.Rank)
	}
	for k, item := range m.items.IDs {
		y := m.items.At[k*6 : k*6+6]
		if y[4] != 1 {
			t.Fatalf("item %v has %v", item, y)
		}
		own := append(slices.Clone(y[:4]), y[5]) // vector and number
		slope, n := make([]float64, 5), 0.0
		for _, r := range all {
			if r.item != item {
				continue
			}
			n++
			x := m.users.vector(r.user, 6)
			left := r.value - x[4] - y[5]
			for j := range 4 {
				left -= x[j] * y[j]
			}
			for j := range 4 {
				slope[j] -= left * x[j]
			}
			slope[4] -= left
		}
		for j, s := range slope {
			if s += c.Reg * n * own[j]; math.Abs(s) > 1e-7 {
				t.Errorf("item %v: slope %d is %v", item, j, s)
			}
		}
	}
}

// TestBiasesExplainWhatVectorsNeedNot: vectors of the rank that was planted, with numbers beside, leave less than those
// without; one executor and four give the same bits, and a saved model is what it was.
func TestBiasesExplainWhatVectorsNeedNot(t *testing.T) {
	t.Parallel()
	all := shifted(60, 40, 2)
	c := Config{Data: []string{writeRatings(t, all, ratingsHead)}, Rank: 2, Reg: 1e-4, Biases: true, MaxIterations: 40,
		Seed: 1}
	got := factored(t, c, "--executors", "1")
	if e := rmse(got.Model, all); e > 0.02 || math.Abs(e-got.Objective) > 1e-9 {
		t.Errorf("the error is %v, reported as %v", e, got.Objective)
	}
	if again := factored(t, c, "--executors", "4").Model; !slices.Equal(again.items.At, got.Model.items.At) ||
		!slices.Equal(again.users.At, got.Model.users.At) {
		t.Error("four executors give other bits")
	}
	c.Biases = false
	if e := rmse(factored(t, c).Model, all); e < 0.1 {
		t.Errorf("without biases the error is %v", e)
	}
	dir := filepath.Join(t.TempDir(), "m")
	if err := got.Model.Save(dir, false); err != nil {
		t.Fatal(err)
	}
	loaded, err := model.Load(dir, []model.Kind{Kind})
	if err != nil || !loaded.(*Model).Biases || rmse(loaded.(*Model), all) != rmse(got.Model, all) {
		t.Errorf("a saved model: %+v, %v", loaded, err)
	}
}

// TestBiasesGoOn: a run begins with a model that has biases, at its error; with one that has none, or where they mean
// nothing, it is refused.
func TestBiasesGoOn(t *testing.T) {
	t.Parallel()
	all := shifted(30, 20, 2)
	c := Config{Data: []string{writeRatings(t, all, ratingsHead)}, Rank: 2, Reg: 1e-3, Biases: true, MaxIterations: 30,
		Seed: 1}
	first := factored(t, c)
	c.Init, c.MaxIterations = BeginWith(first.Model), 1
	if got := factored(t, c); math.Abs(got.Objective-first.Objective) > 1e-3 {
		t.Errorf("the error is %v, it began at %v", got.Objective, first.Objective)
	}
	for _, change := range []func(*Config){func(c *Config) { c.Biases = false },
		func(c *Config) { c.Init, c.Implicit = nil, true }, func(c *Config) { c.Init, c.NonNegative = nil, true }} {
		bad := c
		if change(&bad); bad.Check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
