package drivers

import (
	"maps"
	"slices"
	"time"

	"github.com/volley-engine/volley/driver/daemon"
	"github.com/volley-engine/volley/internal/plan"
)

// role is what a driver is in the journal's replication.
type role string

const (
	follower role = "follows"
	leader   role = "leads"
)

// node is a driver: its disk, and what its process knows.
type node struct {
	s    *world
	id   int
	rate float64 // of its clock

	// On its disk.
	log        []entry
	term       uint64
	voted      int // for whom in the term, from 1; 0 is for none
	founded    bool
	incomplete bool
	files      map[string]mark // the checkpoint of each job

	up      bool
	frozen  plan.Time // until when it does nothing
	run     int       // counts its processes
	role    role
	began   plan.Time // by its clock
	opened  bool      // its journal is: before that, it takes no part
	votes   bool
	votesAt plan.Time
	heard   plan.Time // of the leader, or when it began to wait for one
	knows   bool      // of a leader, which it has heard of then
	wait    plan.Time // until it stands for election
	commit  int       // entries
	quorum  plan.Time // when a majority last said that it leads
	since   plan.Time // when it was elected
	reigns  bool      // it leads, and has waited for the leases of before
	pending map[int]func()
	writing map[string]bool  // a step of this job is on its way
	copied  map[string]entry // the last copies that were taken, and of whose term
	started map[string]bool  // a process of this job was started, or is about to be
}

// mark is how far a job had come: the process that has written a checkpoint, and the step.
type mark struct{ process, step int }

// now returns the time by the driver's clock.
func (d *node) now() plan.Time { return plan.Time(float64(d.s.w.Now()) * d.rate) }

func (d *node) works() bool { return d.up && d.s.w.Now() >= d.frozen }

// start starts the driver's process.
func (d *node) start() {
	if d.up {
		return
	}
	d.up, d.role, d.reigns, d.commit = true, follower, false, 0
	d.run++
	d.began, d.heard, d.quorum = d.now(), d.now(), 0
	d.pending, d.writing, d.started = map[int]func(){}, map[string]bool{}, map[string]bool{}
	if d.files == nil {
		d.files = map[string]mark{}
	}
	d.opened, d.votes, d.votesAt, d.knows, d.copied = false, false, 0, false, map[string]entry{}
	d.stand()
	run := d.run
	d.open(run, len(d.log) > 0)
}

// open opens the journal, or does what is to be done where there is none.
func (d *node) open(run int, journal bool) {
	s := d.s
	there, silent := false, 0
	for _, o := range s.drivers {
		if o == d {
			continue
		}
		if !s.reaches(d, o) {
			silent++
		} else if len(o.log) > 1 {
			there = true
		}
	}
	switch daemon.Begins(journal, d.founded, d.incomplete, there, silent) {
	case daemon.WaitForOthers:
		s.later(250*time.Millisecond, func() {
			if d.run == run && d.up {
				d.open(run, journal)
			}
		})
		return
	case daemon.BringJournal:
		d.incomplete = true
	case daemon.BeginJournal:
		d.log = []entry{{kind: begun, term: 1}}
		d.term = max(d.term, 1)
	}
	d.founded, d.opened = true, true
	if after, votes := daemon.VotesAfter(d.incomplete, journal); votes {
		d.votes, d.votesAt = true, d.now()+after
	}
	d.heard = d.now()
	d.live(run)
}

// live has the driver look after itself for as long as its process lives.
func (d *node) live(run int) {
	d.s.later(tick/2+d.s.ms(0, int(tick/time.Millisecond)), func() {
		if d.run != run || !d.up {
			return
		}
		if d.works() {
			d.act()
		}
		d.live(run)
	})
}

// stand draws how long the driver waits for a leader before it stands for election.
func (d *node) stand() { d.wait = d.s.ms(700, 1400) }

func (d *node) act() {
	switch {
	case d.role == leader && d.now()-d.quorum > daemon.ElectionLeast:
		d.stepDown("it reaches no majority")
	case d.role == leader:
		d.lead()
	case d.now()-d.heard > d.wait:
		d.campaign()
		d.stand()
	}
}

