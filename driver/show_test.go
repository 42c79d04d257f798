package driver

import (
	"fmt"
	"strings"
	"time"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/prioritizer"
	"github.com/volley-engine/volley/scheduler"
)

// configOf is the configuration of a story's job.
func (s *story) configOf() JobConfig {
	policy, err := abss.ParsePolicy(s.Text("policy", "bsp"))
	s.Must(err)
	mode, err := prioritizer.ParseMode(s.Text("exchange", "off"))
	s.Must(err)
	return JobConfig{ID: "job", Record: true, Fingerprint: plan.Digest{1, 2, 3}, Sources: []byte("sources"),
		Executors: s.Int("executors", 0), Life: uint32(s.Int("life", 0)), Again: s.Has("again"),
		Gather: s.Duration("gather", 0), MaxWait: s.Duration("maxwait", 0), TaskTimeout: s.Duration("tasktimeout", 0),
		ReportInterval: s.Duration("interval", 0),
		FixedCursors:   s.Has("fixed"), ByRows: s.Has("byrows"), BatchFraction: s.Float("batch", 0),
		Sync: abss.Config{Policy: policy, Ratio: s.Float("ratio", 0), MinRatio: s.Float("minratio", 0),
			MinShare: s.Float("share", 0), MinRows: int64(s.Int("floor", 0)), MaxMissing: s.Float("missing", 0),
			Grace: s.Duration("grace", 0), StepTimeout: s.Duration("timeout", 0)},
		Exchange: prioritizer.ExchangeConfig{Mode: mode, Threshold: int64(s.Int("threshold", 0)),
			Interval: s.Int("every", 0)},
		Schedule: scheduler.Config{MaxTaskFailures: s.Int("failures", 0), MaxExecutorFailures: s.Int("exclude", 0),
			Exclusion: s.Duration("exclusion", 0)}}
}

func entry(cursor, merged int64) prioritizer.Entry {
	return prioritizer.Entry{Cursor: cursor, Merged: merged}
}

// tell lets the job see an event, and writes down what it says. In a quick story plans are
// built and splits got at once, of which nothing is said.
func (s *story) tell(ev Event) { s.answer(s.job.Step(ev, s.now)) }

func (s *story) answer(cmds []Command) {
	var next []Message
	for _, c := range cmds {
		if c.Send == nil {
			s.line(s.showCommand(c))
			continue
		}
		m := c.Send.Body
		s.note(c.Send.To, m)
		switch {
		case s.quick && m.GetPrepare() != nil:
			next = append(next, Message{c.Send.To, &wire.ToDriver{Body: &wire.ToDriver_Prepared{Prepared: s.prepared(
				false)}}})
		case s.quick && m.GetHold() != nil:
			h := m.GetHold()
			held := &wire.Holding{Job: "job", Pack: h.Pack, Split: h.Split, Sha256: h.Sha256}
			next = append(next, Message{c.Send.To, &wire.ToDriver{Body: &wire.ToDriver_Holding{Holding: held}}})
		default:
			s.line(fmt.Sprintf("%s: %s", c.Send.To, showMessage(m)))
		}
	}
	for i := range next {
		s.tell(Event{Message: &next[i]})
	}
}

// line writes a line, unless it is the last one again.
func (s *story) line(text string) {
	if !strings.HasSuffix("\n"+s.out.String(), "\n"+text+"\n") {
		s.out.WriteString(text + "\n")
	}
}

// note keeps what an executor knows by a message.
func (s *story) note(to plan.ExecutorID, m *wire.ToExecutor) {
	switch {
	case m.GetInclude() != nil:
		s.included[to] = m.GetInclude().Ids
	case m.GetStartStep() != nil:
		s.queue[to], s.included[to] = nil, nil
		s.runs[to], s.step = m.GetStartStep(), m.GetStartStep().Step
		if s.given[to] == nil {
			s.given[to] = map[uint32]*wire.Assignment{}
		}
		for _, a := range m.GetStartStep().Tasks {
			s.given[to][a.Split] = a
		}
	case m.GetLeases() != nil:
		if s.leases[to] == nil {
			s.leases[to] = map[uint32]*wire.Lease{}
		}
		for _, l := range m.GetLeases().Leases {
			s.leases[to][l.Id] = l
			s.queue[to] = append(s.queue[to], l.Id)
		}
	case m.GetRunTask() != nil:
		s.call = m.GetRunTask().Call
	}
}

