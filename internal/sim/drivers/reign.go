package drivers

import (
	"fmt"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/driver/daemon"
	"github.com/volley-engine/volley/internal/plan"
)

// kind is what an entry of the journal says.
type kind uint8

const (
	begun     kind = iota // a term
	submitted             // a job
	started               // a process of a job, by its number
	stepped               // a step of a job is committed
	ended                 // a job
)

// entry is an entry of the journal.
type entry struct {
	kind   kind
	term   uint64
	job    string
	number int // of the process
	mark   mark
}

// kept is what the journal's entries make of a job.
type kept struct {
	process int
	mark    mark
	ended   bool
}

type state map[string]kept

func (s state) has(job string) bool { _, ok := s[job]; return ok }

// state returns what the entries make that are at a majority.
func (d *node) state() state {
	out := state{}
	for _, e := range d.log[:d.commit] {
		k := out[e.job]
		switch e.kind {
		case started:
			k.process = max(k.process, e.number)
		case stepped:
			k.mark = e.mark
		case ended:
			k.ended = true
		case begun:
			continue
		}
		out[e.job] = k
	}
	return out
}

// ascended looks at what a driver knows that begins to lead.
func (s *world) ascended(d *node) {
	s.tell("driver %d leads in term %d", d.id, d.term)
	now := d.state()
	for _, j := range s.jobs {
		if j.acked && !now.has(j.name) {
			s.violate("drivers.lost", "driver %d leads without %s, which was confirmed", d.id, j.name)
		}
		if k := now[j.name].mark; !j.includes(k, j.kept) {
			s.violate("drivers.lost", "driver %d leads with %s at %v, and %v was confirmed", d.id, j.name, k, j.kept)
		}
	}
}

// reign starts the processes of jobs, and gives the executor orders.
func (d *node) reign() {
	now := d.state()
	for _, j := range d.s.jobs {
		k, has := now[j.name]
		if !has || k.ended {
			j.done = j.done || k.ended
			continue
		}
		d.orders(j, k)
		d.reconcile(j, k)
		if d.started[j.name] || !d.gather(j, k) {
			continue
		}
		d.started[j.name] = true
		d.append(entry{kind: started, job: j.name, number: k.process + 1}, func() {
			d.s.startProcess(d, j, k.process+1)
		})
	}
}

// reconcile sends a driver what it lacks of a job, now and then.
func (d *node) reconcile(j *job, k kept) {
	for _, o := range d.s.drivers {
		if o != d && d.s.rng.IntN(20) == 0 && d.s.reaches(d, o) && d.files[j.name].step > 0 &&
			!daemon.GoesOn(place(o.files[j.name]), place(k.mark)) {
			o.takesCopy(j, d.files[j.name], d.term)
		}
	}
}

// gather sees to it that a job can be gone on from, and reports whether it can.
func (d *node) gather(j *job, k kept) bool {
	if k.mark.step == 0 || daemon.GoesOn(place(d.files[j.name]), place(k.mark)) {
		return true
	}
	for _, o := range d.s.drivers {
		if o != d && d.s.reaches(d, o) && daemon.GoesOn(place(o.files[j.name]), place(k.mark)) {
			d.s.fired("files brought")
			d.files[j.name] = o.files[j.name]
			return true
		}
	}
	return false
}

func place(m mark) daemon.Place {
	return daemon.Place{Process: uint32(m.process), Checkpoint: fmt.Sprintf("checkpoint-%09d", m.step)}
}

// includes reports whether what a process had come to has in its past what another had.
func (j *job) includes(m, past mark) bool {
	for past.step > 0 && m.process > past.process {
		m = j.from[m.process]
	}
	return past.step == 0 || m.process == past.process && m.step >= past.step
}

// orders has the executor work for a job's process.
func (d *node) orders(j *job, k kept) {
	if d.s.rng.IntN(4) > 0 || k.process == 0 {
		return
	}
	term, number := d.term, k.process
	wait := d.s.ms(0, 60)
	if !d.s.calm && d.s.rng.IntN(30) == 0 {
		d.s.fired("late order")
		wait = d.s.ms(60, 5000)
	}
	d.s.later(wait, func() { d.s.ordered(j, term, number) })
}

// ordered is an order that comes to the executor, perhaps late.
func (s *world) ordered(j *job, term uint64, number int) {
	if !driver.Follows(s.exec.term, term) {
		s.fired("order refused")
		return
	}
	if term == s.exec.term && number < s.exec.runner[j.name] {
		return // orders of one driver come in their order
	}
	if term < s.exec.term || number < s.exec.runner[j.name] {
		s.violate("drivers.orders", "the executor works for process %d of %s in term %d, after process %d in term %d",
			number, j.name, term, s.exec.runner[j.name], s.exec.term)
	}
	s.exec.term, s.exec.runner[j.name] = term, number
}

// process is a process of a job.
type process struct {
	s      *world
	on     *node
	run    int // of the driver's process
	job    *job
	number int
	alive  bool
	step   int
	until  plan.Time // by its machine's clock
}

