package als

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/rdd"
)

// rating is a row of a table of ratings.
type rating struct {
	user, item, value float64
}

// planted are ratings that are products of vectors of rank f, a share of all, with
// numbers of users and items that are far apart and in no order.
func planted(users, items, f int, share float64) (all []rating) {
	rng := rand.New(rand.NewPCG(8, uint64(f)))
	u, v := make([]float64, users*f), make([]float64, items*f)
	for i := range u {
		u[i] = rng.NormFloat64()
	}
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	for i := range users {
		for j := range items {
			if rng.Float64() >= share {
				continue
			}
			var z float64
			for k := range f {
				z += u[i*f+k] * v[j*f+k]
			}
			all = append(all, rating{float64((i*7919)%users + 1_000_000*(i%2)), float64(3*j + 1), z})
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func writeRatings(t *testing.T, all []rating, head string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(head)
	for i, r := range all {
		fmt.Fprintf(&b, "%v,%.0f,%.0f,%d\n", r.value, r.item, r.user, i)
	}
	path := filepath.Join(t.TempDir(), "ratings.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const ratingsHead = "rating,item,user,when\n"

func factor(t *testing.T, c Config, flags ...string) (out *Factored, err error) {
	t.Helper()
	cfg, err := volley.ParseConfig(append(flags, "--data-dir", t.TempDir())...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = volley.Run(context.Background(), cfg, "als", c, Build,
		func(ctx context.Context, s *rdd.Session, c Config, p Plan) (string, error) {
			var err error
			out, err = Train(ctx, s, c, p)
			return "", err
		})
	return out, err
}

func factored(t *testing.T, c Config, flags ...string) *Factored {
	t.Helper()
	out, err := factor(t, c, flags...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// rmse is the error of a model, by definition.
func rmse(m *Model, all []rating) float64 {
	var sq float64
	for _, r := range all {
		z, _ := m.score(r.user, r.item)
		sq += (z - r.value) * (z - r.value)
	}
	return math.Sqrt(sq / float64(len(all)))
}

// TestItemsAreSolved: with users given, no item's vector can be better: the slope
// of what is minimized vanishes, or, of vectors without negative entries, does not
// lead inside. What is minimized is written down anew.
func TestItemsAreSolved(t *testing.T) {
	all := planted(30, 20, 3, 0.5)
	for i := range all {
		all[i].value = math.Abs(math.Round(2 * all[i].value))
	}
	path := writeRatings(t, all, ratingsHead)
	for _, implicit := range []bool{false, true} {
		for _, nonNegative := range []bool{false, true} {
			c := Config{Data: []string{path}, Rank: 4, Reg: 0.05, Implicit: implicit, Alpha: 2,
				NonNegative: nonNegative, MaxIterations: 5, Seed: 1}
			got := factored(t, c, "--executors", "2").Model
			for k, item := range got.items.IDs {
				y := got.items.At[k*4 : k*4+4]
				slope := itemSlope(c, got, item, all)
				for j, s := range slope {
					if off := math.Abs(s); off > 1e-7 && !(nonNegative && y[j] == 0 && s > 0) {
						t.Errorf("implicit=%v nonnegative=%v item %v: slope %v at %v", implicit, nonNegative, item,
							slope, y)
						break
					}
				}
			}
		}
	}
}

func itemSlope(c Config, m *Model, item float64, all []rating) []float64 {
	y, n := m.items.vector(item, c.Rank), 0.0
	slope, given := make([]float64, c.Rank), map[float64]float64{}
	for _, r := range all {
		if r.item == item {
			n++
			given[r.user] = r.value
		}
	}
	for _, user := range m.users.IDs {
		x := m.users.vector(user, c.Rank)
		value, rated := given[user]
		var z float64
		for j := range y {
			z += x[j] * y[j]
		}
		weight, want := 0.0, value
		if rated {
			weight = 1
		}
		if c.Implicit {
			weight, want = 1+c.Alpha*value, 0
			if value > 0 {
				want = 1
			}
		}
		for j := range y {
			slope[j] += weight * (z - want) * x[j]
		}
	}
	for j := range y {
		slope[j] += c.Reg * n * y[j]
	}
	return slope
}

// TestALowRankIsFound, whole or cut on uneven executors, and the error that is
// reported is the one there is.
func TestALowRankIsFound(t *testing.T) {
	all := planted(3000, 1200, 3, 0.03)
	c := Config{Data: []string{writeRatings(t, all, ratingsHead)}, Rank: 3, Reg: 1e-9, MaxIterations: 60, Splits: 8,
		Seed: 2}
	whole := factored(t, c, "--executors", "4")
	if real := rmse(whole.Model, all); whole.Objective > 1e-3 || math.Abs(real-whole.Objective) > 1e-9 {
		t.Errorf("error %v, in truth %v", whole.Objective, real)
	}
	c.Cut = true
	got := factored(t, c, "--executors", "4", "--sync", "absp", "--clock", "virtual", "--pace", "static:4,1,1,1",
		"--exchange", "off")
	if real := rmse(got.Model, all); got.MeanShare > 0.97 || real > 1e-3 || math.Abs(real-got.Objective) > 1e-9 {
		t.Errorf("cut to a share of %v: error %v, in truth %v", got.MeanShare, got.Objective, real)
	}
}

func TestALSOnAnyClusterIsTheSame(t *testing.T) {
	c := Config{Data: []string{writeRatings(t, planted(200, 50, 4, 0.3), ratingsHead)}, Rank: 5, Reg: 0.1,
		MaxIterations: 6, Splits: 6, Seed: 3}
	one := factored(t, c, "--executors", "1")
	for _, executors := range []string{"3", "8"} {
		if got := factored(t, c, "--executors", executors); !slices.Equal(got.Model.users.At, one.Model.users.At) ||
			!slices.Equal(got.Model.items.At, one.Model.items.At) {
			t.Errorf("%s executors give other vectors", executors)
		}
	}
}

func TestAFactorModelIsUsed(t *testing.T) {
	all := planted(60, 30, 2, 0.5)
	path := writeRatings(t, all, "") // columns by number
	c := Config{Data: []string{path}, User: "2", Item: "1", Rating: "0", Rank: 2, Reg: 0.01, MaxIterations: 20,
		Tol: 1e-6}
	got := factored(t, c, "--executors", "2")
	dir := filepath.Join(t.TempDir(), "model")
	if err := got.Model.Save(dir, false); err != nil {
		t.Fatal(err)
	}
	loaded, err := model.Load(dir, []model.Kind{Kind})
	if err != nil {
		t.Fatal(err)
	}
	m := loaded.(*Model)
	test := writeRatings(t, append(all[:50:50], rating{77, 1, 1}, rating{all[0].user, 2, 1}), "")
	metrics, err := m.Evaluate(context.Background(), rdd.Input{}, []string{test})
	if err != nil || metrics["cold_rows"] != 2 || math.Abs(metrics["rmse"]-rmse(m, all[:50])) > 1e-12 {
		t.Errorf("%v, %v", metrics, err)
	}
	var out strings.Builder
	if rows, err := m.Predict(context.Background(), rdd.Input{}, []string{test}, &out); err != nil || rows != 52 ||
		strings.Count(out.String(), "NaN") != 2 {
		t.Errorf("%d rows, %v:\n%s", rows, err, out.String())
	}
	seen := 0
	err = m.Top(nil, 3, true, true, func(user float64, best []Recommended) error {
		seen++
		for _, item := range m.items.IDs {
			z, _ := m.score(user, item)
			listed := slices.ContainsFunc(best, func(r Recommended) bool { return r.ID == item })
			if !listed && z > best[2].Score+1e-12 || len(best) != 3 {
				t.Errorf("item %v scores %v for user %v, and is not among %v", item, z, user, best)
			}
		}
		return nil
	})
	if err != nil || seen != got.Model.Users {
		t.Errorf("%d users, %v", seen, err)
	}
}

// TestImplicitRankings: two groups of users who like two groups of items.
func TestImplicitRankings(t *testing.T) {
	var all []rating
	for u := range 40 {
		for i := range 20 {
			if u%2 == i%2 && (u+i/2)%3 > 0 {
				all = append(all, rating{float64(u), float64(i), 2})
			}
		}
	}
	c := Config{Data: []string{writeRatings(t, all, ratingsHead)}, Rank: 4, Reg: 0.01, Implicit: true, Alpha: 10,
		MaxIterations: 10}
	got := factored(t, c, "--executors", "2")
	metrics, err := got.Model.Evaluate(context.Background(), rdd.Input{}, c.Data)
	if err != nil || metrics["map_at_10"] < 0.9 || metrics["ndcg_at_10"] < 0.9 || metrics["map_at_10"] > 1 {
		t.Errorf("%v, %v", metrics, err)
	}
}

func TestBadRatings(t *testing.T) {
	path := writeRatings(t, []rating{{1.5, 2, 3}}, ratingsHead)
	if err := os.WriteFile(path, []byte("user,item,rating\n1,2,3\n1.5,2,3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := factor(t, Config{Data: []string{path}, Rank: 2, MaxIterations: 2}); err == nil ||
		!strings.Contains(err.Error(), "1.5") {
		t.Errorf("half a user: %v", err)
	}
	if _, err := factor(t, Config{Data: []string{path}, User: "who", Rank: 2, MaxIterations: 2}); err == nil ||
		!strings.Contains(err.Error(), `"who"`) {
		t.Errorf("an unknown column: %v", err)
	}
	for _, c := range []Config{{Rank: 0}, {Rank: 3, Reg: -1}, {Rank: 3, Alpha: -1}} {
		if err := c.Check(); fault.KindOf(err) != fault.Usage {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A factorization that begins with another's items is as good after a sweep as that one was in the end, and finds
// vectors for items that it did not know.
func TestALSGoesOn(t *testing.T) {
	all := planted(300, 80, 3, 0.3)
	c := Config{Data: []string{writeRatings(t, all, ratingsHead)}, Rank: 3, Reg: 1e-6, MaxIterations: 40, Splits: 4,
		Seed: 2}
	first := factored(t, c, "--executors", "2")
	c.MaxIterations = 1
	drawn := factored(t, c, "--executors", "2")
	c.Init = BeginWith(first.Model)
	next := factored(t, c, "--executors", "3")
	if next.Objective > first.Objective*1.001 || drawn.Objective < 2*first.Objective {
		t.Errorf("error %v after a sweep, %v in the end of the first, %v from drawn vectors", next.Objective,
			first.Objective, drawn.Objective)
	}
	c.Data = []string{writeRatings(t, append(all, rating{all[0].user, 1e6, 3}), ratingsHead)}
	if more := factored(t, c, "--executors", "2"); more.Model.Items != first.Model.Items+1 {
		t.Errorf("%d items, there were %d and one more", more.Model.Items, first.Model.Items)
	}
	for i := range c.Init.IDs {
		c.Init.IDs[i] = -1 - c.Init.IDs[i]
	}
	slices.Sort(c.Init.IDs)
	if c.Rank = 4; fault.KindOf(c.Check()) != fault.Usage {
		t.Error("vectors of another rank are taken")
	}
}

// TestIDsMayBeTexts: of users, items or both, in quotes, beside a column of other texts; vectors are those of numbers
// in the same order, and predictions name what the data name, known or not.
func TestIDsMayBeTexts(t *testing.T) {
	all := planted(60, 30, 2, 0.5)
	c := Config{Data: []string{writeRatings(t, all, ratingsHead)}, Rank: 2, Reg: 0.01, MaxIterations: 10, Splits: 4}
	numbers := factored(t, c, "--executors", "2").Model
	user := func(id float64) string { return fmt.Sprintf("\"u, %04.0f\"", id) }
	item := func(id float64) string { return fmt.Sprintf("item %04.0f", id) }
	plain := func(id float64) string { return fmt.Sprintf("%.0f", id) }
	for name, of := range map[string][2]func(float64) string{"both": {user, item}, "users": {user, plain},
		"items": {plain, item}} {
		lines := []string{"customer,note,product,rating"}
		for _, r := range all {
			lines = append(lines, fmt.Sprintf("%s,note %v,%s,%v", of[0](r.user), r.value, of[1](r.item), r.value))
		}
		path := filepath.Join(t.TempDir(), "ratings.csv")
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		texts := c
		texts.Data, texts.User, texts.Item = []string{path}, "customer", "product"
		got := factored(t, texts, "--executors", "3").Model
		if !slices.Equal(got.users.At, numbers.users.At) || !slices.Equal(got.items.At, numbers.items.At) ||
			!slices.Equal(got.seen.Items, numbers.seen.Items) {
			t.Fatalf("%s: other vectors than by numbers", name)
		}
		dir := filepath.Join(t.TempDir(), "model")
		if err := got.Save(dir, false); err != nil {
			t.Fatal(err)
		}
		loaded, err := model.Load(dir, []model.Kind{Kind})
		if err != nil {
			t.Fatal(name, err)
		}
		m := loaded.(*Model)
		if !slices.Equal(m.users.IDs, got.users.IDs) || !slices.Equal(m.items.Names, got.items.Names) ||
			!slices.Equal(m.seen.Items, got.seen.Items) || !slices.Equal(m.seen.Ends, got.seen.Ends) {
			t.Errorf("%s: it is read back as another", name)
		}
		asked := filepath.Join(t.TempDir(), "asked.csv")
		first := all[0]
		rows := fmt.Sprintf("product,customer,rating\n%s,%s,3\n%s,%s,1\n", of[1](first.item), of[0](first.user),
			of[1](first.item), of[0](99999))
		if err := os.WriteFile(asked, []byte(rows), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if n, err := m.Predict(context.Background(), rdd.Input{}, []string{asked}, &out); err != nil || n != 2 {
			t.Fatal(name, n, err)
		}
		want, _ := numbers.score(first.user, first.item)
		lines = strings.Split(strings.TrimSpace(out.String()), "\n")
		if lines[1] != fmt.Sprintf("%s,%s,%v", of[0](first.user), of[1](first.item), want) ||
			lines[2] != fmt.Sprintf("%s,%s,NaN", of[0](99999), of[1](first.item)) {
			t.Errorf("%s: %q", name, lines)
		}
		metrics, err := m.Evaluate(context.Background(), rdd.Input{}, []string{asked})
		if err != nil || metrics["cold_rows"] != 1 {
			t.Errorf("%s: %v, %v", name, metrics, err)
		}
		text := strings.Trim(of[0](first.user), `"`)
		if id, err := m.IDOf(text, true); err != nil || m.NameOf(id, true) != text {
			t.Errorf("%s: %q is %v, %v", name, text, id, err)
		}
		texts.Init, texts.MaxIterations = BeginWith(m), 1
		next, was := factored(t, texts, "--executors", "2").Objective, rmse(numbers, all)
		if name == "both" && next > 1.01*was {
			t.Errorf("beginning with it gives %v, it had %v", next, was)
		}
	}
}
