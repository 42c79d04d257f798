package driver

import (
	"fmt"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/scheduler"
)

// leased reports whether a step leases pieces of splits, where there is more than one executor: all steps of steal,
// what auto has chosen so, and under the other policies that do not wait for stragglers the passes that need every row.
func (j *Job) leased(p *pack, s *step) bool {
	if len(s.req.Pieces) != len(p.info.Rows) || len(p.sched.Alive()) < 2 {
		return false
	}
	switch j.cfg.Sync.Policy {
	case abss.BSP:
		return false
	case abss.Steal:
		return true
	case abss.Automatic:
		return s.choice.Lease
	}
	return !s.req.Train
}

// beginLeases begins a step whose pieces are leased. The leases see to it that
// all are folded; the controller sees the counts of splits, and bounds the wait.
func (j *Job) beginLeases(p *pack, now plan.Time) {
	s := j.step
	tasks := make([]abss.Task, len(p.info.Rows))
	shares := make([]scheduler.LeaseTask, len(tasks))
	for i := range tasks {
		id := plan.SplitID(i)
		_, s.assigned[i], _ = j.assign(p, id)
		tasks[i] = abss.Task{Split: id, Rows: j.limit(p, i), Held: true}
		shares[i] = scheduler.LeaseTask{Rows: p.info.Rows[i], Cursor: s.assigned[i].Cursor, Limit: tasks[i].Rows,
			Pieces: s.req.Pieces[i], Bytes: p.info.Bytes[i]}
	}
	s.leases = scheduler.NewLeases(scheduler.LeaseConfig{Grace: j.cfg.Sync.Grace, Bandwidth: j.cfg.Exchange.Bandwidth,
		Part: p.partBytes[s.req.Node]},
		p.sched, shares, now)
	s.ctrl = abss.NewController(j.syncOf(s), tasks, 0, 0, now)
	for i := range tasks { // a split without rows is complete
		if tasks[i].Rows == 0 {
			a := s.assigned[i]
			s.coverage[i] = &plan.Coverage{Split: a.Split, Attempt: a.Attempt, Epoch: a.Epoch, Cursor: a.Cursor}
			p.sched.Merged(a.Split)
			s.ctrl.Note(abss.Event{Kind: abss.Arrived, Split: a.Split}, now)
		}
	}
	j.lease(now)
	j.decide(abss.Event{Kind: abss.Began}, now)
}

// lease carries out the commands of the leases.
func (j *Job) lease(now plan.Time) {
	s, p := j.step, j.packs[j.step.req.Pack]
	job := string(j.cfg.ID)
	cmds := s.leases.Step(now)
	j.counters.DroppedRows += s.leases.TakeVain()
	for _, c := range cmds {
		switch c.Kind {
		case scheduler.LeaseStart:
			j.start(c.Executor, p, nil, c.Epoch, now)
		case scheduler.LeaseGrant:
			m := &wire.Leases{Job: job, Step: s.key, Epoch: uint64(c.Epoch)}
			for _, l := range c.Leases {
				a := s.assigned[l.Split]
				m.Leases = append(m.Leases, &wire.Lease{Id: l.ID, Part: uint32(l.Part),
					Helps: p.sched.Owner(a.Split) != c.Executor,
					Parts: uint32(s.leases.Parts(a.Split)), Pieces: uint32(s.req.Pieces[l.Split]),
					Task: &wire.Assignment{Split: uint32(a.Split), Attempt: uint32(a.Attempt), Epoch: uint64(a.Epoch),
						Cursor: uint64(a.Cursor), Limit: uint64(a.Limit), State: a.State}})
				m.States = append(m.States, j.stateFor(p, a.Split, c.Executor)...)
			}
			j.send(c.Executor, &wire.ToExecutor{Body: &wire.ToExecutor_Leases{Leases: m}})
		case scheduler.LeaseInclude:
			m := &wire.Include{Job: job, Step: s.key, Epoch: uint64(c.Epoch)}
			for _, l := range c.Leases {
				m.Ids = append(m.Ids, l.ID)
			}
			j.send(c.Executor, &wire.ToExecutor{Body: &wire.ToExecutor_Include{Include: m}})
		case scheduler.LeaseGet:
			j.schedule(p, []scheduler.Command{c.Get})
		case scheduler.LeaseWakeAt:
			j.emit(Command{WakeAt: c.At})
		}
	}
}