func (s *story) showCommand(c Command) string {
	switch {
	case c.WakeAt > 0:
		return fmt.Sprintf("wake at %v", c.WakeAt)
	case c.Ready:
		return "ready"
	case c.PackOpen != nil:
		return fmt.Sprintf("pack %d is open", *c.PackOpen)
	case c.Failed != nil:
		return fmt.Sprintf("failed: %v", c.Failed)
	case c.Drained != "":
		return fmt.Sprintf("%s is drained", c.Drained)
	case c.Excluded != nil && c.Excluded.Why == "":
		return fmt.Sprintf("%s is let back in", c.Excluded.Executor)
	case c.Excluded != nil:
		return fmt.Sprintf("%s is excluded: %s", c.Excluded.Executor, c.Excluded.Why)
	case c.CallDone != nil:
		return showCall(c.CallDone)
	case c.PackGone != nil:
		return fmt.Sprintf("pack %d has to be made again, before call %d", c.PackGone.Pack, c.PackGone.Call)
	case c.Extended:
		return "all have the plan as it is now"
	}
	s.reports = append(s.reports, c.StepDone)
	return showStep(c.StepDone)
}

func showCall(o *plan.CallOutcome) string {
	words := make([]string, len(o.Data))
	for i := range o.Data {
		if words[i] = string(o.Data[i]); o.Lost[i] != nil {
			words[i] = fmt.Sprint("lost (", o.Lost[i], ")")
		}
	}
	return strings.Join(append([]string{fmt.Sprintf("action %d is done:", o.ID)}, words...), " ")
}

func showStep(r *StepReport) string {
	var b strings.Builder
	kind := "pass after step"
	if r.Train {
		kind = "step"
	}
	fmt.Fprintf(&b, "%s %d of node %d, pack %d, is done: %d rows, share %.4f, neff %.2f, epoch %d\n", kind, r.Number,
		r.Node, r.Pack, r.Merged, r.Share, r.NEff, r.Epoch)
	for i, c := range r.Coverage {
		if c != nil {
			fmt.Fprintf(&b, "  split %d: %d rows from %d, attempt %d, epoch %d%s\n", i, c.Count, c.Cursor, c.Attempt,
				c.Epoch, beside(c))
		}
	}
	if len(r.Missing) > 0 {
		fmt.Fprintf(&b, "  missing %v\n", r.Missing)
	}
	fmt.Fprintf(&b, "  began at %v, took %v, first finish at %v (%.3f), stopped at %v (%.3f), cut %v, bytes %d, "+
		"parts %d, retried %d\n",
		r.Began, r.Took, r.Stats.FirstFinish, r.Stats.ShareFirst, r.Stats.StopAt, r.Stats.ShareStop, r.Stats.Cut,
		r.Bytes, len(r.Outcome.Parts), r.Retried)
	for _, w := range r.Stats.Waits {
		fmt.Fprintf(&b, "  waited from %v for %s: %v of %v\n", w.Since, w.For, w.Took, w.Bound)
	}
	for _, m := range r.Moves {
		fmt.Fprintf(&b, "  split %d moves from %s to %s, role %v\n", m.Split, m.From, m.To, m.Role)
	}
	if r.Placement != nil {
		fmt.Fprintf(&b, "  placement %v of %v\n", r.Placement, r.Executors)
	}
	if r.MoveTime > 0 || r.Entries != nil || r.Batch > 0 || r.Chosen.Ratio > 0 || !r.Param.IsZero() || r.Weighted {
		fmt.Fprintf(&b, "  moves took %v, entries %v, batch %v, ratio %v %s, parameter apart %v, weighted %v\n",
			r.MoveTime, r.Entries, r.Batch, r.Chosen.Ratio, r.Chosen.Why, !r.Param.IsZero(), r.Weighted)
	}
	fmt.Fprintf(&b, "  rates %.0f", r.Rates)
	return b.String()
}

// beside is what a coverage has beside its rows, where it has it.
func beside(c *plan.Coverage) (out string) {
	if c.Folded != c.Count {
		out += fmt.Sprintf(", folded %d", c.Folded)
	}
	if c.Weight != 0 {
		out += fmt.Sprintf(", weight %v", c.Weight)
	}
	if c.Entries != 0 {
		out += fmt.Sprintf(", entries %d", c.Entries)
	}
	return out
}

