package als

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
)

// side is one side of the factorization: its numbers in order, and their vectors.
type side struct {
	IDs   []float64
	Names []string          // of a model, where ids are texts: those of 0, 1, 2, …
	At    []float64         // row-major
	place map[float64]int32 // of each number; nil until it is asked for
	came  []int32           // places, in the order in which rows came last
}

// state is everything that one half-sweep hands to the next.
type state struct {
	Users, Items side
	Error        float64 // root mean squared error at the end of the last sweep
	Rules        train.StopState
	Ending       train.Ending // a rule may have fired while one sweep that is not cut is left
	last         *side        // that was solved
}

// Parameters returns the vectors that the last half-sweep has solved: the others
// were a turn's before.
func (s *state) Parameters() [][]float64 {
	if s.last == nil {
		return nil
	}
	return [][]float64{s.last.At}
}

// MarshalBinary lays the state out, how it ends before the rest.
func (s state) MarshalBinary() ([]byte, error) { return num.PutPair(s.Ending.MarshalBinary, s.floats) }

// UnmarshalBinary reads what MarshalBinary wrote.
func (s *state) UnmarshalBinary(raw []byte) error {
	return num.GetPair(raw, s.Ending.UnmarshalBinary, s.setFloats)
}

func (s state) floats() ([]byte, error) {
	out := make([]byte, 0, 8*(len(s.Users.At)+len(s.Items.At)+len(s.Users.IDs)+len(s.Items.IDs)+32))
	out = num.PutFloats(out, []float64{s.Error, float64(len(s.Users.IDs)), float64(len(s.Users.At)),
		float64(len(s.Items.IDs)), float64(len(s.Items.At))})
	return num.PutFloats(out, s.Users.IDs, s.Users.At, s.Items.IDs, s.Items.At, s.Rules.Floats()), nil
}

func (s *state) setFloats(raw []byte) error {
	v, err := num.GetFloats(raw, 5)
	if err != nil {
		return err
	}
	s.Error = v[0]
	lengths := v[1:5]
	v = v[5:]
	for i, to := range []*[]float64{&s.Users.IDs, &s.Users.At, &s.Items.IDs, &s.Items.At} {
		n := int(lengths[i])
		if n < 0 || n > len(v) {
			return num.ErrCutShort
		}
		*to, v = v[:n:n], v[n:]
	}
	return s.Rules.SetFloats(v)
}

// take puts solved rows in their places. At first, the rows are all there are.
func (s *side) take(rows solved, rank int) error {
	n, numbers := rows.rows()
	if numbers != rank*n {
		return num.ErrCutShort
	}
	if len(s.IDs) == 0 {
		s.begin(rows, rank)
	}
	k := 0
	for _, run := range rows.Runs {
		if len(run.At) != rank*len(run.IDs) {
			return num.ErrCutShort
		}
		for i, id := range run.IDs {
			place, err := s.placeOf(k, id)
			if err != nil {
				return err
			}
			copy(s.At[place*rank:(place+1)*rank], run.At[i*rank:(i+1)*rank])
			k++
		}
	}
	return nil
}

// begin makes places for rows.
func (s *side) begin(rows solved, rank int) {
	s.IDs = nil
	for _, run := range rows.Runs {
		s.IDs = append(s.IDs, run.IDs...)
	}
	slices.Sort(s.IDs)
	s.At = make([]float64, rank*len(s.IDs))
}

// placeOf returns the place of a row, the k-th that comes. Rows come in the order
// of the last time, but for those of splits that have moved or were cut.
func (s *side) placeOf(k int, id float64) (int, error) {
	if k < len(s.came) && s.IDs[s.came[k]] == id {
		return int(s.came[k]), nil
	}
	if s.place == nil {
		s.place = make(map[float64]int32, len(s.IDs))
		for i, id := range s.IDs {
			s.place[id] = int32(i)
		}
	}
	place, there := s.place[id]
	if !there {
		return 0, fault.Newf(fault.Internal, "sweep", "als", "row %v was solved, which was not there before", id)
	}
	s.came = append(s.came[:k], place)
	return int(place), nil
}

// Factored is the outcome of a factorization.
type Factored struct {
	train.Summary
	Model *Model
}

// als runs one factorization.
type trainer struct {
	train.Training
	cfg  Config
	plan Plan
	st   state
	out  Factored
	mean float64 // of the ratings, with biases
}