func (s *world) startProcess(d *node, j *job, number int) {
	p := &process{s: s, on: d, run: d.run, job: j, number: number, alive: true, step: d.files[j.name].step,
		until: d.now() + driver.LeaseLasts}
	s.tell("process %d of %s begins on driver %d at step %d", number, j.name, d.id, p.step)
	for _, o := range j.procs {
		if o.alive {
			s.violate("drivers.once", "process %d of %s begins on driver %d while process %d lives on driver %d",
				number, j.name, d.id, o.number, o.on.id)
		}
	}
	j.from[number] = d.files[j.name]
	if !j.includes(j.from[number], j.kept) {
		s.violate("drivers.committed", "process %d of %s goes on from %v, and %v was confirmed", number, j.name,
			j.from[number], j.kept)
	}
	j.procs = append(j.procs, p)
	p.work()
	p.asks()
	p.watch()
}

func (p *process) die(why string) {
	if p.alive {
		p.alive = false
		p.s.tell("process %d of %s ends: %s", p.number, p.job.name, why)
	}
}

// driven reports whether the driver that has started the process is there and leads.
func (p *process) driven() bool { return p.on.works() && p.on.run == p.run && p.on.reigns }

// watch ends the process when its lease is over.
func (p *process) watch() {
	p.s.later(20*time.Millisecond, func() {
		if p.alive && p.on.now() > p.until {
			p.die("its lease is over")
			if p.on.run == p.run {
				delete(p.on.started, p.job.name)
			}
		}
		if p.alive {
			p.watch()
		}
	})
}

// asks asks for its lease to be extended, again and again.
func (p *process) asks() {
	p.s.later(200*time.Millisecond, func() {
		if !p.alive {
			return
		}
		asked := p.on.now()
		p.answered(asked)
		p.asks()
	})
}

// answered waits until a majority has said that the driver leads since it was asked, and then for the answer's way.
func (p *process) answered(asked plan.Time) {
	p.s.later(tick/2, func() {
		if !p.alive || !p.driven() || p.on.now()-asked > 3*time.Second {
			return
		}
		if !daemon.Extends(p.on.quorum, asked) {
			p.answered(asked)
			return
		}
		wait := p.s.ms(0, 5)
		if !p.s.calm && p.s.rng.IntN(20) == 0 {
			p.s.fired("late answer")
			wait = p.s.ms(5, 1100)
		}
		p.s.later(wait, func() {
			if p.alive {
				p.until = max(p.until, driver.LeaseEnd(asked, p.on.now(), driver.LeaseLasts))
			}
		})
	})
}

// work does a step, and has it committed.
func (p *process) work() {
	took := p.s.ms(40, 160)
	if p.job.slow {
		took = p.s.ms(1500, 4000)
	}
	p.s.later(took, func() {
		if !p.alive {
			return
		}
		p.step++
		p.on.files[p.job.name] = mark{p.number, p.step}
		if p.driven() {
			p.commit()
		}
		p.work()
	})
}

// commit has a step's files at a majority, then the step in the journal.
func (p *process) commit() {
	d, j, at := p.on, p.job, mark{p.number, p.step}
	if d.writing[j.name] {
		return
	}
	have, others := 0, 0
	for _, o := range d.s.drivers {
		if o == d {
			continue
		}
		others++
		switch term := d.term; {
		case !d.s.reaches(d, o) || !d.s.calm && d.s.rng.IntN(6) == 0:
		case !d.s.calm && d.s.rng.IntN(30) == 0:
			d.s.fired("late copy")
			from, to := d.run, o.run
			d.s.later(d.s.ms(50, 6000), func() {
				if d.run == from && d.up && o.run == to { // else the connection has ended
					o.takesCopy(j, at, term)
				}
			})
		case o.takesCopy(j, at, d.term):
			have++
		}
	}
	if !daemon.CopiesSuffice(have, others) {
		return
	}
	if have+1 < 2 {
		d.s.violate("drivers.copies", "%v of %s goes to the journal from driver %d, which alone has it", at, j.name,
			d.id)
	}
	d.writing[j.name] = true
	d.append(entry{kind: stepped, job: j.name, mark: at}, func() {
		d.writing[j.name] = false
		j.kept = at
		if at.step >= j.need && p.alive {
			d.append(entry{kind: ended, job: j.name}, func() { j.done = true; p.die("its job is done") })
		}
	})
}

// takesCopy takes a copy of a checkpoint of a driver that led in a term, and reports whether it has.
func (d *node) takesCopy(j *job, at mark, term uint64) bool {
	last := d.copied[j.name]
	if !d.works() || !daemon.TakesCopies(d.term, term) ||
		last.term == term && last.mark.process == at.process && at.step < last.mark.step {
		return false // what one driver sends comes in its order
	}
	if had := d.files[j.name]; j.includes(had, j.kept) && !j.includes(at, j.kept) {
		d.s.violate("drivers.copies", "driver %d takes a copy of %s at %v, has %v, and %v was confirmed", d.id, j.name,
			at, had, j.kept)
	}
	d.copied[j.name] = entry{term: term, mark: at}
	d.files[j.name] = at
	return true
}
