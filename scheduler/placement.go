package scheduler

import (
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/plan"
)

// Config bounds retries, waits and work. The zero value of a field takes its default.
type Config struct {
	MaxTaskFailures     int           // failures of one split's work before the job fails; default 4
	MaxExecutorFailures int           // failures charged to an executor before it is excluded; default 8
	Exclusion           time.Duration // how long the first time, twice as long each next; default 30 s
	Sourceless          bool          // no executor can make a split alone: one without a holder is gone
	Few                 int           // executors that are all looked at whenever leases change; default 64
}

// EnsureDefaults fills in the fields left zero.
func (c Config) EnsureDefaults() Config {
	if c.MaxTaskFailures == 0 {
		c.MaxTaskFailures = 4
	}
	if c.MaxExecutorFailures == 0 {
		c.MaxExecutorFailures = 8
	}
	if c.Exclusion == 0 {
		c.Exclusion = 30 * time.Second
	}
	if c.Few == 0 {
		c.Few = 64
	}
	return c
}

// CommandKind is what to do.
type CommandKind uint8

// The commands: Hold asks an executor to hold a split, from another executor
// (From) or, where From is empty, from its source; Abort fails the job.
const (
	Hold CommandKind = iota
	Abort
)

// Command is one thing to do.
type Command struct {
	Kind     CommandKind
	Executor plan.ExecutorID
	Split    plan.SplitID
	From     plan.ExecutorID
	Err      error
}

type executor struct {
	id       plan.ExecutorID
	alive    bool
	excluded bool
	until    plan.Time // it is let back in
	terms    int       // times it was excluded
	draining bool      // it gets no more splits
	failures int
	slots    int
	speed    float64 // rows per second, smoothed
	latest   float64 // rows per second, as last measured
	variance float64 // of single measurements, smoothed in the same way
	observed int
	getting  int // split that it was asked to fetch for a pass by leases; −1 is none
}

type split struct {
	owner    int          // executor that folds it; −1 is none
	next     int          // executor that it moves to; −1 is none
	holders  map[int]bool // executors with a verified copy
	attempt  int
	epoch    plan.Epoch
	failures int       // in a row
	avoid    int       // executor that failed with it last; −1 is none
	damaged  bool      // a copy of it arrived damaged: it is rebuilt from its source from now on
	missed   plan.Time // by how much passes have ended later for want of a copy, since the last was made
}

// State is a job's placement.
type State struct {
	cfg       Config
	executors []*executor
	byID      map[plan.ExecutorID]int
	splits    []split
	epoch     plan.Epoch
	placed    bool  // initial placement done
	changes   int   // of owners and holders, counted
	held      []int // splits of which executors have got copies since the last of these
}

// New prepares the placement of a number of splits.
func New(cfg Config, splits int) *State {
	s := &State{cfg: cfg.EnsureDefaults(), byID: map[plan.ExecutorID]int{}, splits: make([]split, splits)}
	for i := range s.splits {
		s.splits[i] = split{owner: -1, next: -1, avoid: -1, holders: map[int]bool{}}
	}
	return s
}

// Joined adds an executor, for the first time or again. Once placement has
// begun a new one gets its share of splits by one-way moves.
func (s *State) Joined(id plan.ExecutorID, slots int) []Command {
	i, known := s.byID[id]
	if !known {
		i = len(s.executors)
		s.byID[id] = i
		s.executors = append(s.executors, &executor{id: id, getting: -1})
	}
	e := s.executors[i]
	e.alive, e.excluded, e.draining, e.slots, e.failures, e.getting = true, false, false, slots, 0, -1
	if !s.placed {
		return nil
	}
	return append(s.placeOrphans(), s.rebalanceTo(i)...)
}

// Place gives each executor splits that are next to each other, in the order in which executors joined, so that they
// merge what they fold of them into few subtrees: as many bytes each, as far as splits allow. Sizes are the splits';
// nil is of splits of one size.
func (s *State) Place(sizes []int64) []Command {
	s.placed = true
	if len(s.Alive()) == 0 {
		return nil // the first to join takes the splits without owner
	}
	var out []Command
	for i, e := range s.blocks(sizes) {
		if !s.usable(e) || s.gone(i) {
			continue
		}
		out = append(out, s.hold(i, e))
	}
	return append(out, s.placeOrphans()...)
}

