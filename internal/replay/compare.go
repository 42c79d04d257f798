package replay

import (
	"fmt"
	"maps"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// What a replay compares beside the parameters: everything in the log that follows from the
// data and the program. It takes from the log what it cannot know: what each step merged,
// and times.

// sameSizes compares the log's sizes of a pack's splits with the data.
func (r *Replay) sameSizes(number int, m *pack.Meta) error {
	n, weights, entries := r.log.Header.N, r.log.Header.Weights, r.log.Header.Entries
	if number > 0 {
		p := r.described[number-1]
		n, weights, entries = p.N, p.Weights, p.Entries
	}
	sparse := m.Layout == pack.SparseLayout
	if len(n) != len(m.Splits) || (entries != nil) != sparse || (weights != nil) != m.Weighted {
		return r.differs("data", "the log has %d splits, with weights %v, with entries %v; the data %d, %v, %v",
			len(n), weights != nil, entries != nil, len(m.Splits), m.Weighted, sparse)
	}
	for i, s := range m.Splits {
		if n[i] != s.Rows || sparse && (i >= len(entries) || entries[i] != s.Nonzeros) || m.Weighted &&
			(i >= len(weights) || weights[i] != s.Weight) {
			return r.differs("data", "split %d has %d rows, %d entries and the weight %v, the log says otherwise", i,
				s.Rows, s.Nonzeros, s.Weight)
		}
	}
	return nil
}

// sameStep compares the pack and the ratio of a training step.
func (r *Replay) sameStep(l *audit.Line, req plan.StepRequest) error {
	if l.Step.Pack != req.Pack {
		return r.differs("steps", "line %d is of pack %d, the program runs it on %d", l.Number, l.Step.Pack, req.Pack)
	}
	if l.Step.Batch != req.Batch {
		return r.differs("steps", "line %d folds the share %v of each split, the program asks for %v", l.Number,
			l.Step.Batch, req.Batch)
	}
	o := r.log.Header.Options
	if o.Sync != abss.Automatic.String() {
		if l.Step.Ratio != 0 {
			return r.differs("steps", "line %d has the ratio %v, which only auto has", l.Number, l.Step.Ratio)
		}
		return nil
	}
	if r.auto == nil {
		r.auto = abss.NewAuto(abss.Config{Ratio: o.Ratio, MinRatio: o.MinRatio})
	}
	if may := r.mayCut(req); l.Step.Ratio < 1 && l.Step.Ratio != may {
		return r.differs("steps", "line %d has the ratio %v, the program and the gradients before it give %v", l.Number,
			l.Step.Ratio, may)
	}
	return nil
}

// mayCut returns the ratio at which auto cuts a step, if it does, as far as the program decides.
func (r *Replay) mayCut(req plan.StepRequest) float64 {
	c := abss.Coming{Step: true, Ratio: req.Ratio}
	if req.Sample && req.Batch > 0 && req.Batch < 1 {
		cfg, err := r.log.Header.Options.Config()
		c.Sample = err == nil && cfg.Sync.Cuttable(rowsOf(r.packs[req.Pack].Meta), req.Batch)
	}
	return r.auto.Uneven(c).Ratio
}

func rowsOf(m *pack.Meta) (rows []int64) {
	for _, s := range m.Splits {
		rows = append(rows, s.Rows)
	}
	return rows
}

// samePass compares the node and the pack of an evaluation pass.
func (r *Replay) samePass(l *audit.Line, req plan.StepRequest) error {
	if e := l.Evaluation; e.Node != req.Node || e.Pack != req.Pack {
		return r.differs("evaluation", "line %d is of node %d and pack %d, the program runs %d on %d", l.Number, e.Node,
			e.Pack, req.Node, req.Pack)
	}
	return nil
}

// sameCommit compares the outcome of a step.
func (r *Replay) sameCommit(s *driver.LogStep, c rdd.Commit) error {
	return r.sameOutcome(fmt.Sprintf("step %d", s.Step), s, c)
}

func (r *Replay) sameOutcome(what string, s *driver.LogStep, c rdd.Commit) error {
	if c.Digest != s.Params {
		return r.differs(what, "the parameters' digest is %s, the log says %s", c.Digest.Short(), s.Params.Short())
	}
	if c.Iteration != s.Iteration {
		return r.differs(what, "it is iteration %d, the log says %d", c.Iteration, s.Iteration)
	}
	values := maps.Clone(c.Values)
	maps.DeleteFunc(values, func(_ string, v float64) bool { return v-v != 0 }) // JSON has no such numbers
	if !maps.Equal(values, s.Values) {
		return r.differs(what, "the values are %v, the log says %v", values, s.Values)
	}
	return nil
}

// sameTurn compares the outcome of an iteration with that in the line of its last pass.
func (r *Replay) sameTurn(e *driver.LogEvaluation, c rdd.Commit) error {
	what := fmt.Sprintf("iteration %d", c.Iteration)
	if e.Commit == nil {
		return r.differs(what, "the log has none")
	}
	return r.sameOutcome(what, &driver.LogStep{Iteration: e.Commit.Iteration, Values: e.Commit.Values,
		Params: e.Commit.Params}, c)
}

// Shuffled has nothing to compare with: what shuffles move decides nothing of a step.
func (r *Replay) Shuffled(plan.Shuffled) {}

// Signal decides on the ratio of the next step, as the run did.
func (r *Replay) Signal(spread, norm float64) {
	if r.auto != nil {
		r.auto.Observe(spread, norm)
	}
}

// Evaluated compares the objective of the last pass.
func (r *Replay) Evaluated(e rdd.Evaluation) {
	if r.repeats {
		return
	}
	p := r.passed
	if p == nil {
		return
	}
	r.passed = nil
	if p.Objective == nil || *p.Objective != e.Objective || p.Iteration != e.Iteration {
		r.wrong = r.differs("evaluation", "after iteration %d the objective is %v, the log has %s after iteration %d",
			e.Iteration, e.Objective, shown(p.Objective), p.Iteration)
	}
}

func shown(v *float64) string {
	if v == nil {
		return "none"
	}
	return fmt.Sprint(*v)
}

// settled reports whether the last pass's objective is the log's; a pass without a
// reported objective has none in the log.
func (r *Replay) settled() error {
	if p := r.passed; p != nil && (p.Objective != nil || p.Iteration != 0) && r.wrong == nil {
		r.wrong = r.differs("evaluation", "the log has the objective %s after iteration %d, the program finds none",
			shown(p.Objective), p.Iteration)
	}
	r.passed = nil
	return r.wrong
}

// End compares what remains at the end of the program.
func (r *Replay) End() error {
	if err := r.uncommitted(); err != nil {
		return err
	}
	return r.settled()
}

// uncommitted returns an error where the log says that the last pass has ended an iteration, and the program goes on.
func (r *Replay) uncommitted() error {
	if e := r.turn; e != nil && e.Commit != nil {
		return r.differs("iterations", "the log has the end of iteration %d after a pass that ends none",
			e.Commit.Iteration)
	}
	return nil
}
