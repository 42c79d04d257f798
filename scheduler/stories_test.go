package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/storytest"
)

// TestStories runs the stories in testdata/stories. Any command may have at=D, the time from
// then on; with show the placement follows.
//
//	splits N [failures=N] [exclude=N] [exclusion=D]; join E [slots=N]; place; lost E
//	held E SPLIT...; replica E SPLIT...; unsent E SPLIT; failed E SPLIT KIND; charge E KIND; readmit
//	drain E; move SPLIT E; boundary; epoch; restore EPOCH; assign SPLIT [cursor=N]; merged SPLIT; current SPLIT ATTEMPT EPOCH
//	observe E RATE...; speeds; share ROWS...; ask E SPLIT; show; defaults
//	pass rows=N [limit=N] [cursor=N] [pieces=N] [bytes=N] [grace=D] [bandwidth=F]    leases of the splits, all alike
//	step; folded E LEASE... [epoch=N]; result E LEASE... [epoch=N]; gone E; broken E SPLIT... ; bar E; heard E; got E SPLIT
//	progress
//	executors E=SLOTS...; call N [partitions=(..)] [splits] [prefer=E] [holders=(E/E,..)] [avoid=(E/E,..)]
//	    [failures=N] [timeout=D] [wait=D]
//	register E [slots=N]; look-at-executors; enter E [slots=N]; leave E; doing E PARTITION [rows=N] [moved=N] [busy=D]; ended E PARTITION [rows=N] [busy=D] [fault=K]; tick
//	slots N; open JOB [weight=N]; close JOB; began JOB [tasks=N]; over JOB; look
//	plan NODE=(STAGE..)...; run NODE PART... [once]; make STAGE [once]; settle NODE; rerun LOOP; and what comes of what is said:
//	opened tasks=N [copies=N]; called [lost=(PLACE/HOLDER[/all],..)] [rest=(PLACE,..)]; finished; kept holders=(E/E,..)
//	copied holders=(E,..); looked; settled; replayed; round-lost; dropped STAGE; turn LOOP STAGE; anew LOOP; what STAGE
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		s := &story{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.Args = storytest.Args{T: t, D: d}
			s.out.Reset()
			if d.HasArg("at") {
				s.now = s.Duration("at", 0)
			}
			if !s.place() && !s.passes() && !s.calls() && !s.shared() && !s.plans() {
				d.Fatalf(t, "unknown command")
			}
			if d.Cmd == "show" || d.HasArg("show") {
				s.show()
			}
			return s.out.String()
		})
	})
}

type story struct {
	storytest.Args
	s      *State
	l      *Leases
	tasks  *Tasks
	ex     *Executors
	shares *Shares
	stages *Stages
	reads  map[int][]int
	making *StageRun
	now    plan.Time
	out    strings.Builder
	epoch  map[plan.ExecutorID]plan.Epoch // of its latest run
}

// numbers are the arguments from one on that are numbers.
func (s *story) numbers(from int) (out []int) {
	for _, a := range s.D.CmdArgs[from:] {
		if a.Key[0] >= '0' && a.Key[0] <= '9' {
			out = append(out, s.Number(a.Key))
		}
	}
	return out
}

func (s *story) say(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *story) commands(cmds []Command) {
	for _, c := range cmds {
		switch {
		case c.Kind == Abort:
			s.say("abort: split %d on %s: %v", c.Split, c.Executor, c.Err)
		case c.From == "":
			s.say("%s: hold %d from its source", c.Executor, c.Split)
		default:
			s.say("%s: hold %d from %s", c.Executor, c.Split, c.From)
		}
	}
}