// blocks returns each split's executor: each takes splits until it has its share of the bytes that are left, but leaves
// one to each of those after it, if there are as many.
func (s *State) blocks(sizes []int64) (of []int) {
	if !slices.ContainsFunc(sizes, func(n int64) bool { return n > 0 }) {
		sizes = slices.Repeat([]int64{1}, len(s.splits))
	}
	left, mine, e, has := 0.0, 0.0, 0, 0
	for _, n := range sizes {
		left += float64(n)
	}
	for i, n := range sizes {
		after := len(s.executors) - 1 - e
		share := (left + mine) / float64(after+1)
		if after > 0 && has > 0 && (mine+float64(n)/2 > share || len(sizes)-i <= after) {
			e, mine, has = e+1, 0, 0
		}
		of, mine, left, has = append(of, e), mine+float64(n), left-float64(n), has+1
	}
	return of
}

// hold asks an executor to take a split, from a replica where there is one.
func (s *State) hold(i, e int) Command {
	sp := &s.splits[i]
	sp.next = e
	cmd := Command{Kind: Hold, Executor: s.executors[e].id, Split: plan.SplitID(i)}
	if plantedReplica(sp.holders[e]) {
		return cmd
	}
	if from := s.replica(i); from >= 0 && (s.cfg.Sourceless || !plantedDamaged(sp.damaged)) {
		cmd.From = s.executors[from].id
	}
	return cmd
}

// replica returns a live executor that holds the split: its owner first.
func (s *State) replica(i int) int {
	sp := &s.splits[i]
	if sp.owner >= 0 && s.executors[sp.owner].alive {
		return sp.owner
	}
	for e := range s.executors {
		if sp.holders[e] && s.executors[e].alive {
			return e
		}
	}
	return -1
}

// Held notes that an executor holds a verified copy of a split. If the split was moving to it,
// it becomes the owner at the next step, or at once where the split has no owner.
func (s *State) Held(id plan.ExecutorID, i plan.SplitID) {
	s.held = append(s.held, int(i))
	e, ok := s.byID[id]
	if !ok || !s.executors[e].alive {
		return
	}
	s.got(e, i)
	sp := &s.splits[i]
	sp.holders[e] = true
	meant, orphaned := sp.next == e, sp.owner < 0
	if meant && plantedAtOnce(orphaned) || orphaned && s.usable(e) && sp.avoid != e {
		sp.owner, sp.next = e, -1
	}
}

// changed notes that owners or holders are others.
func (s *State) changed() { s.changes, s.held = s.changes+1, s.held[:0] }

// Unsent notes that an executor could not fetch a split.
func (s *State) Unsent(id plan.ExecutorID, i plan.SplitID) {
	if e, ok := s.byID[id]; ok {
		s.got(e, i)
	}
}

// got notes that a fetch has ended. It may outlast its pass: until then the executor is not
// asked for another copy by later passes.
func (s *State) got(e int, i plan.SplitID) {
	if s.executors[e].getting == int(i) {
		s.executors[e].getting = -1
	}
}

// Replica notes that an executor can serve a copy of a split, or take it over
// at once.
func (s *State) Replica(id plan.ExecutorID, i plan.SplitID) {
	s.changed()
	if e, ok := s.byID[id]; ok && s.executors[e].alive {
		s.splits[i].holders[e] = true
	}
}

// Ready reports whether every split has a live owner.
func (s *State) Ready() bool {
	for i := range s.splits {
		if plantedUnready(s.splits[i].owner < 0) {
			return false
		}
	}
	return true
}

// Lost removes an executor. Its splits go to executors that hold a replica,
// else to the least loaded, which fetch or rebuild them.
func (s *State) Lost(id plan.ExecutorID) (orphans []plan.SplitID, out []Command) {
	s.changed()
	e, ok := s.byID[id]
	if !ok || !s.executors[e].alive {
		return nil, nil
	}
	s.executors[e].alive, s.executors[e].speed, s.executors[e].observed, s.executors[e].getting = false, 0, 0, -1
	for i := range s.splits {
		sp := &s.splits[i]
		if plantedForgets() {
			delete(sp.holders, e)
		}
		if sp.next == e {
			sp.next = -1
		}
		if sp.owner == e {
			sp.owner = -1
			orphans = append(orphans, plan.SplitID(i))
		}
	}
	return orphans, s.placeOrphans()
}

// placeOrphans chooses an executor for every split that has no owner and is not
// moving to one.
func (s *State) placeOrphans() []Command {
	s.changed()
	var out []Command
	for i := range s.splits {
		sp := &s.splits[i]
		if sp.owner < 0 && sp.next >= 0 {
			s.inherit(i)
		}
		if sp.owner >= 0 || sp.next >= 0 {
			continue
		}
		e := s.homeFor(i)
		if e < 0 {
			return out // no executor is left; the next to join takes them
		}
		if s.splits[i].holders[e] {
			s.splits[i].owner = e
			continue
		}
		if !s.gone(i) {
			out = append(out, s.hold(i, e))
		}
	}
	return out
}

