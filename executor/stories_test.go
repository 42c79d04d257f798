package executor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/storytest"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/internal/wire"
)

// TestStories runs the stories in testdata. Each is an agent, what it is told, and what it
// has done, a line each. Any command may have at=D, the time from then on, and job=J.
//
//	agent slots=N; prepare; planned [fault=K]; end
//	hold SPLIT [pack=N] [from=E] [want=X]; fetched SPLIT [pack=N] [from=E] [want=X] [got=X] [fault=K]
//	parameter NAME
//	start STEP SPLIT... [epoch=N] [attempt=N] [cursor=N] [every=D] [param=NAME] [leased]
//	stop STEP [epoch=N] [skip=(SPLIT,..)]
//	leases STEP LEASE... [epoch=N] [state=TEXT]; include STEP LEASE... [epoch=N]
//	task PARTITION; acted PARTITION; acting PARTITION
//	sample RUN COUNT... [due]; pieces RUN LEASE...
//	folded RUN SPLIT:COUNT... [leases=(LEASE,..)] [fault=K] [busy=D]
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var s story
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.Args = storytest.Args{T: t, D: d}
			s.now += s.Duration("at", 0) - s.now*btoi(d.HasArg("at"))
			if d.Cmd == "agent" {
				s.agent = NewAgent("e1", s.Int("slots", 1))
				return showSent(s.agent.Register()) + "\n"
			}
			var out strings.Builder
			for _, c := range s.agent.Step(s.event(), s.now) {
				out.WriteString(show(c) + "\n")
			}
			return out.String()
		})
	})
}

func btoi(b bool) time.Duration {
	if b {
		return 1
	}
	return 0
}

type story struct {
	storytest.Args
	agent *Agent
	now   plan.Time
}

// ids are the numbers of a list, or, without a key, those of the command after the first.
func (s *story) ids(key string) (out []uint32) {
	var words []string
	for i, a := range s.D.CmdArgs {
		if key != "" && a.Key == key {
			words = a.Vals
		} else if key == "" && i > 0 && a.Key[0] >= '0' && a.Key[0] <= '9' {
			words = append(words, a.Key)
		}
	}
	for _, w := range words {
		n, _, _ := strings.Cut(w, ":")
		out = append(out, uint32(s.Number(n)))
	}
	return out
}

// first is the number after the command.
func (s *story) first() int { return s.Number(s.D.CmdArgs[0].Key) }

func (s *story) job() string { return s.Text("job", "j") }

// digest is that of a name; none of no name.
func (s *story) digest(key, other string) plan.Digest {
	if v := s.Text(key, other); v != "" {
		return plan.DigestOf([]byte(v))
	}
	return plan.Digest{}
}

// event is what a command says that happened.
func (s *story) event() Event {
	switch s.D.Cmd {
	case "planned":
		return Event{Planned: &Planned{Job: s.job(), Fingerprint: plan.Digest{1, 2, 3}, Err: s.Fault("fault")}}
	case "fetched":
		return Event{Fetched: &Fetched{Hold: s.hold(), SHA256: s.digest("got", "rows"), Err: s.Fault("fault")}}
	case "sample":
		e := &Sample{Run: s.first(), Due: s.D.HasArg("due")}
		for _, n := range s.ids("") {
			e.Counts = append(e.Counts, int64(n))
		}
		return Event{Sampled: e}
	case "pieces":
		return Event{Pieces: &PiecesFolded{Run: s.first(), IDs: s.ids("")}}
	case "folded":
		return Event{Folded: s.folded()}
	case "acted":
		return Event{Acted: &wire.TaskResult{Job: s.job(), Call: 1, Partition: uint32(s.first())}}
	case "acting":
		return Event{Acting: &wire.TaskProgress{Job: s.job(), Call: 1, Partition: uint32(s.first()), Rows: 7}}
	case "nothing":
		return Event{}
	}
	return Event{Message: s.message()}
}