// place are the commands of placement.
func (s *story) place() bool {
	switch s.D.Cmd {
	case "splits":
		s.s, s.now = New(Config{MaxTaskFailures: s.Int("failures", 0), MaxExecutorFailures: s.Int("exclude", 0),
			Exclusion: s.Duration("exclusion", 0), Sourceless: s.Has("sourceless")}, s.Number(s.Arg(0))), 0
		s.epoch = map[plan.ExecutorID]plan.Epoch{}
	case "join":
		s.commands(s.s.Joined(s.Executor(), s.Int("slots", 1)))
	case "place":
		s.commands(s.s.Place(nil))
	case "lost":
		orphans, cmds := s.s.Lost(s.Executor())
		s.say("orphans %v", orphans)
		s.commands(cmds)
	case "held", "replica", "unsent":
		for _, i := range s.numbers(1) {
			map[string]func(plan.ExecutorID, plan.SplitID){"held": s.s.Held, "replica": s.s.Replica,
				"unsent": s.s.Unsent}[s.D.Cmd](s.Executor(), plan.SplitID(i))
		}
	case "failed":
		s.commands(s.s.Failed(s.Executor(), plan.SplitID(s.Number(s.Arg(1))), s.FaultOf(s.Arg(2))))
	case "charge":
		s.say("excluded now: %v", s.s.Charge(s.Executor(), s.FaultOf(s.Arg(1)), s.now))
	case "readmit":
		ids, cmds := s.s.Readmit(s.now)
		s.say("let back in: %v", ids)
		s.commands(cmds)
	case "drain":
		s.commands(s.s.Drain(s.Executor()))
	case "for-good":
		s.say("%v", s.s.Gone())
	case "remade":
		s.commands(s.s.Remade(s.Executor()))
	case "move":
		s.commands(s.s.Move(plan.SplitID(s.Number(s.Arg(0))), plan.ExecutorID(s.Arg(1))))
	case "boundary":
		s.say("changed %v", s.s.Boundary())
	case "show":
	case "defaults":
		s.say("%+v", Config{}.EnsureDefaults())
		s.say("%+v", Config{1, 2, 3, true, 4}.EnsureDefaults())
	default:
		return s.steps()
	}
	return true
}

// steps are the commands of steps.
func (s *story) steps() bool {
	switch s.D.Cmd {
	case "epoch":
		s.say("%d", s.s.NextEpoch())
	case "restore":
		s.s.Restore(plan.Epoch(s.Number(s.Arg(0))))
		s.say("%d", s.s.Epoch())
	case "assign":
		id, a, ok := s.s.Assign(plan.SplitID(s.Number(s.Arg(0))), int64(s.Int("cursor", 0)))
		s.say("to %q, attempt %d, epoch %d, cursor %d, %v", id, a.Attempt, a.Epoch, a.Cursor, ok)
	case "merged":
		s.s.Merged(plan.SplitID(s.Number(s.Arg(0))))
	case "current":
		s.say("%v", s.s.Current(plan.SplitID(s.Number(s.Arg(0))), s.Number(s.Arg(1)), plan.Epoch(s.Number(s.Arg(2)))))
	case "observe":
		for _, r := range s.numbers(1) {
			s.s.Observe(s.Executor(), float64(r))
		}
	case "speeds":
		speed, observed := s.s.Speeds()
		s.say("%.3f in %v steps, noise %.4f", speed, observed, s.s.Noise())
	case "share":
		var rows []int64
		for _, n := range s.numbers(0) {
			rows = append(rows, int64(n))
		}
		s.say("%.3f", s.s.LargestShare(rows))
	case "ask":
		e, i := s.Executor(), plan.SplitID(s.Number(s.Arg(1)))
		attempt, epoch := s.s.Latest(i)
		s.say("awaited %v, drained %v, excluded %v, alive %v, moving %v, owner %q; latest attempt %d of epoch %d",
			s.s.Awaits(e, i), s.s.Drained(e), s.s.Excluded(e), s.s.IsAlive(e), s.s.Moving(i), s.s.Owner(i), attempt,
			epoch)
	default:
		return false
	}
	return true
}

