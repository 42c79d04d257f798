package als

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/volley-engine/volley/mllib/internal/model"
)

// TestWhatUsersHaveRatedIsNotRecommended to them, by a model that was saved either.
func TestWhatUsersHaveRatedIsNotRecommended(t *testing.T) {
	all := planted(40, 25, 2, 0.4)
	c := Config{Data: []string{writeRatings(t, all, ratingsHead)}, Rank: 2, Reg: 0.01, MaxIterations: 5, Tol: 1e-3}
	got := factored(t, c, "--executors", "2")
	dir := filepath.Join(t.TempDir(), "model")
	if err := got.Model.Save(dir, false); err != nil {
		t.Fatal(err)
	}
	loaded, err := model.Load(dir, []model.Kind{Kind})
	if err != nil {
		t.Fatal(err)
	}
	rated := map[[2]float64]bool{}
	for _, r := range all {
		rated[[2]float64{r.user, r.item}] = true
	}
	m := loaded.(*Model)
	if int(m.Seen) != len(rated) || !slices.Equal(m.seen.Items, got.Model.seen.Items) {
		t.Fatalf("%d pairs are known of %d", m.Seen, len(rated))
	}
	for _, forUsers := range []bool{true, false} {
		listed := 0
		err = m.Top(nil, 100, forUsers, false, func(id float64, best []Recommended) error {
			for _, r := range best {
				pair := [2]float64{id, r.ID}
				if !forUsers {
					pair = [2]float64{r.ID, id}
				}
				if listed++; rated[pair] {
					t.Errorf("%v is recommended, and was rated", pair)
				}
			}
			return nil
		})
		if want := m.Users*m.Items - len(rated); err != nil || listed != want {
			t.Errorf("%d pairs are recommended of %d that nobody has rated: %v", listed, want, err)
		}
	}
}

// TestAFactorizationHasNoGap: nothing bounds its objective from below.
func TestAFactorizationHasNoGap(t *testing.T) {
	path := writeRatings(t, planted(30, 20, 2, 0.6), ratingsHead)
	c := Config{Data: []string{path}, Rank: 2, Reg: 0.1, MaxIterations: 5, Tol: 1e-3}
	if got := factored(t, c); !math.IsNaN(got.Gap) {
		t.Errorf("the gap is %v (by %q)", got.Gap, got.GapBy)
	}
}