// Train sweeps over users and items by turns and returns the model.
func Train(ctx context.Context, s *rdd.Session, c Config, p Plan) (*Factored, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	t := &trainer{cfg: c, plan: p}
	t.Training = train.Training{Session: s, Summary: &t.out.Summary, Ending: &t.st.Ending}
	t.out.Gap = math.NaN()
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	if err := train.Loop(ctx, &t.Training, &t.st, 2*c.MaxIterations, train.Rules{Tol: c.Tol, Target: c.Target,
		MaxTime: c.MaxTime}, t.half); err != nil {
		return nil, err
	}
	return t.finish(ctx)
}

// prepare loads the ratings and draws the items' first vectors: of length 1, in
// directions that are as likely as any others; without biases of positive numbers, so
// that their products are of ratings' sign from the first.
func (t *trainer) prepare(ctx context.Context) error {
	users, err := t.plan.Users.Meta(ctx, t.Session)
	if err != nil {
		return err
	}
	items, err := t.plan.Items.Meta(ctx, t.Session)
	if err != nil {
		return err
	}
	t.out.Rows, t.out.Features, t.out.Solver = users.Rows, int(items.Rows), "als"
	if t.cfg.Biases {
		if _, t.mean, err = t.plan.meanOf(ctx, t.Session); err != nil {
			return err
		}
	}
	rng, f := rand.New(rand.NewPCG(t.cfg.Seed, 0)), t.cfg.width()
	t.st.Items.At = make([]float64, int(items.Rows)*f)
	for i := 0; i < len(t.st.Items.At); i += f {
		row := t.st.Items.At[i : i+t.cfg.Rank]
		for j := range row {
			for row[j] == 0 { // the polar method without a logarithm: a sum of twelve
				for range 12 {
					row[j] += rng.Float64()
				}
				row[j] -= 6
			}
			if !t.cfg.Biases {
				row[j] = math.Abs(row[j])
			}
		}
		num.Normalize(row)
	}
	if t.cfg.Init == nil {
		return nil
	}
	return t.begin(ctx)
}

// begin takes the vectors of the items that a model knows in place of drawn ones.
func (t *trainer) begin(ctx context.Context) error {
	splits, err := t.plan.Numbers.Run(ctx, t.Session, 0)
	if err != nil {
		return err
	}
	numbers, f, known := slices.Concat(splits...), t.cfg.width(), 0
	items := t.plan.columns(&t.cfg)[1]
	slices.Sort(numbers)
	for i, id := range numbers {
		if x := t.cfg.Init.vector(id, items.IDs); x != nil {
			copy(t.st.Items.At[i*f:(i+1)*f], x)
			known++
		}
	}
	if known == 0 {
		return fault.Newf(fault.Usage, "begin with", "the model of --init", "it knows none of the %d items of the data",
			len(numbers))
	}
	t.out.Chosen = append(t.out.Chosen,
		fmt.Sprintf("%d of %d items begin with the vectors of --init", known, len(numbers)))
	return nil
}

// half solves one side, the other given: users in odd half-sweeps. The first sweep
// and the last are never cut, nor is one in MaxAge.
func (t *trainer) half(ctx context.Context, it *rdd.Iteration) error {
	forUsers, sweep := it.Number%2 == 1, (it.Number+1)/2
	mine, other := &t.st.Items, &t.st.Users
	step := t.plan.SolveItems
	whole := !t.cfg.Cut || sweep == 1 || sweep == t.cfg.MaxIterations || t.st.Ending.StoppedBy != "" ||
		t.cfg.MaxAge > 0 && (sweep-1)%t.cfg.MaxAge == 0
	if forUsers {
		mine, other = other, mine
		if step = t.plan.SolveUsers; whole {
			step = t.plan.WholeUsers
		}
	} else if whole {
		step = t.plan.WholeItems
	}
	rows, err := step.Run(ctx, t.Session, t.param(other))
	if err != nil {
		return err
	}
	if len(mine.IDs) == 0 {
		mine.At = nil // what was drawn
	}
	if err := mine.take(rows, t.cfg.width()); err != nil {
		return err
	}
	t.st.last = mine
	error := math.Sqrt(rows.Error / max(1, rows.Ratings))
	t.out.Iterations = sweep
	if !num.Finite(error) {
		return fault.Newf(fault.BadInput, "train", "als", "the vectors are not finite after sweep %d", sweep).
			WithHint("raise --reg")
	}
	o := t.Observed(sweep, error, 0)
	if !forUsers {
		it.Report("objective", error)
		t.judge(it, o)
	}
	return nil
}