func (s *story) folded() *Folded {
	f := &Folded{Run: s.first(), Busy: s.Duration("busy", 0), Leases: s.ids("leases"), Err: s.Fault("fault")}
	for i, a := range s.D.CmdArgs {
		split, count, ok := strings.Cut(a.Key, ":")
		if i > 0 && ok {
			n := int64(s.Number(count))
			f.Coverage = append(f.Coverage, plan.Coverage{Split: plan.SplitID(s.Number(split)),
				Attempt: s.Int("attempt", 1), Epoch: plan.Epoch(s.Int("epoch", 1)), Cursor: int64(s.Int("cursor", 0)),
				Count: n, Folded: n, Weight: 0.5, Entries: 3 * n})
			f.Parts = append(f.Parts, &wire.Part{Index: uint32(i)})
		}
	}
	return f
}

func (s *story) hold() *wire.Hold {
	want := s.digest("want", "rows")
	return &wire.Hold{Job: s.job(), Pack: uint32(s.Int("pack", 0)), Split: uint32(s.first()), From: s.Text("from", ""),
		Sha256: want[:]}
}

// message is what the driver says.
func (s *story) message() *wire.ToExecutor {
	m := &wire.ToExecutor{}
	epoch := uint64(s.Int("epoch", 1))
	switch s.D.Cmd {
	case "prepare":
		m.Body = &wire.ToExecutor_Prepare{Prepare: &wire.Prepare{Job: s.job()}}
	case "hold":
		m.Body = &wire.ToExecutor_Hold{Hold: s.hold()}
	case "parameter":
		digest := plan.DigestOf([]byte(s.D.CmdArgs[0].Key))
		m.Body = &wire.ToExecutor_Parameter{Parameter: &wire.Parameter{Digest: digest[:],
			Data: []byte(s.D.CmdArgs[0].Key)}}
	case "start":
		m.Body = &wire.ToExecutor_StartStep{StartStep: s.start()}
	case "stop":
		m.Body = &wire.ToExecutor_StopStep{StopStep: &wire.StopStep{Job: s.job(), Step: uint32(s.first()), Epoch: epoch,
			Skip: s.ids("skip")}}
	case "leases":
		l := &wire.Leases{Job: s.job(), Step: uint32(s.first()), Epoch: epoch}
		for _, id := range s.ids("") {
			l.Leases = append(l.Leases, &wire.Lease{Id: id})
		}
		if v := s.Text("state", ""); v != "" {
			l.States = []*wire.Part{{State: true, Data: []byte(v)}}
		}
		m.Body = &wire.ToExecutor_Leases{Leases: l}
	case "include":
		m.Body = &wire.ToExecutor_Include{Include: &wire.Include{Job: s.job(), Step: uint32(s.first()), Epoch: epoch,
			Ids: s.ids("")}}
	case "task":
		m.Body = &wire.ToExecutor_RunTask{RunTask: &wire.RunTask{Job: s.job(), Call: 1, Partition: uint32(s.first())}}
	case "end":
		m.Body = &wire.ToExecutor_EndJob{EndJob: &wire.EndJob{Job: s.job()}}
	case "pause": // which is the shell's
		m.Body = &wire.ToExecutor_Pause{Pause: &wire.Pause{On: true}}
	default:
		s.D.Fatalf(s.T, "unknown command")
	}
	return m
}

func (s *story) start() *wire.StartStep {
	m := &wire.StartStep{Job: s.job(), Step: uint32(s.first()), Leased: s.D.HasArg("leased"),
		ReportIntervalNs: uint64(s.Duration("every", 0))}
	if m.Leased {
		m.Epoch = uint64(s.Int("epoch", 1))
	}
	if digest := s.digest("param", ""); !digest.IsZero() {
		m.ParamDigest = digest[:]
	} else {
		m.Param = []byte("inline")
	}
	for _, k := range s.ids("") {
		m.Tasks = append(m.Tasks, &wire.Assignment{Split: k, Attempt: uint32(s.Int("attempt", 1)),
			Epoch: uint64(s.Int("epoch", 1)), Cursor: uint64(s.Int("cursor", 0))})
	}
	return m
}