// stepDown ends what a driver does while it leads, its jobs' processes too.
func (d *node) stepDown(why string) {
	if d.reigns {
		d.s.tell("driver %d does not lead any more: %s", d.id, why)
	}
	d.role, d.reigns = follower, false
	d.heard = d.now()
	d.pending = map[int]func(){}
	for _, j := range d.s.jobs {
		for _, p := range j.procs {
			if p.on == d && p.run == d.run {
				p.die("its driver does not lead any more")
			}
		}
	}
}

// mayVote reports whether the driver gives its vote.
func (d *node) mayVote() bool { return d.votes && d.now() >= d.votesAt }

// campaign stands for election: two rounds, of which the first asks only whether others would vote.
func (d *node) campaign() {
	if !d.mayVote() || len(d.log) == 0 {
		return
	}
	for _, o := range d.s.drivers { // a later term is learnt of by being refused
		if d.s.reaches(d, o) && o.term > d.term {
			d.term, d.voted = o.term, 0
		}
	}
	var voters []*node
	for _, o := range d.s.drivers {
		if o != d && d.s.reaches(d, o) && o.wouldVote(d) {
			voters = append(voters, o)
		}
	}
	if len(voters) == 0 {
		return
	}
	d.term++
	d.voted = d.id + 1
	for _, o := range voters {
		o.term, o.voted = d.term, d.id+1
		if o.role == leader {
			o.stepDown("another is elected")
		}
	}
	if by, led := d.s.led[d.term]; led {
		d.s.violate("drivers.term", "driver %d is elected in term %d, in which %d was", d.id, d.term, by)
	}
	d.s.led[d.term] = d.id
	d.s.tell("driver %d is elected in term %d, with %d entries", d.id, d.term, len(d.log))
	d.role, d.since, d.quorum, d.reigns = leader, d.now(), d.now(), false
	d.writing, d.started = map[string]bool{}, map[string]bool{}
	d.append(entry{kind: begun}, nil)
}

// wouldVote reports whether a driver would vote for another now.
func (d *node) wouldVote(o *node) bool {
	led := d.knows && d.now()-d.heard <= daemon.ElectionLeast
	if !d.mayVote() || d.role == leader || led || o.term+1 <= d.term {
		return false
	}
	a, b := o.last(), d.last()
	return a.term > b.term || a.term == b.term && len(o.log) >= len(d.log)
}

func (d *node) last() entry {
	if len(d.log) == 0 {
		return entry{}
	}
	return d.log[len(d.log)-1]
}

// lead replicates the journal to those who are reached, and does what is due.
func (d *node) lead() {
	acks := 1
	matched := []int{len(d.log)}
	for _, o := range d.s.drivers {
		if o == d || !o.opened || !d.s.reaches(d, o) {
			continue
		}
		if o.term > d.term {
			d.term = o.term
			d.stepDown("there is a later term")
			return
		}
		o.follow(d)
		if !o.incomplete {
			acks++
			matched = append(matched, len(d.log))
		}
	}
	if acks < 2 {
		return
	}
	d.quorum = d.now()
	d.confirm(len(d.log))
	if d.commit < len(d.log) {
		return
	}
	if !d.reigns && d.now()-d.since >= daemon.LeasesOver() {
		d.reigns = true
		d.s.ascended(d)
	}
	if d.reigns {
		d.reign()
	}
}

// follow takes over what a leader has.
func (d *node) follow(l *node) {
	if d.role == leader {
		d.stepDown("another leads")
	}
	if l.term > d.term {
		d.voted = 0
	}
	d.term, d.heard, d.knows = l.term, d.now(), true
	d.log = slices.Clone(l.log)
	d.commit = min(l.commit, len(d.log))
	if d.incomplete { // it is taken in: it has what the others have
		d.s.fired("journal brought")
		d.incomplete = false
		d.votes, d.votesAt = true, d.now()
	}
}

// confirm notes that entries are at a majority.
func (d *node) confirm(n int) {
	d.commit = n
	for _, at := range slices.Sorted(maps.Keys(d.pending)) {
		if at <= n {
			then := d.pending[at]
			delete(d.pending, at)
			then()
		}
	}
}

// append writes an entry, and has something happen once it is at a majority.
func (d *node) append(e entry, then func()) {
	e.term = d.term
	d.log = append(d.log, e)
	if then != nil {
		d.pending[len(d.log)] = then
	}
}