// judge applies the stop rules at the end of a sweep.
func (t *trainer) judge(it *rdd.Iteration, o train.Observation) {
	last := t.st.Error
	t.st.Error = o.Objective
	stop := train.Stopper{Rule: train.ByObjective, Target: t.cfg.Target, Deadline: t.cfg.MaxTime, State: &t.st.Rules}
	why := stop.Check(o).Stop
	if why == "" && o.Iteration > 1 && o.Exact && t.cfg.Tol > 0 &&
		math.Abs(last-o.Objective) <= float64(t.cfg.Tol*max(last, o.Objective)) {
		why = "tolerance"
	}
	switch {
	case t.st.Ending.StoppedBy != "":
		it.Stop()
	case why != "" && t.cfg.Cut && o.Iteration < t.cfg.MaxIterations:
		t.Ends(why)
	case why != "":
		t.End(it, why)
	}
}

// param returns the vectors of a side, as the other is solved from them.
func (t *trainer) param(s *side) factors {
	f := factors{Rank: t.cfg.width(), At: s.At, Count: len(s.At) / t.cfg.width()}
	if t.cfg.Biases {
		f.At = slices.Clone(s.At)
		for last := t.cfg.Rank; last < len(f.At); last += f.Rank {
			f.Own, f.At[last] = append(f.Own, t.mean+f.At[last]), 1
		}
	}
	if t.cfg.Implicit {
		f.Gram = make([]float64, f.Rank*f.Rank)
		x := kernel.RowMajor(s.At, f.Count, f.Rank)
		(&kernel.Product{}).Add(kernel.RowMajor(f.Gram, f.Rank, f.Rank), x.T(), x)
	}
	return f
}

// finish makes the model.
func (t *trainer) finish(ctx context.Context) (*Factored, error) {
	why := t.WhyEnded()
	t.out.Objective = t.st.Error
	if len(t.st.Items.IDs) == 0 {
		t.st.Items.At = nil // drawn for items that no pass has named yet
	}
	t.out.Model = t.model()
	if why == "interrupted" {
		t.name()
		return &t.out, nil
	}
	splits, err := t.plan.Seen.Run(ctx, t.Session, 0)
	if err != nil {
		return nil, err
	}
	seen, err := gatherSeen(splits, t.st.Users.IDs)
	t.out.Model.seen, t.out.Model.Seen = seen, int64(len(seen.Items))
	t.name()
	return &t.out, err
}

// model returns the model of the vectors in hand. With biases these have two numbers more, whose products are the mean
// and the user's and the item's own.
func (t *trainer) model() *Model {
	m := &Model{Rank: t.cfg.Rank, Implicit: t.cfg.Implicit, Biases: t.cfg.Biases,
		User: t.cfg.User, Item: t.cfg.Item, Rating: t.cfg.Rating,
		users: t.st.Users, items: t.st.Items, Users: len(t.st.Users.IDs), Items: len(t.st.Items.IDs)}
	if !t.cfg.Biases {
		return m
	}
	m.Rank, m.users.At, m.items.At = t.cfg.Rank+2, nil, nil
	for x := range slices.Chunk(t.st.Users.At, t.cfg.width()) {
		m.users.At = append(append(m.users.At, x[:t.cfg.Rank]...), x[t.cfg.Rank]+t.mean, 1)
	}
	for x := range slices.Chunk(t.st.Items.At, t.cfg.width()) {
		m.items.At = append(append(m.items.At, x[:t.cfg.Rank]...), 1, x[t.cfg.Rank])
	}
	return m
}

// name gives the model's users and items their names, where they have some.
func (t *trainer) name() {
	m := t.out.Model
	columns := t.plan.columns(&t.cfg)
	for _, of := range []struct {
		side   *side
		column input.IDColumn
		name   *string
	}{{&m.users, columns[0], &m.User}, {&m.items, columns[1], &m.Item}, {&side{}, columns[2], &m.Rating}} {
		if of.column.Name != "" {
			*of.name = of.column.Name
		}
		if of.column.IDs == nil {
			continue
		}
		places := of.side.IDs
		of.side.IDs, of.side.Names = make([]float64, len(places)), make([]string, len(places))
		for i, at := range places {
			of.side.IDs[i], of.side.Names[i] = float64(i), of.column.IDs[int(at)]
		}
	}
}
