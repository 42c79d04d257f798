package tables_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

const (
	helpedItems = 200 // of a worker's clock
	itemRows    = 16  // as many rows as one is worth
)

// helpedPlan has a table with a row for each worker and a column for each item: how often it was done.
type helpedPlan struct {
	done *tables.Table[int32]
	work tables.Work[string, int64, helpedState]
}

// helpedState is how often each item of the worker's was done, by whomever.
type helpedState struct{ Done []int32 }

// gift is what a helper is given, and what it makes: how often each item of the part was done.
type gift struct{ Done []int32 }

func buildHelped(g *rdd.Graph, slack int) (p helpedPlan) {
	data := rdd.Pack(rdd.Range(g, 0, records, 4), rdd.Splits(splits))
	p.done = tables.New[int32](g, "done", tables.Dense(splits, helpedItems), tables.SSP(slack))
	p.work = tables.HelpedWorker(data, p.clock, tables.Helping[string, int64, helpedState, gift, gift]{
		By: tables.DefaultHelp(), Give: p.give, Do: p.do, Take: p.take}, p.done)
	return p
}

func (p helpedPlan) clock(c *tables.Clock[string, int64, helpedState]) error {
	if c.State.Done == nil {
		c.State.Done = make([]int32, helpedItems)
	}
	done := p.done.In(c)
	done.Row(c.Worker())
	c.Share(helpedItems, func(from, to int) {
		for i := from; i < to; i++ {
			c.Worked(itemRows)
			c.State.Done[i]++
			done.Inc(c.Worker(), i, 1)
		}
	})
	for i, n := range c.State.Done {
		if int(n) != c.Number()+1 {
			return fmt.Errorf("item %d of worker %d was done %d times by clock %d", i, c.Worker(), n, c.Number())
		}
	}
	if c.Param == "twice" {
		c.Share(1, func(int, int) {})
	}
	return nil
}

func (p helpedPlan) give(c *tables.Clock[string, int64, helpedState], part tables.Part) gift {
	return gift{slices.Clone(c.State.Done[part.From:part.To])}
}

func (p helpedPlan) do(c *tables.Clock[string, int64, helpedState], part tables.Part, given gift) gift {
	switch c.Param {
	case "table":
		p.done.In(c)
	case "panic":
		panic("it is a bad helper")
	case "goexit":
		runtime.Goexit()
	}
	for i := range given.Done {
		c.Worked(itemRows)
		given.Done[i]++
	}
	return given
}

func (p helpedPlan) take(c *tables.Clock[string, int64, helpedState], part tables.Part, made gift) {
	done := p.done.In(c)
	for i, n := range made.Done {
		at := part.From + i
		done.Inc(c.Worker(), at, n-c.State.Done[at])
		c.State.Done[at] = n
	}
}

// helped runs workers for a number of clocks, and returns how often items were done, and the last tick's times.
func helped(t *testing.T, slack, n int, param string, flags ...string) (counts []int32, last tables.Tick, err error) {
	t.Helper()
	cfg, err := volley.ParseConfig(append(flags, "--data-dir", t.TempDir())...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = volley.Run(context.Background(), cfg, "test", slack, buildHelped,
		func(ctx context.Context, s *rdd.Session, _ int, p helpedPlan) (string, error) {
			for tick, err := range p.work.Clocks(ctx, s, param, n, 2) {
				if err != nil {
					return "", err
				}
				counts, last = nil, *tick
				for w := range splits {
					counts = append(counts, p.done.At(tick, w).Values...)
				}
				if slices.ContainsFunc(counts, func(n int32) bool { return int(n) != tick.Clock }) {
					return "", fmt.Errorf("after clock %d items were done %v times", tick.Clock, counts)
				}
			}
			return "", nil
		})
	return counts, last, err
}

// TestHelpersTakeWorkFromTheSlow: on a virtual cluster of which one slot has a third of the speed, items count once
// wherever they are done, a clock takes less than the slow one would need alone, and it is the same again.
func TestHelpersTakeWorkFromTheSlow(t *testing.T) {
	t.Parallel()
	took := func(slack int, flags ...string) (string, tables.Tick) {
		counts, last, err := helped(t, slack, 30, "", flags...)
		if err != nil || len(counts) != splits*helpedItems {
			t.Fatalf("%d counts, %v", len(counts), err)
		}
		return fmt.Sprint(last.Took, last.Busy, last.Waited, last.Helped), last
	}
	flags := []string{"--executors", "7", "--slots", "1", "--clock", "virtual", "--pace-rate", "160000", "--pace",
		"static:1,1,1,1,1,1,0.33"}
	for _, slack := range []int{0, 1, 3} {
		first, last := took(slack, flags...)
		if again, _ := took(slack, flags...); first != again {
			t.Errorf("slack %d: %s, and again %s", slack, first, again)
		}
		alone := 30 * helpedItems * time.Second / 3300
		if r := last.Took.Seconds() / alone.Seconds(); r > 0.65 || last.HelpedShare() < 0.04 {
			t.Errorf("slack %d: %.2f of the time that the slow one needs alone, helped %.3f", slack, r,
				last.HelpedShare())
		}
	}
	if _, last := took(1, append(flags[:len(flags)-1], "static:1,1,1,1,1,1,1")...); last.HelpedShare() > 0.02 {
		t.Errorf("even workers help each other with %.3f of their items", last.HelpedShare())
	}
}

// TestHelpersOnTheRealClock: more workers than slots, and slots that differ.
func TestHelpersOnTheRealClock(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{
		{"--executors", "1", "--slots", "2"}, {"--executors", "3", "--slots", "2"},
		{"--executors", "7", "--slots", "1"},
		{"--executors", "2", "--slots", "1", "--pace-rate", "320000", "--pace", "static:1,0.2"},
	} {
		_, last, err := helped(t, 1, 12, "", flags...)
		if err != nil || last.Clock != 12 {
			t.Errorf("%v: clock %d, %v", flags, last.Clock, err)
		}
		if strings.HasPrefix(flags[len(flags)-1], "static") && last.Helped == 0 {
			t.Errorf("%v: none is helped", flags)
		}
	}
}

// TestHelpersThatDoWhatTheyMayNotEndTheRun names what they have done.
func TestHelpersThatDoWhatTheyMayNotEndTheRun(t *testing.T) {
	t.Parallel()
	flags := []string{"--executors", "7", "--slots", "1", "--clock", "virtual", "--pace-rate", "160000", "--pace",
		"static:1,1,1,1,1,1,0.33"}
	alone := []string{"--executors", "1", "--slots", "1"} // who helps is another worker of the slot that waits
	for param, want := range map[string]string{"table": "uses a table", "panic": "bad helper", "twice": "items twice",
		"goexit": "goroutine has ended"} {
		for _, flags := range [][]string{flags, alone} {
			if _, _, err := helped(t, 1, 30, param, flags...); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %v: %v", param, flags, err)
			}
		}
	}
}
