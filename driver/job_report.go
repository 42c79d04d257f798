package driver

import (
	"slices"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/prioritizer"
	"github.com/volley-engine/volley/scheduler"
)

// StepReport is the outcome of a step.
type StepReport struct {
	Number    int
	Train     bool
	Work      bool // not a training step, but part of the method
	Node      int
	Pack      int
	Rows      []int64          // of each split
	Weighted  bool             // rows have weights, by which results are sums
	Entries   []int64          // of each split, where progress is counted in these
	Outcome   plan.StepOutcome // for the session
	Coverage  []*plan.Coverage // by split; nil is missing
	Assigned  []plan.Assignment
	Missing   []plan.SplitID
	Stats     abss.Stats
	Began     plan.Time
	Took      plan.Time
	NEff      float64
	Share     float64
	Bytes     int64
	Retried   int         // tasks handed out again within the step
	Placement []int       // owner by split, where it changed
	Executors []string    // names to placement's numbers, where it changed
	Moves     []plan.Move // planned after this step
	MoveTime  plan.Time   // of moves that ended during the step
	Rates     []float64   // rows per second by executor
	Latest    []float64   // as last measured
	Slots     []ExecutorSlots
	Counters  Counters    // so far
	Merged    int64       // rows in this step
	Epoch     plan.Epoch  // the step's first epoch
	Param     plan.Digest // of a parameter that was too large to travel with the step
	Batch     float64     // share of each split that the step was to fold, where the request has one
	Chosen    abss.Choice // by auto
	Leased    bool        // its pieces were leased
	Reports   []byte      // the events since the step before, where they are recorded
	Kept      bool        // Reports has all of them: no step had more than is kept
}

// complete commits what the step merged to the ledger, plans the exchange
// and reports.
func (j *Job) complete(now plan.Time) {
	s, p := j.step, j.packs[j.step.req.Pack]
	j.commitStates(s, p)
	r := &StepReport{Number: s.number, Train: s.req.Train, Work: s.req.Work, Node: s.req.Node, Pack: p.id,
		Rows:     p.info.Rows,
		Weighted: s.req.Weighted, Batch: s.req.Batch, Coverage: s.coverage, Assigned: s.assigned,
		Missing: s.ctrl.Missing(), Stats: s.ctrl.Stats(), Began: s.began, Took: now - s.began, Bytes: s.bytes,
		Retried: s.retried, Param: s.param}
	r.Chosen, r.Leased = s.choice, s.leases != nil
	if j.auto != nil {
		j.auto.Took(r.Took, r.Stats.Cut, r.Leased)
	}
	visited := j.commitCoverage(s, p)
	for i, n := range visited {
		r.Merged += n
		r.Outcome.Info.Rows += p.info.Rows[i]
	}
	j.step = nil
	if s.entries {
		r.Entries = s.units
	}
	r.Share, r.NEff = s.shareOf(), effective(p.info.weigh(s.req.Weighted), s.coverage, s.req.Weighted)
	plantedReport(r, s)
	r.Outcome.Splits, r.Outcome.Parts, r.Outcome.Visited = len(visited), s.parts, visited
	r.Outcome.Scale = s.req.Train && !j.cfg.ByRows
	info := &r.Outcome.Info
	info.Step, info.Merged, info.Share, info.NEff, info.Cut = r.Number, r.Merged, r.Share, r.NEff, r.Stats.Cut
	r.Epoch = s.assigned[0].Epoch
	if r.Merged > 0 {
		p.perRow[r.Node] = float64(r.Took) / float64(r.Merged)
		p.perRow[anyNode] = p.perRow[r.Node]
	}
	if n := len(s.parts); n > 0 {
		p.partBytes[s.req.Node] = s.partBytes / int64(n)
	}
	if s.req.Train {
		j.lastStep, j.ratio = r.Took, 1
		if r.Stats.Cut {
			j.ratio = s.ratio
		}
		j.learn(p, r, s.ratio)
		if r.Moves = j.exchangeSplits(p, s.number, now); len(r.Moves) > 0 && j.auto != nil {
			j.auto.Moved()
		}
	}
	r.MoveTime, p.moveTime = p.moveTime, 0
	if s.req.Train { // passes have no line for it
		j.describePlacement(p, r)
	}
	r.Rates, _ = p.sched.Speeds()
	r.Latest = p.sched.LatestSpeeds()
	r.Slots, r.Counters = j.slotsOf(p, s), j.counters
	j.out = append(j.out, Command{StepDone: r})
	j.settle()
}

