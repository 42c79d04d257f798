package als

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// SGDConfig configures the factorization of ratings by stochastic gradient descent: a rating is to be the mean of all,
// with Biases a number of its user's and one of its item's, and the product of their vectors of Rank numbers. What is
// minimized is the squared error of each rating, and Reg times the squares of the numbers that it is made of. Of the
// Config it embeds, what is of alternating least squares alone means nothing.
type SGDConfig struct {
	Config
	Rate  float64 // of learning, in the first pass, before a user or an item has moved
	Decay float64 // what each pass multiplies it by
	Model tables.Model
	// Help has workers do parts of one another's clocks (FlexRR); nil has none do.
	Help *tables.Help `json:",omitempty"`
}

// CheckSGD refuses configurations that no data could make right.
func (c *SGDConfig) CheckSGD() error {
	switch {
	case !(c.Rate > 0 && c.Rate <= 10):
		return fault.Newf(fault.Usage, "mf", "--rate", "%v does not lie in (0, 10]", c.Rate)
	case !(c.Decay > 0 && c.Decay <= 1):
		return fault.Newf(fault.Usage, "mf", "--decay", "%v does not lie in (0, 1]", c.Decay)
	case c.Rate*c.Reg >= 1:
		return fault.Newf(fault.Usage, "mf", "--reg", "%v times the rate of %v takes away more than there is", c.Reg,
			c.Rate).WithHint("lower one of them")
	case c.MaxIterations < 1:
		return fault.Newf(fault.Usage, "mf", "--max-iterations", "%d passes", c.MaxIterations)
	case c.Rank < 1 || c.Rank > maxRank-2:
		return fault.Newf(fault.Usage, "mf", "--rank", "%d does not lie in [1, %d]", c.Rank, maxRank-2)
	}
	return c.Check()
}

// SGDPlan is the plan of such a factorization. Workers have users, whose numbers are their state; those of items are a
// table's rows: a vector, and the item's own number.
type SGDPlan struct {
	Plan
	items *tables.Table[float64]
	// passes has the sum of squared errors of each pass, before the steps that they lead to.
	passes *tables.Table[float64]
	work   tables.Work[descent, rdd.Point, ownUsers]
}

// ratingSums are of a split's ratings.
type ratingSums struct{ N, Sum float64 }

func addSums(r ratingSums, _ int, b *rdd.Batch) ratingSums {
	for _, row := range b.Rows {
		for _, x := range values(b, row) {
			r.N, r.Sum = r.N+1, r.Sum+x
		}
	}
	return r
}

// meanOf returns how many ratings there are, and their mean.
func (p *Plan) meanOf(ctx context.Context, s *rdd.Session) (n, mean float64, err error) {
	sums, err := p.sums.Run(ctx, s, 0)
	if err != nil {
		return 0, 0, err
	}
	sum := 0.0
	for _, x := range sums {
		n, sum = n+x.N, sum+x.Sum
	}
	return n, sum / max(1, n), nil
}

// descent is the parameter of a run.
type descent struct {
	Rank            int
	Mean, Rate, Reg float64
	Decay           float64
	Seed            uint64
	Items, Ratings  int
	Biases          bool
}

// ownUsers are the numbers of a worker's users: of each its vector, and its own number.
type ownUsers struct {
	IDs []float64
	At  []float64
}

// BuildSGD declares the plan.
func BuildSGD(g *rdd.Graph, c SGDConfig) *SGDPlan {
	p := &SGDPlan{Plan: Build(g, c.Config)}
	p.Numbers = rdd.ScanBatches(p.Items, addNumbers)
	p.sums = rdd.ScanBatches(p.Users, addSums)
	p.items = tables.New[float64](g, "items", tables.Dense(0, c.Rank+kernel.OwnNumbers), c.Model)
	p.passes = tables.New[float64](g, "passes", tables.Dense(c.MaxIterations, 1), c.Model)
	if c.Help == nil {
		p.work = tables.Worker(p.Users, p.clock, p.items, p.passes)
		return p
	}
	p.work = tables.HelpedWorker(p.Users, p.clock, tables.Helping[descent, rdd.Point, ownUsers, given, made]{
		By: *c.Help, Give: p.give, Do: p.help, Take: p.take, NoRows: true}, p.items, p.passes)
	return p
}

