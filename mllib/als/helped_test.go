package als

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/tables"
)

// uneven is a cluster of four slots of which one has three tenths of the others' speed.
var uneven = []string{"--executors", "4", "--clock", "virtual", "--pace-rate", "1000", "--pace", "static:1,1,1,0.3"}

// crowd returns ratings of enough users that a clock has some that may be handed over.
func crowd() []rating {
	return planted(8000, 60, 3, 0.5)
}

// TestHelpersMakeEachStepOnce: where steps are too small to change anything, a pass's error is that of all ratings
// before it, each once, whichever worker makes its step.
func TestHelpersMakeEachStepOnce(t *testing.T) {
	t.Parallel()
	c := sgdDefaults(writeRatings(t, crowd(), ratingsHead))
	c.MaxIterations, c.Rate, c.Model = 6, 1e-12, tables.SSP(1)
	want, err := descended(t, c, uneven...)
	if err != nil {
		t.Fatal(err)
	}
	help := tables.DefaultHelp()
	c.Help = &help
	got, err := descended(t, c, uneven...)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(got.Objective/want.Objective-1) > 1e-9 || got.Helped < 0.02 || want.Helped != 0 {
		t.Errorf("an error of %v, want %v; helped %.3f", got.Objective, want.Objective, got.Helped)
	}
}

// TestHelpedDescentFindsPlantedRatings as well as workers alone do, in less time.
func TestHelpedDescentFindsPlantedRatings(t *testing.T) {
	t.Parallel()
	all := crowd()
	c := sgdDefaults(writeRatings(t, all, ratingsHead))
	c.MaxIterations, c.Reg, c.Model = 12, 0.001, tables.SSP(1)
	alone, err := descended(t, c, uneven...)
	if err != nil {
		t.Fatal(err)
	}
	help := tables.DefaultHelp()
	c.Help = &help
	out, err := descended(t, c, uneven...)
	if err != nil {
		t.Fatal(err)
	}
	if e, want := rmse(out.Model, all), rmse(alone.Model, all); e > 1.1*want+0.01 || out.Helped < 0.02 ||
		out.Waited > 0.7*alone.Waited {
		t.Errorf("an error of %v, alone %v; helped %.3f, waited %.3f, alone %.3f", e, want, out.Helped, out.Waited,
			alone.Waited)
	}
}

// TestAPartIsDoneAsByItsWorker: a worker's users, items and errors after its last ratings were handed over and taken
// are those that its own steps lead to, and a part leaves alone what it is not of.
func TestAPartIsDoneAsByItsWorker(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	const rank, users, items = 3, 30, 20
	d := &descent{Rank: rank, Mean: 0.1, Reg: 0.2, Biases: true}
	n := d.numbers()
	own := block{items: make([]int, items), now: make([]float64, items*n)}
	at := make([]float64, users*n)
	for _, all := range [][]float64{own.now, at} {
		for i := range all {
			all[i] = rng.Float64()
		}
	}
	for user := range int32(users) {
		for range 100 {
			own.ratings = append(own.ratings, kernel.Rating{Row: user, Column: int32(rng.IntN(items)),
				Value: rng.NormFloat64()})
		}
	}
	own.cut()
	goesOn(t, d, own, at)
	by := own
	by.now = slices.Clone(own.now)
	byAt, k := slices.Clone(at), len(own.ends)
	own.squares = d.descend(at, own.now, own.ratings, 0.05, func(int) {})
	by.squares = d.descend(byAt, by.now, by.part(0, k/2), 0.05, func(int) {})
	worked, part := 0.0, tables.Part{From: k / 2, To: k}
	g := by.give(byAt, n, part)
	g.Rate, g.Share = 0.05, 0.5
	by.take(byAt, n, part, g.steps(d, func(users float64) { worked += users }))
	for i, x := range slices.Concat(own.now, at) {
		if got := slices.Concat(by.now, byAt)[i]; math.Abs(got-x) > 1e-12 {
			t.Fatalf("number %d is %v, by its worker's own steps %v", i, got, x)
		}
	}
	if math.Abs(by.squares-own.squares) > 1e-9 || worked != float64(len(by.part(k/2, k)))/2 {
		t.Errorf("squares %v, want %v; as for %v users", by.squares, own.squares, worked)
	}
}

// goesOn checks what a worker has that made other steps between giving a part away and taking it: these, users as the
// helper has left them, and both growths of items.
func goesOn(t *testing.T, d *descent, b block, at []float64) {
	t.Helper()
	n, k := d.numbers(), len(b.ends)
	part := tables.Part{From: k / 2, To: k}
	b.now, at = slices.Clone(b.now), slices.Clone(at)
	before := slices.Clone(b.now)
	m := b.give(at, n, part)
	m.Rate = 0.05
	made := m.steps(d, func(float64) {})
	b.squares = d.descend(at, b.now, b.part(0, k/2), 0.05, func(int) {})
	wantItems, wantUsers, squares := slices.Clone(b.now), slices.Clone(at), b.squares
	columns, _ := b.columnsOf(b.part(part.From, part.To))
	grown := 0.0
	for i, column := range columns {
		for x := range n {
			wantItems[int(column)*n+x] += made.Items[i*n+x]
			grown += math.Abs(made.Items[i*n+x] * (b.now[int(column)*n+x] - before[int(column)*n+x]))
		}
	}
	copy(wantUsers[int(b.part(part.From, part.To)[0].Row)*n:], made.Users)
	b.take(at, n, part, made)
	if !slices.Equal(b.now, wantItems) || !slices.Equal(at, wantUsers) || b.squares != squares+made.Squares ||
		grown == 0 {
		t.Error("after other steps a part leads to other numbers than both")
	}
}

// TestPartsAreOfWholeUsers: no user's ratings are in two parts, and what a part is of is told by its place there.
func TestPartsAreOfWholeUsers(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	const rank, items = 3, 50
	b := block{items: make([]int, items), now: make([]float64, items*(rank+kernel.OwnNumbers))}
	for user := range int32(40) {
		for range rng.IntN(3) * rng.IntN(4000) {
			b.ratings = append(b.ratings, kernel.Rating{Row: user, Column: int32(rng.IntN(items)), Value: 1})
		}
	}
	b.cut()
	count := 0
	for i := range b.ends {
		of := b.part(i, i+1)
		if i > 0 && of[0].Row == b.ratings[count-1].Row {
			t.Errorf("part %d goes on with a user of the one before", i)
		}
		count += len(of)
	}
	if count != len(b.ratings) {
		t.Errorf("parts have %d ratings of %d", count, len(b.ratings))
	}
	columns, at := b.columnsOf(b.part(2, 5))
	for _, x := range b.part(2, 5) {
		if columns[at[x.Column]] != x.Column {
			t.Fatalf("item %d has place %d, which is item %d's", x.Column, at[x.Column], columns[at[x.Column]])
		}
	}
	if sorted := slices.Sorted(slices.Values(columns)); len(slices.Compact(sorted)) != len(columns) {
		t.Error("an item comes twice")
	}
}