// commitCoverage moves the cursors of a step's splits, and returns how many rows of each were merged. What is missing
// counts as dropped.
func (j *Job) commitCoverage(s *step, p *pack) []int64 {
	visited := make([]int64, len(s.coverage))
	for i, c := range s.coverage {
		if c == nil {
			j.dropSeen(plan.SplitID(i)) // the rest is counted when its result arrives late
			continue
		}
		visited[i] = c.Count
		if plantedAdvances(s.req.Train) {
			j.ledgerOf(p).Merge(c.Split, c.Count)
		}
	}
	return visited
}

// ledgerOf returns a pack's ledger.
func (j *Job) ledgerOf(p *pack) *prioritizer.Ledger {
	return plantedPack(j, p).ledger
}

// shareOf returns the share of all progress that was made.
func (s *step) shareOf() float64 {
	var total, made int64
	for i, c := range s.coverage {
		if c == nil && plantedLeftOut() {
			continue
		}
		total += s.units[i]
		if c != nil {
			made += s.unitsOf(c)
		}
	}
	return float64(made) / float64(max(1, total))
}

// effective returns N_eff = 1/Σ((W_i/W)²/c_i) over the splits present, whose rows weigh
// W_i each and W together (SEMANTICS section 2); 0 where nothing was merged. A split
// whose visited rows all have weight 0 is not present.
func effective(weights []float64, coverage []*plan.Coverage, weighted bool) float64 {
	there := func(c *plan.Coverage) bool { return c != nil && c.Count > 0 && (!weighted || c.Weight > 0) }
	var present, inverse float64
	for i, c := range coverage {
		if plantedThere(there(c)) {
			present += weights[i]
		}
	}
	if !(present > 0) {
		return 0
	}
	for i, c := range coverage {
		if there(c) {
			w := weights[i] / present
			inverse += w * w / float64(c.Count)
		}
	}
	return 1 / inverse
}

// learn updates the time at which Deadline cuts: when all executors at their
// recent rates will have processed the ratio.
func (j *Job) learn(p *pack, r *StepReport, ratio float64) {
	if r.Stats.StopAt <= 0 || r.Share <= 0 || plantedLearned(p) {
		return
	}
	t := plan.Time(float64(r.Stats.StopAt) * ratio / r.Share)
	if p.learned == 0 {
		p.learned = t
	}
	p.learned += (t - p.learned) / 5
}

// describePlacement adds the owners of all splits where they changed.
func (j *Job) describePlacement(p *pack, r *StepReport) {
	owners := make([]int, len(p.info.Rows))
	for i := range owners {
		owners[i] = p.sched.OwnerIndex(plan.SplitID(i))
	}
	if slices.Equal(owners, p.shown) {
		return
	}
	p.shown, r.Placement = owners, owners
	for _, id := range p.sched.Executors() {
		r.Executors = append(r.Executors, string(id))
	}
}

// Ledger returns the state of a pack's ledger and its epoch, for a checkpoint.
func (j *Job) Ledger(packID int) *Restored {
	p := j.packs[packID]
	r := &Restored{Pack: packID, Steps: j.steps, Epoch: p.sched.Epoch(), Entries: p.ledger.Entries()}
	if j.auto != nil && j.auto.Heard {
		r.Ratio = j.auto.Ratio
	}
	r.States = p.keptStates()
	plantedResume(j, r, packID)
	return r
}

// Placement is where work over a pack may go on that is no step.
type Placement struct {
	Members []scheduler.Member // executors that it may be given to
	Owners  []plan.ExecutorID  // of each split; empty where there is none
	Gone    *Gone              // the pack has to be made again first
}

// Placement returns where work over a pack may go on now.
func (j *Job) Placement(packID int) (at Placement) {
	p := j.packs[packID]
	if p.info.Sourceless && p.sched.Gone() {
		at.Gone = &Gone{Pack: p.id, Making: p.makings}
	}
	for i := range p.info.Rows {
		at.Owners = append(at.Owners, p.sched.Owner(plan.SplitID(i)))
	}
	at.Members = p.sched.Members()
	return at
}
