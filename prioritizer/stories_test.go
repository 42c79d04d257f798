package prioritizer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/storytest"
)

// TestStories runs the stories in testdata/stories. Lists may have N*TIMES. What a view is not told
// stays as it was in the one before.
//
//	exchange mode=M splits=N [threshold=N] [every=N] [bandwidth=F] [horizon=N] [seed=N]
//	plan [steps=N] [step=N] [ratio=F] [owner=(..)] [rows=(..)] [bytes=(..)] [times=(..)] [moving=(SPLIT,..)]
//	    [speed=(..)] [observed=(..)] [noise=F] [held=(SPLIT/EXECUTOR,..)] [stay]   owners change, unless they stay
//	slower [ratio=F]: plans for one executor of four whose speed falls from 100 to 20 of 100
//	forecast ratio=F load=(..) speed=(..) [exact]
//	ledger rows=(..) [fixed]; merge SPLIT ROWS; drop SPLIT ROWS; restore CURSOR/MERGED/WHOLE/DROPPED...; entries
//	defaults; modes
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		s := &story{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.Args = storytest.Args{T: t, D: d}
			s.out.Reset()
			s.do()
			return s.out.String()
		})
	})
}

type story struct {
	storytest.Args
	x      *Exchange
	v      View
	ledger *Ledger
	out    strings.Builder
}

func (s *story) parse(v string) float64 {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil {
		s.D.Fatalf(s.T, "%v", err)
	}
	return f
}

func (s *story) do() {
	switch s.D.Cmd {
	case "exchange":
		mode := Random
		if name := s.List("mode")[0]; name != "random" {
			var err error
			if mode, err = ParseMode(name); err != nil {
				s.D.Fatalf(s.T, "%v", err)
			}
		}
		s.x = NewExchange(ExchangeConfig{Mode: mode, Threshold: int64(s.Float("threshold", 0)),
			Interval: int(s.Float("every", 0)), Bandwidth: s.Float("bandwidth", 0), Horizon: int(s.Float("horizon", 0)),
			Seed: uint64(s.Float("seed", 0))}, int(s.Float("splits", 0)))
		s.v = View{Ratio: 0.5}
	case "plan":
		s.look()
		for range int(s.Float("steps", 1)) {
			s.plan()
		}
	case "slower":
		s.slower()
	case "forecast":
		f := &forecast{ratio: s.Float("ratio", 0), load: storytest.Numbers[float64](s.Args, "load", nil),
			speed: storytest.Numbers[float64](s.Args, "speed", nil)}
		for _, l := range f.load {
			f.rows += l
		}
		score, t := f.score()
		if s.D.HasArg("exact") {
			fmt.Fprintf(&s.out, "step %v s\n", t)
			return
		}
		fmt.Fprintf(&s.out, "step %.6f s, score %.4f, slowest %d, first done %d\n", t, score, slowest(f), firstDone(f))
	case "defaults":
		fmt.Fprintf(&s.out, "%+v\n", ExchangeConfig{}.EnsureDefaults())
		fmt.Fprintf(&s.out, "%+v\n", ExchangeConfig{Rate, 1, 2, 3, 4, 6}.EnsureDefaults())
	case "modes":
		for _, m := range []Mode{Off, PaperLiteral, Paper, Rate, Random} {
			got, err := ParseMode(m.String())
			fmt.Fprintln(&s.out, m, got, err)
		}
	default:
		s.account()
	}
}

// look changes the view.
func (s *story) look() {
	v := &s.v
	v.Step, v.Ratio, v.Noise = int(s.Float("step", float64(v.Step+1)))-1, s.Float("ratio", v.Ratio),
		s.Float("noise", v.Noise)
	v.Owner, v.Rows, v.Bytes, v.Times = storytest.Numbers(s.Args, "owner", v.Owner),
		storytest.Numbers(s.Args, "rows", v.Rows),
		storytest.Numbers(s.Args, "bytes", v.Bytes), storytest.Numbers(s.Args, "times", v.Times)
	v.Speed, v.Observed = storytest.Numbers(s.Args, "speed", v.Speed), storytest.Numbers(s.Args, "observed", v.Observed)
	n := len(v.Owner)
	v.Moving = make([]bool, n)
	for _, i := range storytest.Numbers[int](s.Args, "moving", nil) {
		v.Moving[i] = true
	}
	if v.Times == nil {
		v.Times = make([]int64, n)
	}
	if v.Bytes == nil {
		v.Bytes = v.Rows
	}
	held := s.List("held")
	v.Held = nil
	if held != nil {
		v.Held = func(split, e int) bool { return slices.Contains(held, fmt.Sprint(split, "/", e)) }
	}
}

// plan makes the plan after the next step.
func (s *story) plan() {
	s.v.Step++
	swaps := s.x.Plan(s.v)
	for _, w := range swaps {
		fmt.Fprintf(&s.out, "after step %d: split %d from %d to %d, role %v\n", s.v.Step, w.Split, w.From, w.To, w.Role)
		if !s.D.HasArg("stay") {
			s.v.Owner[w.Split] = w.To
		}
	}
}

func (s *story) slower() {
	for speed := 100; speed >= 20; speed -= 4 {
		x := NewExchange(ExchangeConfig{Mode: Rate}, 20)
		v := View{Step: 20, Ratio: s.Float("ratio", 0.5), Speed: []float64{100, float64(speed), 100, 100},
			Observed: []int{4, 4, 4, 4}, Moving: make([]bool, 20), Times: make([]int64, 20), Noise: s.Float("noise", 0)}
		for i := range 20 {
			v.Owner, v.Rows, v.Bytes = append(v.Owner, i%4), append(v.Rows, 100), append(v.Bytes, 100)
		}
		fmt.Fprintf(&s.out, "%d:", speed)
		for _, w := range x.Plan(v) {
			fmt.Fprintf(&s.out, " %d %d>%d", w.Split, w.From, w.To)
		}
		s.out.WriteString("\n")
	}
}

func (s *story) account() {
	number := func(i int) int64 { return int64(s.parse(s.D.CmdArgs[i].Key)) }
	switch s.D.Cmd {
	case "ledger":
		s.ledger = NewLedger(storytest.Numbers[int64](s.Args, "rows", nil), !s.D.HasArg("fixed"))
	case "merge":
		s.ledger.Merge(plan.SplitID(number(0)), number(1))
	case "drop":
		s.ledger.Drop(plan.SplitID(number(0)), number(1))
	case "restore":
		var all []Entry
		for _, a := range s.D.CmdArgs {
			var e Entry
			if _, err := fmt.Sscanf(a.Key, "%d/%d/%d/%d", &e.Cursor, &e.Merged, &e.Whole, &e.Dropped); err != nil {
				s.D.Fatalf(s.T, "%v", err)
			}
			all = append(all, e)
		}
		s.ledger.Restore(all)
	case "entries":
		for i, e := range s.ledger.Entries() {
			id := plan.SplitID(i)
			fmt.Fprintf(&s.out, "split %d of %d rows: cursor %d, merged %d, whole %d, dropped %d, process times %d\n",
				i, s.ledger.Rows(id), e.Cursor, e.Merged, e.Whole, e.Dropped, s.ledger.ProcessTimes(id))
		}
	default:
		s.D.Fatalf(s.T, "unknown command")
	}
}
