package als

import (
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
)

// Config configures the factorization of ratings: each user and each item gets a
// vector of Rank numbers, whose product is to be the rating. Objective: the root
// mean squared error on the ratings; what is minimized by turns has Reg·n·‖x‖²
// added for each vector x of a user or item with n ratings (ALS-WR, Zhou et al.).
// With Biases a rating is to be the mean of all, and a number of its user's and one
// of its item's, and the product, and the penalty has these numbers' squares, too.
// Implicit takes ratings as confidence 1 + Alpha·|r| that the user likes the item
// (r > 0) or does not, all other items counting as not liked with confidence 1 (Hu,
// Koren and Volinsky).
type Config struct {
	Data               []string
	Input              rdd.Input
	User, Item, Rating string // columns, by name or number; empty: user, item, rating, or the first three
	Splits             int
	Seed               uint64
	Rank               int
	Reg                float64
	Implicit           bool
	Alpha              float64
	NonNegative        bool
	Biases             bool `json:",omitempty"` // a rating is the mean, and a number of its user's and its item's, too
	Cut                bool // half-sweeps may end before all rows are processed
	MaxAge             int  // sweeps after which one is not cut, so that no row is older; 0 is never
	MaxIterations      int  // sweeps
	Tol                float64
	Target             *float64 `json:",omitempty"`
	MaxTime            time.Duration
	Init               *Beginning `json:",omitempty"` // model to begin with
}

// Check refuses configurations that no data could make right.
func (c *Config) Check() error {
	switch {
	case c.Rank < 1 || c.Rank > maxRank-2:
		return fault.Newf(fault.Usage, "als", "--rank", "%d does not lie in [1, %d]", c.Rank, maxRank-2)
	case c.Biases && (c.Implicit || c.NonNegative):
		return fault.Newf(fault.Usage, "als", "--biases", "they are of explicit ratings, and may be negative")
	case !(c.Reg >= 0) || !(c.Alpha >= 0):
		return fault.Newf(fault.Usage, "als", "--reg", "neither penalty nor alpha may be below 0")
	case c.Init != nil && c.Init.Rank != c.Rank:
		return fault.Newf(fault.Usage, "als", "--init", "its vectors have %d numbers, --rank asks for %d", c.Init.Rank,
			c.Rank)
	case c.Init != nil && c.Init.Biases != c.Biases:
		return fault.Newf(fault.Usage, "als", "--init", "one has numbers of users and items beside, the other has not").
			WithHint("--biases=true or false, as the model has")
	case c.Init != nil && c.Init.Implicit != c.Implicit:
		return fault.Newf(fault.Usage, "als", "--init", "one is of implicit ratings, the other is not")
	}
	return nil
}

// maxRank is how many numbers a vector has at the most.
const maxRank = 2002

// width returns how many numbers are solved for: those of a vector, and with biases one more.
func (c *Config) width() int {
	if c.Biases {
		return c.Rank + 1
	}
	return c.Rank
}

// Plan is the plan of a factorization. Users has a row of ratings for each user,
// Items one for each item. Of the steps that solve, Whole ones are never cut.
type Plan struct {
	Users, Items           rdd.Packed[rdd.Point]
	SolveUsers, SolveItems rdd.Step[factors, solved]
	WholeUsers, WholeItems rdd.Step[factors, solved]
	Seen                   rdd.Scan[int, []float64] // which items each user has rated
	Numbers                rdd.Scan[int, []float64] // of the items, where there is a model to begin with
	sums                   rdd.Scan[int, ratingSums]
	ratings                rdd.Dataset[rdd.Point]
}

// columns returns the columns of users, items and ratings, where there are ids that are texts: these with the ids in
// order, whose places are then the numbers.
func (p *Plan) columns(c *Config) (out [3]input.IDColumn) {
	prepared := rdd.PreparationOf(p.ratings)
	for i, names := range ratingColumns(c.User, c.Item, c.Rating) {
		out[i] = prepared.IDColumn(names...)
	}
	return out
}

// Beginning is the items of a model that training begins with, so that a run's log has what it needs to be replayed:
// users are solved first, from these.
type Beginning struct {
	Rank     int
	Implicit bool
	Biases   bool `json:",omitempty"`
	IDs      []float64
	Names    []string // in place of numbers
	At       []float64
}

// BeginWith returns what of a model training begins with.
func BeginWith(m *Model) *Beginning {
	b := &Beginning{m.Rank, m.Implicit, m.Biases, m.items.IDs, m.items.Names, m.items.At}
	if !m.Biases {
		return b
	}
	b.Rank, b.At = m.Rank-2, nil
	for i := range m.items.IDs { // without the one that the user's own number is multiplied by
		x := m.items.At[i*m.Rank : (i+1)*m.Rank]
		b.At = append(append(b.At, x[:b.Rank]...), x[b.Rank+1])
	}
	return b
}

// width returns how many numbers an item has.
func (b *Beginning) width() int { return (&Config{Rank: b.Rank, Biases: b.Biases}).width() }

// vector returns the vector of an item, given by its number, or its place among names; nil where it is not known.
func (b *Beginning) vector(number float64, names []string) []float64 {
	at, known := 0, false
	switch {
	case (names == nil) != (b.Names == nil):
	case names != nil:
		at, known = slices.BinarySearch(b.Names, names[int(number)])
	default:
		at, known = slices.BinarySearch(b.IDs, number)
	}
	if !known {
		return nil
	}
	return b.At[at*b.width() : (at+1)*b.width()]
}

// addNumbers appends the numbers of rows.
func addNumbers(out []float64, _ int, b *rdd.Batch) []float64 {
	for _, r := range b.Rows {
		out = append(out, b.Labels[r])
	}
	return out
}

// Build declares the plan.
func Build(g *rdd.Graph, c Config) Plan {
	columns := ratingColumns(c.User, c.Item, c.Rating)
	c.Input.NoLabel = true
	c.Input.Prepare.IDs, c.Input.Prepare.Beside = columns[:2], columns[:]
	ratings := rdd.Points(g, c.Input, c.Data...)
	entries := rdd.Entries(ratings, columns)
	options := []rdd.PackOption{rdd.Splits(c.Splits), rdd.Seed(c.Seed)}
	p := Plan{ratings: ratings}
	p.Users, p.Items = rdd.PackEntries(entries, options...)
	users, items := &rowSolver{config: c}, &rowSolver{config: c, measure: true} // items come last in a sweep
	p.SolveUsers = rdd.Aggregate(p.Users, users.aggregator(), rdd.Aggressive(0))
	p.SolveItems = rdd.Aggregate(p.Items, items.aggregator(), rdd.Aggressive(0))
	p.WholeUsers = rdd.Aggregate(p.Users, users.aggregator(), rdd.Aggressive(1))
	p.WholeItems = rdd.Aggregate(p.Items, items.aggregator(), rdd.Aggressive(1))
	p.Seen = rdd.ScanBatches(p.Users, addSeen)
	if c.Biases {
		p.sums = rdd.ScanBatches(p.Users, addSums)
	}
	if c.Init != nil {
		p.Numbers = rdd.ScanBatches(p.Items, addNumbers)
	}
	return p
}

// ratingColumns returns the names that columns are looked for by: where none is
// asked for, user, item and rating, or else the first three.
func ratingColumns(wanted ...string) (out [3][]string) {
	for i, name := range wanted {
		if out[i] = []string{name}; name == "" {
			out[i] = []string{[]string{"user", "item", "rating"}[i], []string{"0", "1", "2"}[i]}
		}
	}
	return out
}