func show(c Command) string {
	switch {
	case c.Send != nil:
		return showSent(c.Send)
	case c.Plan != nil:
		return "build the plan of " + c.Plan.Job
	case c.Fetch != nil:
		return fmt.Sprintf("fetch split %d of pack %d of %s from %q", c.Fetch.Split, c.Fetch.Pack, c.Fetch.Job,
			c.Fetch.From)
	case c.Start != nil:
		var splits []uint32
		for _, t := range c.Start.Step.Tasks {
			splits = append(splits, t.Split)
		}
		return fmt.Sprintf("run %d: step %d of %s, splits %v, parameter %s", c.Start.ID, c.Start.Step.Step,
			c.Start.Step.Job, splits, c.Start.Param)
	case c.Stop != nil:
		return fmt.Sprintf("stop run %d, skip %v", c.Stop.Run, c.Stop.Skip)
	case c.SampleAt != nil:
		return fmt.Sprintf("sample run %d at %v", c.SampleAt.Run, c.SampleAt.At)
	case c.Act != nil:
		return fmt.Sprintf("act on partition %d of %s", c.Act.Partition, c.Act.Job)
	case c.Lease != nil:
		var ids []uint32
		for _, l := range c.Lease.Leases {
			ids = append(ids, l.Id)
		}
		return fmt.Sprintf("run %d gets leases %v, states %d", c.Lease.Run, ids, len(c.Lease.States))
	case c.Include != nil:
		return fmt.Sprintf("run %d ends with leases %v", c.Include.Run, c.Include.IDs)
	}
	return "nothing"
}

func showSent(m *wire.ToDriver) string {
	switch b := m.Body.(type) {
	case *wire.ToDriver_Register:
		return fmt.Sprintf("> register %s, %d slots, version known %v", b.Register.Executor, b.Register.Slots,
			b.Register.Version == version.Oldest)
	case *wire.ToDriver_Prepared:
		return fmt.Sprintf("> %s is prepared, plan %x%s", b.Prepared.Job, b.Prepared.Fingerprint[:3],
			showFault(b.Prepared.Fault))
	case *wire.ToDriver_Holding:
		h := b.Holding
		return fmt.Sprintf("> split %d of pack %d of %s is here, hash %x%s", h.Split, h.Pack, h.Job, h.Sha256[:3],
			showFault(h.Fault))
	case *wire.ToDriver_Progress:
		out := fmt.Sprintf("> progress of step %d of %s:", b.Progress.Step, b.Progress.Job)
		for _, c := range b.Progress.Counts {
			out += fmt.Sprintf(" %d (attempt %d, epoch %d) %d", c.Split, c.Attempt, c.Epoch, c.Processed)
		}
		return out
	case *wire.ToDriver_Result:
		return showResult(b.Result)
	case *wire.ToDriver_PiecesFolded:
		p := b.PiecesFolded
		return fmt.Sprintf("> leases %v of step %d of %s, epoch %d, are folded", p.Ids, p.Step, p.Job, p.Epoch)
	case *wire.ToDriver_TaskResult:
		return fmt.Sprintf("> partition %d of %s is done", b.TaskResult.Partition, b.TaskResult.Job)
	case *wire.ToDriver_TaskProgress:
		return fmt.Sprintf("> partition %d of %s: %d rows", b.TaskProgress.Partition, b.TaskProgress.Job,
			b.TaskProgress.Rows)
	}
	return fmt.Sprint(m)
}

func showResult(r *wire.Result) string {
	out := fmt.Sprintf("> result of step %d of %s, epoch %d, parts %d, busy %v%s", r.Step, r.Job, r.Epoch, len(r.Parts),
		time.Duration(r.BusyNs), showFault(r.Fault))
	for _, c := range r.Coverage {
		out += fmt.Sprintf("\n    split %d from %d: %d rows, folded %d (attempt %d, epoch %d, lease %d, weight %v, "+
			"entries %d)", c.Split, c.Cursor, c.Count, c.Folded, c.Attempt, c.Epoch, c.Lease, c.Weight, c.Entries)
	}
	return out
}

func showFault(f *wire.Fault) string {
	if err := f.AsError(); err != nil {
		return fmt.Sprintf(", %v: %v", fault.KindOf(err), err)
	}
	return ""
}
