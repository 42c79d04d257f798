package tables_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/tables"
)

// virtual are the flags of a virtual cluster on which one slot of four has a third of the others' speed.
var virtual = []string{"--executors", "4", "--clock", "virtual", "--pace-rate", "1000", "--pace"}

// TestVirtualTimeRepeatsEveryModel: the bits, the waits and the times of each run are those of the run before, every
// update counts once, and exact models have the bits that they have on the real clock.
func TestVirtualTimeRepeatsEveryModel(t *testing.T) {
	t.Parallel()
	exact, err := run(t, args{Model: tables.BSP(), Clocks: clocks, Every: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range models() {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			told := func(law string) string {
				var took []time.Duration
				var last tables.Tick
				r, err := runWith(t, args{Model: m, Clocks: clocks, Every: 3}, func(tick *tables.Tick) error {
					took, last = append(took, tick.Took, tick.Busy, tick.Waited), *tick
					return nil
				}, nil, append(virtual, law)...)
				if err != nil || fmt.Sprint(r.counts) != fmt.Sprint(counted(clocks)) {
					t.Fatalf("the counts are %v, or %v", r.counts, err)
				}
				if ahead, stale := last.Ahead, last.Stale; ahead > int(m.Slack) || stale > int(m.Slack) ||
					m.Slack > 0 && ahead == 0 || m.Slack == 0 && stale != 0 {
					t.Errorf("workers were %d clocks ahead, reads %d behind", ahead, stale)
				}
				if m.Exact() && fmt.Sprint(r.sums) != fmt.Sprint(exact.sums) {
					t.Error("the bits are others than on the real clock")
				}
				return fmt.Sprint(r.sums, took)
			}
			for _, law := range []string{"static:1,1,1,0.3", "static:1,1,1,0.3+handling:100KB/s"} {
				if first, again := told(law), told(law); first != again {
					t.Errorf("%s: once\n%s\nand again\n%s", law, first, again)
				}
			}
		})
	}
}

// TestVirtualTimeIsThatOfTheLaw: under bsp a clock takes as long as the slowest slot does with its rows and the
// messages between; slack takes away what is waited for where slots are slow in turn, and not where one always is.
func TestVirtualTimeIsThatOfTheLaw(t *testing.T) {
	t.Parallel()
	took := func(m tables.Model, law string) (d time.Duration) {
		_, err := runWith(t, args{Model: m, Clocks: 60, Every: 60}, func(tick *tables.Tick) error {
			d = tick.Took
			return nil
		}, nil, append(virtual, law)...)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	// 400 rows in 7 splits: two of 57 or 58 rows a slot, 1000 rows a second
	even, slow := took(tables.BSP(), "static:1,1,1,1"), took(tables.BSP(), "static:1,1,1,0.25")
	if least := 60 * 114 * time.Millisecond; even < least || even > least*5/4 {
		t.Errorf("even slots take %v for 60 clocks, want about %v", even, least)
	}
	if r := slow.Seconds() / even.Seconds(); r < 1.9 || r > 4.1 {
		t.Errorf("with a slot of a quarter of the speed it takes %.2f times as long", r)
	}
	if r := took(tables.SSP(3), "static:1,1,1,0.25").Seconds() / slow.Seconds(); r < 0.95 || r > 1.05 {
		t.Errorf("with a slow slot slack makes it take %.2f times as long", r)
	}
	if r := took(tables.BSP(), "static:1,1,1,1+handling:100KB/s").Seconds() / even.Seconds(); r < 1.1 || r > 3 {
		t.Errorf("where slots write and read messages it takes %.2f times as long", r)
	}
	if d := took(tables.BSP(), "static:1,1,1,1+handling:1000GB/s"); d < even*95/100 || d > even*105/100 {
		t.Errorf("where messages take next to no time it takes %v in place of %v", d, even)
	}
	in := "disrupted:300:150ms:3"
	if r := took(tables.SSP(3), in).Seconds() / took(tables.BSP(), in).Seconds(); r > 0.9 {
		t.Errorf("with slots that are slow in turn slack makes it take %.2f times as long", r)
	}
}

// TestVirtualWorkersEndByTheirErrors, as on the real clock.
func TestVirtualWorkersEndByTheirErrors(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]string{"error": "it is a bad day", "panic": "a worse day", "row": "no row",
		"goexit": "runtime.Goexit"} {
		_, err := run(t, args{Model: tables.SSP(1), Clocks: clocks, Every: 3, Fail: how},
			append(virtual, "static:1,1,1,1")...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", how, err)
		}
	}
}