// onPiecesFolded takes a report of leases that have been folded.
func (j *Job) onPiecesFolded(from plan.ExecutorID, r *wire.PiecesFolded, now plan.Time) {
	if j.step == nil || j.step.leases == nil || r.Step != j.step.key {
		j.counters.StaleReports++
		return
	}
	s := j.step
	s.leases.Heard(from)
	for _, i := range s.leases.Folded(from, plan.Epoch(r.Epoch), r.Ids, now) {
		s.seen[i] = s.leases.Rows(i)
		s.ctrl.Note(abss.Event{Kind: abss.Progress, Split: i, Count: s.seen[i]}, now)
	}
	j.lease(now)
	j.decide(abss.Event{Kind: abss.Tick}, now)
}

// acceptLeased reports whether a result over an executor's leases can be merged.
func (j *Job) acceptLeased(from plan.ExecutorID, r *wire.Result, now plan.Time) bool {
	if j.step == nil || j.step.leases == nil || r.Step != j.step.key {
		if len(r.Coverage) > 0 {
			j.counters.LateResults++
		}
		return false
	}
	s := j.step
	s.leases.Heard(from)
	if err := j.resultError(r); err != nil {
		j.failedLeases(from, r, err, now)
		return false
	}
	ids := make([]uint32, len(r.Coverage))
	for i, c := range r.Coverage {
		if ids[i] = c.Lease; !s.leases.Covers(c.Lease, c.Split, c.Count) {
			j.failedLeases(from, r, fault.Newf(fault.Corrupt, "merge", fmt.Sprintf("the result of %s", from),
				"%d rows of split %d are not what lease %d is over", c.Count, c.Split, c.Lease), now)
			return false
		}
	}
	if len(ids) == 0 {
		return false // it has ended without a request
	}
	if !s.leases.Accept(from, plan.Epoch(r.Epoch), ids) {
		j.counters.LateResults++
		return false
	}
	return true
}

// coverLeased adds what an accepted result covers of a split's pieces, and returns its rows.
func (j *Job) coverLeased(c *wire.Coverage) int64 {
	s := j.step
	cov := s.coverage[c.Split]
	if cov == nil {
		a := s.assigned[c.Split]
		cov = &plan.Coverage{Split: a.Split, Attempt: a.Attempt, Epoch: a.Epoch, Cursor: a.Cursor}
		s.coverage[c.Split] = cov
	}
	plantedFolded(cov)
	cov.Count += int64(c.Count)
	cov.Folded += int64(c.Folded)
	cov.Weight += c.Weight
	return int64(c.Count)
}

// arrivedLeased notifies the scheduler and the controller of splits all of whose pieces are here, and leases more.
func (j *Job) arrivedLeased(r *wire.Result, now plan.Time) {
	s, p := j.step, j.packs[j.step.req.Pack]
	told := map[uint32]bool{}
	for _, c := range r.Coverage {
		i := plan.SplitID(c.Split)
		if told[c.Split] || !s.leases.Whole(i) {
			continue
		}
		told[c.Split] = true
		p.sched.Merged(i)
		s.ctrl.Note(abss.Event{Kind: abss.Arrived, Split: i, Count: s.coverage[i].Count}, now)
	}
	j.lease(now)
}

// failedLeases applies the policy of a failure to the splits whose pieces it
// touched, and leases these to others.
func (j *Job) failedLeases(from plan.ExecutorID, r *wire.Result, err error, now plan.Time) {
	s, p := j.step, j.packs[j.step.req.Pack]
	var splits []plan.SplitID
	seen := map[plan.SplitID]bool{}
	for _, c := range r.Coverage {
		if i := plan.SplitID(c.Split); int(i) < len(s.assigned) && !seen[i] {
			seen[i] = true
			splits = append(splits, i)
		}
	}
	if !s.leases.Failed(from, plan.Epoch(r.Epoch), splits) {
		return // of a run that was given up
	}
	j.charge(p, from, err, now)
	if len(splits) == 0 && !s.leases.Bar(from) { // no executor could begin
		j.fail(fault.New(fault.KindOf(err), "run", fmt.Sprintf("step %d on %s", s.number, from), err))
		return
	}
	for _, i := range splits {
		p.resend(i)
		if j.schedule(p, p.sched.Failed(from, i, err)); j.state == ended {
			return
		}
	}
	s.retried++
	j.lease(now)
}