func (s *story) show() {
	name := func(e int) plan.ExecutorID {
		if e < 0 {
			return "-"
		}
		return s.s.Executors()[e]
	}
	for i := range s.s.splits {
		sp := &s.s.splits[i]
		var held []plan.ExecutorID
		for e := range s.s.executors {
			if s.s.Holds(plan.SplitID(i), e) {
				held = append(held, name(e))
			}
		}
		s.say("  split %d: of %s, next %s, held by %v, avoids %s", i, name(sp.owner), name(sp.next), held,
			name(sp.avoid))
	}
	s.say("  ready %v, alive %v", s.s.Ready(), s.s.Alive())
}

// passes are the commands of leases.
func (s *story) passes() bool {
	l := s.l
	switch s.D.Cmd {
	case "pass":
		s.pass()
	case "step":
		s.leases(l.Step(s.now))
	case "folded":
		s.say("new in splits %v", l.Folded(s.Executor(), s.run(), s.leaseIDs(), s.now))
		s.leases(l.Step(s.now))
	case "result":
		s.say("taken: %v", l.Accept(s.Executor(), s.run(), s.leaseIDs()))
		s.leases(l.Step(s.now))
	case "gone":
		s.s.Lost(s.Executor())
		l.Lost(s.Executor())
		s.leases(l.Step(s.now))
	case "broken":
		var splits []plan.SplitID
		for _, i := range s.numbers(1) {
			splits = append(splits, plan.SplitID(i))
		}
		s.say("of its run: %v", l.Failed(s.Executor(), s.run(), splits))
		s.leases(l.Step(s.now))
	case "bar":
		s.say("others are left: %v", l.Bar(s.Executor()))
		s.leases(l.Step(s.now))
	case "heard":
		l.Heard(s.Executor())
	case "refused":
		l.Unsent(s.Executor(), plan.SplitID(s.Number(s.Arg(1))), s.now)
		s.leases(l.Step(s.now))
	case "progress":
		for i := range l.tasks {
			s.say("  split %d: %d parts, %d rows, whole %v", i, l.Parts(plan.SplitID(i)), l.Rows(plan.SplitID(i)),
				l.Whole(plan.SplitID(i)))
		}
		s.say("  in vain %d", l.TakeVain())
	default:
		return false
	}
	return true
}

func (s *story) pass() {
	var tasks []LeaseTask
	for range s.s.splits {
		rows := int64(s.Int("rows", 0))
		tasks = append(tasks, LeaseTask{Rows: rows, Cursor: int64(s.Int("cursor", 0)),
			Limit: int64(s.Int("limit", int(rows))), Pieces: s.Int("pieces", 1),
			Bytes: int64(s.Int("bytes", int(rows)))})
	}
	bandwidth := float64(s.Int("bandwidth", 0))
	s.l = NewLeases(LeaseConfig{Grace: max(s.Duration("grace", 0), time.Millisecond), Bandwidth: bandwidth}, s.s,
		tasks, s.now)
	s.leases(s.l.Step(s.now))
}

func (s *story) run() plan.Epoch {
	return plan.Epoch(s.Int("epoch", int(s.epoch[s.Executor()])))
}

func (s *story) leaseIDs() (out []uint32) {
	for _, n := range s.numbers(1) {
		out = append(out, uint32(n))
	}
	return out
}

func (s *story) leases(cmds []LeaseCommand) {
	for _, c := range cmds {
		switch c.Kind {
		case LeaseStart:
			s.epoch[c.Executor] = c.Epoch
			s.say("%s: begin, epoch %d", c.Executor, c.Epoch)
		case LeaseGrant, LeaseInclude:
			fmt.Fprintf(&s.out, "%s: %s", c.Executor,
				map[LeaseCommandKind]string{LeaseGrant: "leases", LeaseInclude: "include"}[c.Kind])
			for _, l := range c.Leases {
				fmt.Fprintf(&s.out, " %d=%d.%d", l.ID, l.Split, l.Part)
			}
			s.out.WriteString("\n")
		case LeaseGet:
			s.commands([]Command{c.Get})
		case LeaseWakeAt:
			s.say("wake at %v", c.At)
		}
	}
}