// inherit decides about a split without owner that was moving to an executor: the executor
// takes it over now, as no owner's work has to end first. One that has failed with it does
// so only where there is no other.
func (s *State) inherit(i int) {
	sp := &s.splits[i]
	switch {
	case sp.next == sp.avoid && s.homeFor(i) != sp.next:
		sp.next = -1
	case sp.holders[sp.next]:
		sp.owner, sp.next = sp.next, -1
	}
}

// homeFor returns the least loaded live executor, holders of a replica first.
func (s *State) homeFor(i int) int {
	load := s.loads()
	best := -1
	better := func(e int) bool {
		if best < 0 {
			return true
		}
		if avoid := s.splits[i].avoid; (e == avoid) != (best == avoid) {
			return best == avoid
		}
		he, hb := s.splits[i].holders[e], s.splits[i].holders[best]
		if he != hb {
			return he
		}
		return load[e] < load[best]
	}
	for e := range s.executors {
		if s.usable(e) && better(e) {
			best = e
		}
	}
	if best < 0 { // one that fails is better than none
		best = slices.IndexFunc(s.executors, func(x *executor) bool { return x.alive && !x.draining })
	}
	return best
}

func (s *State) usable(e int) bool {
	x := s.executors[e]
	return x.alive && plantedUsable(x, !x.excluded && !x.draining)
}

// Drain assigns an executor nothing more and moves its splits to others; called
// again, it moves those that could not be moved before.
func (s *State) Drain(id plan.ExecutorID) []Command {
	e, ok := s.byID[id]
	if !ok || !s.executors[e].alive {
		return nil
	}
	s.executors[e].draining = true
	s.forgetUnusable()
	var out []Command
	for i := range s.splits {
		if s.splits[i].owner != e {
			continue
		}
		if to := s.homeFor(i); to >= 0 {
			out = append(out, s.Move(plan.SplitID(i), s.executors[to].id)...)
		}
	}
	return out
}

// forgetUnusable cancels the moves of splits to executors that drain or are
// excluded; splits with an owner stay with it.
func (s *State) forgetUnusable() {
	for i := range s.splits {
		if sp := &s.splits[i]; sp.next >= 0 && sp.owner >= 0 && !s.usable(sp.next) {
			sp.next = -1
		}
	}
}

// Drained reports whether an executor has no split left, and none moving to it.
func (s *State) Drained(id plan.ExecutorID) bool {
	e, ok := s.byID[id]
	for i := range s.splits {
		if sp := &s.splits[i]; ok && plantedHas(sp.owner == e || sp.next == e) {
			return false
		}
	}
	return true
}

// loads counts the splits of each executor, those moving to it included.
func (s *State) loads() []int {
	load := make([]int, len(s.executors))
	for i := range s.splits {
		if n := s.splits[i].next; n >= 0 {
			load[n]++
		} else if o := s.splits[i].owner; o >= 0 {
			load[o]++
		}
	}
	return load
}

// rebalanceTo moves splits to a new executor until it has its equal share.
func (s *State) rebalanceTo(e int) []Command {
	load, live := s.loads(), 0
	for k := range s.executors {
		if s.usable(k) {
			live++
		}
	}
	var out []Command
	for plantedShort(load[e] < len(s.splits)/live) {
		i := s.spareSplit(load, e)
		if i < 0 {
			break
		}
		load[s.splits[i].owner]--
		load[e]++
		out = append(out, s.hold(i, e))
	}
	return out
}

// spareSplit returns a settled split of the executor with the most splits, if
// that has at least two more than the new one.
func (s *State) spareSplit(load []int, e int) int {
	best := -1
	for i := range s.splits {
		o := s.splits[i].owner
		if o < 0 || s.splits[i].next >= 0 || load[o] < load[e]+2 {
			continue
		}
		if best < 0 || load[o] > load[s.splits[best].owner] {
			best = i
		}
	}
	return best
}

// Move starts moving a split to another executor; the change of owner takes
// effect at the boundary of a step after the copy has arrived.
func (s *State) Move(i plan.SplitID, to plan.ExecutorID) []Command {
	e, ok := s.byID[to]
	sp := &s.splits[i]
	if !ok || !s.usable(e) || sp.next >= 0 || sp.owner == e {
		return nil
	}
	if plantedReplica(sp.holders[e]) {
		sp.next = e
		return nil
	}
	return []Command{s.hold(int(i), e)}
}