// values returns the ratings of a row.
func values(b *rdd.Batch, row int32) []float64 { return b.X64[b.Offsets[row]:b.Offsets[row+1]] }

// lookRatings is how many ratings a worker takes between two looks at whether it may go on.
const lookRatings = 64

// mostRatings is how many of one user's ratings go together, at the most.
const mostRatings = 4096

// begin draws the first vectors of a worker's users; those of items are zeros.
func begin(c *tables.Clock[descent, rdd.Point, ownUsers]) {
	rng := rand.New(rand.NewPCG(c.Param.Seed, 1<<40|uint64(c.Worker())))
	for row := range c.Rows() {
		c.State.IDs = append(c.State.IDs, row.Label)
		for range c.Param.Rank {
			c.State.At = append(c.State.At, 0.1*rng.NormFloat64())
		}
		c.State.At = append(c.State.At, make([]float64, kernel.OwnNumbers)...)
	}
}

// clock does a worker's clock: the ratings of one block of items.
func (p *SGDPlan) clock(c *tables.Clock[descent, rdd.Point, ownUsers]) error {
	if c.Number() == 0 {
		begin(c)
	}
	now, items, places := present(c), p.items.In(c), c.Param.places(c.Workers())
	now.load(places, items)
	share := now.usersOf(c)
	now.squares = 0
	c.Share(len(now.ends), func(from, to int) {
		now.squares += c.Param.descend(c.State.At, now.now, now.part(from, to), rateAt(c),
			func(n int) { c.Worked(float64(n) * share) })
	})
	now.tell(places, items)
	p.passes.In(c).Inc(c.Number()/c.Workers(), 0, now.squares)
	return nil
}

// rateAt returns the rate of learning in a clock.
func rateAt(c *tables.Clock[descent, rdd.Point, ownUsers]) float64 {
	return c.Param.Rate * math.Pow(c.Param.Decay, float64(c.Number()/c.Workers()))
}

// places returns where the numbers of items are.
func (d *descent) places(workers int) places { return placesOf(d.Items, workers, d.numbers()) }

// numbers returns how many numbers a user has, and an item.
func (d *descent) numbers() int { return d.Rank + kernel.OwnNumbers }

// descend makes a step for each of some ratings, and returns the sum of their squared errors before. It calls done
// with how many ratings it makes steps for next.
func (d *descent) descend(users, items []float64, left []kernel.Rating, rate float64, done func(ratings int)) (
	squares float64) {
	by := kernel.Descent{Rank: d.Rank, Mean: d.Mean, Rate: rate, Reg: d.Reg, Own: d.Biases}
	for len(left) > 0 {
		n := together(left)
		done(n)
		squares += by.Steps(users, items, left[:n])
		left = left[n:]
	}
	return squares
}

// together returns how many of some ratings, the first, go together: a user's do.
func together(left []kernel.Rating) int {
	n := min(lookRatings, len(left))
	for n < min(len(left), mostRatings) && left[n].Row == left[n-1].Row {
		n++
	}
	return n
}