func showMessage(m *wire.ToExecutor) string {
	switch b := m.Body.(type) {
	case *wire.ToExecutor_Prepare:
		return fmt.Sprintf("build plan %x of %s", b.Prepare.Fingerprint[:3], b.Prepare.Sources)
	case *wire.ToExecutor_Hold:
		h := b.Hold
		from := h.From
		if from == "" {
			from = "its source"
		}
		return fmt.Sprintf("hold split %d of pack %d from %s (node %d, hash %x, %d bytes)", h.Split, h.Pack, from,
			h.Node, h.Sha256[:2], h.Bytes)
	case *wire.ToExecutor_Parameter:
		return fmt.Sprintf("parameter of %d bytes", len(b.Parameter.Data))
	case *wire.ToExecutor_StartStep:
		return showStart(b.StartStep)
	case *wire.ToExecutor_StopStep:
		return fmt.Sprintf("stop %d up to epoch %d, skip %v", b.StopStep.Step, b.StopStep.Epoch, b.StopStep.Skip)
	case *wire.ToExecutor_Leases:
		return showLeases(b.Leases)
	case *wire.ToExecutor_Include:
		return fmt.Sprintf("include %v of %d, epoch %d", b.Include.Ids, b.Include.Step, b.Include.Epoch)
	case *wire.ToExecutor_RunTask:
		return showTask(b.RunTask)
	case *wire.ToExecutor_EndJob:
		return fmt.Sprintf("the job %s is over", b.EndJob.Job)
	}
	return fmt.Sprint(m)
}

func showTask(t *wire.RunTask) string {
	out := fmt.Sprintf("run partition %d of node %d, call %d", t.Partition, t.Node, t.Call)
	if t.Holders != nil {
		out += fmt.Sprintf(", held by %v", t.Holders)
	}
	return out
}

func showStart(m *wire.StartStep) string {
	var b strings.Builder
	fmt.Fprintf(&b, "start %d of node %d", m.Step, m.Node)
	for _, f := range []struct {
		on   bool
		text string
	}{{m.PackNode > 0, fmt.Sprint(" over node ", m.PackNode)}, {m.Leased, fmt.Sprint(" leased, epoch ", m.Epoch)},
		{m.Scale, " scaled"}, {m.Entries, " by entries"},
		{len(m.ParamDigest) > 0, " with the parameter"},
		{len(m.Param) > 0, fmt.Sprintf(" with %d bytes", len(m.Param))}} {
		if f.on {
			b.WriteString(f.text)
		}
	}
	fmt.Fprintf(&b, ", reports every %v", time.Duration(m.ReportIntervalNs))
	for _, a := range m.Tasks {
		fmt.Fprintf(&b, "\n  split %d attempt %d epoch %d%s", a.Split, a.Attempt, a.Epoch, showPlace(a))
	}
	return b.String() + showStates(m.States)
}

func showPlace(a *wire.Assignment) (out string) {
	if a.Cursor > 0 {
		out += fmt.Sprint(" from ", a.Cursor)
	}
	if a.Limit > 0 {
		out += fmt.Sprint(" at most ", a.Limit)
	}
	if a.State > 0 {
		out += " with state"
	}
	return out
}

func showStates(states []*wire.Part) (out string) {
	for _, p := range states {
		out += fmt.Sprintf("\n  state of split %d: %s", p.Index, p.Data)
	}
	return out
}

func showLeases(m *wire.Leases) string {
	var b strings.Builder
	fmt.Fprintf(&b, "leases of %d, epoch %d:", m.Step, m.Epoch)
	for _, l := range m.Leases {
		fmt.Fprintf(&b, " %d=split %d part %d/%d of %d", l.Id, l.Task.Split, l.Part, l.Parts, l.Pieces)
		if place := showPlace(l.Task); place != "" {
			b.WriteString(place)
		}
	}
	return b.String() + showStates(m.States)
}

func (s *story) showLedger() {
	r := s.job.Ledger(s.Int("pack", 0))
	fmt.Fprintf(&s.out, "pack %d after %d steps, epoch %d, ratio %v\n", r.Pack, r.Steps, r.Epoch, r.Ratio)
	for i, e := range r.Entries {
		fmt.Fprintf(&s.out, "  split %d: cursor %d, merged %d, whole %d, dropped %d\n", i, e.Cursor, e.Merged, e.Whole,
			e.Dropped)
	}
	for _, st := range r.States {
		fmt.Fprintf(&s.out, "  state of node %d, split %d: %s\n", st.Node, st.Split, st.Data)
	}
}
