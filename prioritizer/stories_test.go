package prioritizer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/volley-engine/volley/internal/plan"
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
			s.t, s.d = t, d
			s.out.Reset()
			s.do()
			return s.out.String()
		})
	})
}

type story struct {
	t      *testing.T
	d      *datadriven.TestData
	x      *Exchange
	v      View
	ledger *Ledger
	out    strings.Builder
}

func (s *story) vals(key string) []string {
	for _, a := range s.d.CmdArgs {
		if a.Key == key {
			return a.Vals
		}
	}
	return nil
}

func (s *story) parse(v string) float64 {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil {
		s.d.Fatalf(s.t, "%v", err)
	}
	return f
}

func (s *story) float(key string, other float64) float64 {
	if v := s.vals(key); len(v) > 0 {
		return s.parse(v[0])
	}
	return other
}

// floats are the numbers of a list, or other ones where there is no list.
func floats[T int | int64 | float64](s *story, key string, other []T) (out []T) {
	if !s.d.HasArg(key) {
		return other
	}
	for _, v := range s.vals(key) {
		n, times, more := strings.Cut(v, "*")
		if !more {
			times = "1"
		}
		for range int(s.parse(times)) {
			out = append(out, T(s.parse(n)))
		}
	}
	return out
}

func (s *story) do() {
	switch s.d.Cmd {
	case "exchange":
		mode := Random
		if name := s.vals("mode")[0]; name != "random" {
			var err error
			if mode, err = ParseMode(name); err != nil {
				s.d.Fatalf(s.t, "%v", err)
			}
		}
		s.x = NewExchange(ExchangeConfig{Mode: mode, Threshold: int64(s.float("threshold", 0)),
			Interval: int(s.float("every", 0)), Bandwidth: s.float("bandwidth", 0), Horizon: int(s.float("horizon", 0)),
			Seed: uint64(s.float("seed", 0))}, int(s.float("splits", 0)))
		s.v = View{Ratio: 0.5}
	case "plan":
		s.look()
		for range int(s.float("steps", 1)) {
			s.plan()
		}
	case "slower":
		s.slower()
	case "forecast":
		f := &forecast{ratio: s.float("ratio", 0), load: floats[float64](s, "load", nil),
			speed: floats[float64](s, "speed", nil)}
		for _, l := range f.load {
			f.rows += l
		}
		score, t := f.score()
		if s.d.HasArg("exact") {
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
	v.Step, v.Ratio, v.Noise = int(s.float("step", float64(v.Step+1)))-1, s.float("ratio", v.Ratio),
		s.float("noise", v.Noise)
	v.Owner, v.Rows, v.Bytes, v.Times = floats(s, "owner", v.Owner), floats(s, "rows", v.Rows),
		floats(s, "bytes", v.Bytes), floats(s, "times", v.Times)
	v.Speed, v.Observed = floats(s, "speed", v.Speed), floats(s, "observed", v.Observed)
	n := len(v.Owner)
	v.Moving = make([]bool, n)
	for _, i := range floats[int](s, "moving", nil) {
		v.Moving[i] = true
	}
	if v.Times == nil {
		v.Times = make([]int64, n)
	}
	if v.Bytes == nil {
		v.Bytes = v.Rows
	}
	held := s.vals("held")
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
		if !s.d.HasArg("stay") {
			s.v.Owner[w.Split] = w.To
		}
	}
}

func (s *story) slower() {
	for speed := 100; speed >= 20; speed -= 4 {
		x := NewExchange(ExchangeConfig{Mode: Rate}, 20)
		v := View{Step: 20, Ratio: s.float("ratio", 0.5), Speed: []float64{100, float64(speed), 100, 100},
			Observed: []int{4, 4, 4, 4}, Moving: make([]bool, 20), Times: make([]int64, 20), Noise: s.float("noise", 0)}
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
	number := func(i int) int64 { return int64(s.parse(s.d.CmdArgs[i].Key)) }
	switch s.d.Cmd {
	case "ledger":
		s.ledger = NewLedger(floats[int64](s, "rows", nil), !s.d.HasArg("fixed"))
	case "merge":
		s.ledger.Merge(plan.SplitID(number(0)), number(1))
	case "drop":
		s.ledger.Drop(plan.SplitID(number(0)), number(1))
	case "restore":
		var all []Entry
		for _, a := range s.d.CmdArgs {
			var e Entry
			if _, err := fmt.Sscanf(a.Key, "%d/%d/%d/%d", &e.Cursor, &e.Merged, &e.Whole, &e.Dropped); err != nil {
				s.d.Fatalf(s.t, "%v", err)
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
		s.d.Fatalf(s.t, "unknown command")
	}
}