// TrainSGD makes passes over the ratings and returns the model: one of alternating least squares, whose vectors have
// two numbers more, so that their product is the rating.
func TrainSGD(ctx context.Context, s *rdd.Session, c SGDConfig, p *SGDPlan) (*Factored, error) {
	d, numbers, err := p.prepare(ctx, s, &c)
	if err != nil {
		return nil, err
	}
	// in their table, in its snapshot and in the model
	if err := train.Fits("mf", "--rank", "the items' numbers", 8*3*float64(d.Items)*float64(c.Rank+1)); err != nil {
		return nil, err
	}
	out := &Factored{Summary: train.Summary{Solver: "sgd", StoppedBy: "max-iterations", Gap: math.NaN(),
		Features: d.Items}}
	var tick *tables.Tick
	users, err := p.Users.Meta(ctx, s)
	if err != nil {
		return nil, err
	}
	out.Rows = users.Rows
	p.items.Reshape(d.places(len(users.Splits)).shape())
	for tick, err = range p.work.Clocks(ctx, s, d, c.MaxIterations*len(users.Splits), len(users.Splits)) {
		if err != nil {
			return nil, err
		}
		out.Iterations = tick.Clock / tick.Workers()
		out.Waited, out.Helped = tick.WaitedShare(), tick.HelpedShare()
		out.Objective = p.errorOf(tick, out.Iterations, d)
		if tick.Report("objective", out.Objective); !num.Finite(out.Objective) {
			return nil, fault.Newf(fault.BadInput, "train", "mf", "the numbers are not finite after pass %d",
				out.Iterations).WithHint("lower --rate")
		}
		before := p.errorOf(tick, out.Iterations-1, d)
		if out.Converged = c.Tol > 0 && math.Abs(before-out.Objective) <= c.Tol*before; out.Converged {
			out.StoppedBy = "tolerance"
			tick.Stop()
		}
	}
	return out, p.finish(ctx, s, &c, out, tick, d, numbers)
}

// errorOf returns the root mean squared error of a pass, counted from 1; not a number before the first.
func (p *SGDPlan) errorOf(tick *tables.Tick, pass int, d descent) float64 {
	if pass == 0 {
		return math.NaN()
	}
	return math.Sqrt(p.passes.At(tick, pass-1).Values[0] / float64(d.Ratings))
}

// prepare reads what has to be known of all ratings.
func (p *SGDPlan) prepare(ctx context.Context, s *rdd.Session, c *SGDConfig) (d descent, numbers []float64, err error) {
	if err := c.CheckSGD(); err != nil {
		return d, nil, err
	}
	n, mean, err := p.meanOf(ctx, s)
	if err != nil {
		return d, nil, err
	}
	splits, err := p.Numbers.Run(ctx, s, 0)
	if err != nil {
		return d, nil, err
	}
	numbers = slices.Concat(splits...)
	slices.Sort(numbers)
	d = descent{Rank: c.Rank, Mean: mean, Rate: c.Rate, Decay: c.Decay, Reg: c.Reg, Seed: c.Seed,
		Items: len(numbers), Ratings: int(n), Biases: c.Biases}
	return d, numbers, nil
}

// finish makes the model of the last tick.
func (p *SGDPlan) finish(ctx context.Context, s *rdd.Session, c *SGDConfig, out *Factored, tick *tables.Tick,
	d descent, numbers []float64) error {
	m := &Model{Rank: c.Rank + 2, Biases: true, User: c.User, Item: c.Item, Rating: c.Rating}
	type user struct {
		id float64
		at []float64
	}
	var users []user
	for w := range tick.Workers() {
		own, err := p.work.StateAt(tick, w)
		if err != nil {
			return fault.New(fault.Corrupt, "read", "the state of a worker", err)
		}
		for i, id := range own.IDs {
			users = append(users, user{id, own.At[i*(c.Rank+kernel.OwnNumbers) : (i+1)*(c.Rank+kernel.OwnNumbers)]})
		}
	}
	slices.SortFunc(users, func(a, b user) int { return cmp.Compare(a.id, b.id) })
	for _, u := range users { // the products of the last two numbers are the mean, and the user's and the item's own
		m.users.IDs = append(m.users.IDs, u.id)
		m.users.At = append(append(m.users.At, u.at[:c.Rank]...), u.at[c.Rank]+d.Mean, 1)
	}
	m.items.IDs = numbers
	for i := range numbers {
		row, column := d.places(tick.Workers()).of(i)
		at := p.items.At(tick, row).Values[column : column+c.Rank+1]
		m.items.At = append(append(m.items.At, at[:c.Rank]...), 1, at[c.Rank])
	}
	m.Users, m.Items, out.Model = len(m.users.IDs), len(m.items.IDs), m
	splits, err := p.Seen.Run(ctx, s, 0)
	if err != nil {
		return err
	}
	m.seen, err = gatherSeen(splits, m.users.IDs)
	m.Seen = int64(len(m.seen.Items))
	(&trainer{cfg: c.Config, plan: p.Plan, out: Factored{Model: m}}).name()
	return err
}