// Boundary makes the executors that have received splits their owners. It
// returns the splits whose owner changed.
func (s *State) Boundary() []plan.SplitID {
	s.changed()
	s.forgetUnusable()
	var changed []plan.SplitID
	for i := range s.splits {
		sp := &s.splits[i]
		if sp.next >= 0 && sp.holders[sp.next] && s.usable(sp.next) {
			sp.owner, sp.next = sp.next, -1
			changed = append(changed, plan.SplitID(i))
		}
	}
	return changed
}

// Merged notes that a split's work has succeeded.
func (s *State) Merged(i plan.SplitID) {
	if plantedForgives() {
		s.splits[i].failures, s.splits[i].avoid = 0, -1
	}
}

// Assign assigns a split's share of a step under a new epoch; ok is false where no
// executor can fold it, and a then has only its cursor and the epoch and attempt
// under which its pieces are leased later.
func (s *State) Assign(i plan.SplitID, cursor int64) (id plan.ExecutorID, a plan.Assignment, ok bool) {
	sp := &s.splits[i]
	if sp.owner < 0 || !s.executors[sp.owner].alive {
		if plantedCounts() {
			sp.attempt++ // no attempt belongs to two steps
		}
		return "", plan.Assignment{Split: i, Attempt: sp.attempt, Epoch: s.epoch, Cursor: cursor}, false
	}
	sp.attempt++
	sp.epoch = s.epoch
	a = plan.Assignment{Split: i, Attempt: sp.attempt, Epoch: sp.epoch, Cursor: cursor}
	return s.executors[sp.owner].id, a, true
}

// NextEpoch begins an epoch: whatever was assigned before is stale.
func (s *State) NextEpoch() plan.Epoch {
	s.epoch++
	return s.epoch
}

// Epoch returns the current epoch.
func (s *State) Epoch() plan.Epoch { return s.epoch }

// Restore continues the count of epochs after a restart.
func (s *State) Restore(e plan.Epoch) { s.epoch = max(s.epoch, e) }

// Current reports whether a report belongs to the split's latest assignment.
func (s *State) Current(i plan.SplitID, attempt int, epoch plan.Epoch) bool {
	if int(i) >= len(s.splits) || i < 0 {
		return false
	}
	sp := &s.splits[i]
	return plantedCurrent(sp, attempt, sp.attempt == attempt && sp.epoch == epoch)
}

// Latest returns a split's latest assignment, the one that is Current.
func (s *State) Latest(i plan.SplitID) (attempt int, epoch plan.Epoch) {
	return s.splits[i].attempt, s.splits[i].epoch
}

// Owner returns the executor that folds a split; empty is none.
func (s *State) Owner(i plan.SplitID) plan.ExecutorID {
	if o := s.splits[i].owner; o >= 0 {
		return s.executors[o].id
	}
	return ""
}

// OwnerIndex returns the number of the executor that folds a split; −1 is none.
func (s *State) OwnerIndex(i plan.SplitID) int { return s.splits[i].owner }

// Moving reports whether a split is moving to another executor.
func (s *State) Moving(i plan.SplitID) bool { return s.splits[i].next >= 0 }

// Awaits reports whether placement waits for an executor to hold a split.
func (s *State) Awaits(id plan.ExecutorID, i plan.SplitID) bool {
	e, ok := s.byID[id]
	return ok && (s.splits[i].next == e || s.splits[i].owner < 0)
}

// Holds reports whether an executor has a verified copy of a split.
func (s *State) Holds(i plan.SplitID, e int) bool { return s.splits[i].holders[e] }

// Executors lists all executors ever seen, in the order of joining.
func (s *State) Executors() []plan.ExecutorID {
	ids := make([]plan.ExecutorID, len(s.executors))
	for i, e := range s.executors {
		ids[i] = e.id
	}
	return ids
}

// Alive lists the executors that are alive, in the order of joining.
func (s *State) Alive() []plan.ExecutorID {
	var ids []plan.ExecutorID
	for _, e := range s.executors {
		if e.alive {
			ids = append(ids, e.id)
		}
	}
	return ids
}

// IsAlive reports whether an executor is taking part.
func (s *State) IsAlive(id plan.ExecutorID) bool {
	e, ok := s.byID[id]
	return ok && s.executors[e].alive
}

// Member is an executor that work may be given to, and how many slots it has.
type Member struct {
	ID    plan.ExecutorID
	Slots int
}

// Members lists the executors that work may be given to, in the order of joining: those that are alive, and neither
// excluded nor draining.
func (s *State) Members() (all []Member) {
	for _, e := range s.executors {
		if e.alive && !e.excluded && !e.draining {
			all = append(all, Member{e.id, e.slots})
		}
	}
	return all
}
