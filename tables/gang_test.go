package tables

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
)

const (
	gangRows, gangColumns = 41, 6
	gangWorkers           = 6
	gangClocks            = 8
	gangEvery             = 2
)

// tallies are a program on two tables, as each process has it: counts, and sums whose bits depend on the order.
type tallies struct {
	Work[float64, int64, tallied]
	counts *Table[int32]
	sums   *Table[float64]
}

// tallied is how often a worker has seen each row.
type tallied struct{ Seen []int32 }

func tally(m Model) *tallies {
	g := &rdd.Graph{}
	p := &tallies{counts: New[int32](g, "counts", Sparse(0, 0), m), sums: New[float64](g, "sums", Dense(0, 0), m)}
	p.Work = Work[float64, int64, tallied]{tables: []anyTable{p.counts, p.sums}, do: p.clock}
	return p
}

func (p *tallies) clock(c *Clock[float64, int64, tallied]) error {
	if c.State.Seen == nil {
		c.State.Seen = make([]int32, gangRows)
	}
	counts, sums := p.counts.In(c), p.sums.In(c)
	var err error
	all := slices.Collect(c.Rows())
	c.Share(len(all), func(from, to int) {
		for _, x := range all[from:to] {
			row, column := int(x*7+int64(c.Number())*11)%gangRows, int(x)%gangColumns
			if before := counts.Row(row).At(column); before < c.State.Seen[row]/gangColumns {
				err = fmt.Errorf("row %d has %d, and this worker alone has added %d", row, before, c.State.Seen[row])
			}
			counts.Inc(row, column, 1)
			c.State.Seen[row]++
			sums.Inc((row+1)%gangRows, column, c.Param/float64(3+x)+sums.Row(row).At(column)/1e3)
		}
	})
	return err
}

// helpedTally is a program whose workers do parts of one another's clocks, as much as can be.
func helpedTally(m Model) *tallies {
	p := tally(m)
	by := DefaultHelp()
	by.Progress, by.Trigger, by.First, by.Checks = 0.1, 1e-9, 0.3, 20
	p.help = encoding(Helping[float64, int64, tallied, []int64, []int64]{By: by,
		Give: func(c *Clock[float64, int64, tallied], part Part) []int64 {
			return slices.Collect(c.Rows())[part.From:part.To]
		},
		Do: func(_ *Clock[float64, int64, tallied], part Part, given []int64) []int64 {
			for i, x := range given {
				given[i] = int64(int(x*7+int64(part.Clock)*11)%gangRows*gangColumns) + x%gangColumns
			}
			return given
		},
		Take: func(c *Clock[float64, int64, tallied], _ Part, made []int64) {
			for _, cell := range made {
				p.counts.In(c).Inc(int(cell)/gangColumns, int(cell)%gangColumns, 1)
				c.State.Seen[cell/gangColumns]++
			}
		},
	})
	return p
}

// tallyRows are the rows of splits.
type tallyRows struct{ source[int64] }

func (tallyRows) Rows(split int) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		for i := range int64(20 + split) {
			if !yield(int64(split)*100+i, nil) {
				return
			}
		}
	}
}

// tallyCounts returns how often each row is to be seen.
func tallyCounts() (all [gangRows]int32) {
	for split := range gangWorkers {
		for x := range (tallyRows{}).Rows(split) {
			for clock := range int64(gangClocks) {
				all[int(x*7+clock*11)%gangRows]++
			}
		}
	}
	return all
}

// network is a gang whose members are goroutines. What one sends another arrives in its order, and cut into pieces;
// whose message comes next is drawn.
type network struct {
	mu      sync.Mutex
	some    *sync.Cond
	rng     *rand.Rand
	members int
	pairs   map[[2]int][][]byte
	in      map[int][]sent
	gone    error // why the leader hears of no one any more
	grows   bool
	timeout time.Duration // without a sign of a worker
	left    int           // deliveries until a member is lost; negative is never
	over    bool
	all     sync.WaitGroup
}

// Of the tables here a clock is several batches.
func init() { batchBytes, partFull = 60, 100 }

// gather begins members of a program's.
func gather(rng *rand.Rand, members, left int, program func() *tallies) *network {
	n := &network{rng: rng, members: members, left: left, pairs: map[[2]int][][]byte{}, in: map[int][]sent{}}
	n.some = sync.NewCond(&n.mu)
	for k := range members {
		n.all.Go(func() {
			from := &early{Member: &rdd.Member{Number: k, Slots: 2, Send: n.sender(k), Recv: n.receiver(k),
				Fail: n.fail}}
			p := program()
			r, b, err := p.joined(from)
			if err == nil {
				err = p.serve(r, b, from, tallyRows{})
			}
			if ofTheEnd(err) != nil {
				n.fail(err)
			}
		})
	}
	n.all.Go(n.deliver)
	return n
}

func (n *network) sender(from int) func(int, []byte) error {
	return func(to int, message []byte) error {
		n.mu.Lock()
		defer n.mu.Unlock()
		pair := [2]int{from, to}
		whole := from == rdd.Leader && n.pairs[pair] == nil // what a member begins with
		for rest := bytes.Clone(message); len(rest) > 0; {
			piece := rest
			if !whole && len(rest) > 1 && n.rng.IntN(3) == 0 {
				piece = rest[:1+n.rng.IntN(len(rest)-1)]
			}
			n.pairs[pair] = append(n.pairs[pair], piece)
			rest = rest[len(piece):]
		}
		n.some.Broadcast()
		return nil
	}
}

// deliver moves messages to where they go, until the end.
func (n *network) deliver() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for !n.over {
		var full [][2]int
		for pair, waiting := range n.pairs {
			if len(waiting) > 0 {
				full = append(full, pair)
			}
		}
		if len(full) == 0 {
			n.some.Wait()
			continue
		}
		slices.SortFunc(full, func(a, b [2]int) int { return (a[0]-b[0])*100 + a[1] - b[1] })
		pair := full[n.rng.IntN(len(full))]
		n.in[pair[1]] = append(n.in[pair[1]], sent{pair[0], n.pairs[pair][0]})
		n.pairs[pair] = n.pairs[pair][1:]
		if n.left--; n.left == 0 && n.gone == nil {
			n.gone = fault.Newf(fault.ExecutorLost, "hear from", "a member", "it is gone")
		}
		n.some.Broadcast()
		n.mu.Unlock()
		n.mu.Lock()
	}
}

func (n *network) receiver(of int) func() (int, []byte, error) {
	return func() (int, []byte, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for {
			switch {
			case n.over:
				return 0, nil, fault.Newf(fault.Cancelled, "go on with", "the test", "it has ended")
			case of == rdd.Leader && n.gone != nil:
				return 0, nil, n.gone
			case len(n.in[of]) > 0:
				s := n.in[of][0]
				n.in[of] = n.in[of][1:]
				return s.from, s.piece, nil
			}
			n.some.Wait()
		}
	}
}

func (n *network) fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.gone == nil {
		n.gone = err
	}
	n.some.Broadcast()
}

func (n *network) Slots() []int { return slices.Repeat([]int{2}, n.members) }

func (n *network) Homes() (all []int) {
	for k := range gangWorkers {
		all = append(all, k*7%n.members)
	}
	return all
}

func (n *network) Names() (all []string) {
	for k := range n.members {
		all = append(all, fmt.Sprint("member ", k))
	}
	return all
}

func (n *network) Timeout() time.Duration { return cmp.Or(n.timeout, 30*time.Second) }

func (n *network) Send(to int, m []byte) error { return n.sender(rdd.Leader)(to, m) }

func (n *network) Recv() (int, []byte, error) { return n.receiver(rdd.Leader)() }

// Grown reports whether the test has another member, as it has at some ticks.
func (n *network) Grown() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.grows && n.rng.IntN(3) == 0
}

func (n *network) Close() {
	n.mu.Lock()
	n.over = true
	n.some.Broadcast()
	n.mu.Unlock()
}

// ticks runs a program to its end, and returns what it is after each tick; gang is nil for one process.
func (p *tallies) ticks(t *testing.T, gang func(context.Context, error) (rdd.Gang, error)) (all [][]byte,
	restarts, helped int) {
	t.Helper()
	p.counts.Reshape(gangRows, gangColumns)
	p.sums.Reshape(gangRows, gangColumns)
	c := &clocks[float64, int64, tallied]{Work: p.Work, param: 0.5, clocks: gangClocks, every: gangEvery,
		workers: gangWorkers, gang: gang}
	ctx, end := context.WithTimeout(context.Background(), time.Minute)
	defer end()
	defer c.close()
	if gang == nil {
		r, err := c.restored(castOf(gangWorkers, 1, 1), everyone)
		if err == nil {
			err = c.employ(r, nil, c.param, tallyRows{})
		}
		if err != nil {
			t.Fatal(err)
		}
		r.mayLead()
		r.start()
		c.run = r
	}
	for clock := gangEvery; clock <= gangClocks; clock += gangEvery {
		m, err := c.take(ctx, clock)
		if err != nil {
			t.Fatal(err)
		}
		c.at = progress{Clock: m.clock, States: m.states, tables: c.run.tables, of: m}
		raw, err := c.at.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, raw)
		possible(t, c, m)
		p.newest(ctx, t, c, m)
	}
	tick := &Tick{run: c.run, of: c.at.of}
	tallied := tallyCounts()
	for row := range gangRows {
		seen, counted := int32(0), int32(0)
		for w := range gangWorkers {
			s, err := p.StateAt(tick, w)
			if err != nil {
				t.Fatal(err)
			}
			seen += s.Seen[row]
		}
		for _, x := range p.counts.At(tick, row).Values {
			counted += x
		}
		if seen != counted || counted != tallied[row] {
			t.Fatalf("workers have seen row %d %d times, the table has %d of %d", row, seen, counted, tallied[row])
		}
	}
	return all, c.restarts, c.spent().helped
}

// TestMembersComeToWhatOneProcessComesTo has the machines in several processes, whose messages come in any order, and
// of which some are lost: exact tables have the bits of one process after each tick, others count each update once.
func TestMembersComeToWhatOneProcessComesTo(t *testing.T) {
	for _, m := range []Model{BSP(), SSP(0), SSP(2), ASP(), CAP(1), VAP(3, false), CVAP(1, 3, true)} {
		program := func() *tallies { return tally(m) }
		want, _, _ := program().ticks(t, nil)
		lost := 0
		for seed := range uint64(12) {
			rng := rand.New(rand.NewPCG(seed, 1))
			var nets []*network
			got, restarts, _ := program().ticks(t, func(context.Context, error) (rdd.Gang, error) {
				left := -1
				if len(nets) < 3 && seed%2 == 1 {
					left = 1 + rng.IntN(400)
				}
				n := gather(rand.New(rand.NewPCG(seed, uint64(len(nets)))), 1+rng.IntN(4), left, program)
				n.grows = seed%3 == 0
				nets = append(nets, n)
				return n, nil
			})
			for _, n := range nets {
				n.all.Wait()
			}
			if lost += restarts; m.Exact() && !slices.EqualFunc(got, want, bytes.Equal) {
				t.Errorf("%v, seed %d: after %d restarts it is not what one process comes to", m, seed, restarts)
			}
		}
		if lost < 3 {
			t.Errorf("%v: %d members were lost in all", m, lost)
		}
	}
}

// TestMembersHelpEachOther has workers of several processes do parts of one another's clocks, whose messages come in
// any order and of whom some are lost: each row counts once in each clock.
func TestMembersHelpEachOther(t *testing.T) {
	helped, lost := 0, 0
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 2))
		program := func() *tallies { return helpedTally(SSP(int(seed % 3))) }
		var nets []*network
		_, restarts, did := program().ticks(t, func(context.Context, error) (rdd.Gang, error) {
			left := -1
			if len(nets) < 2 && seed%3 == 1 {
				left = 1 + rng.IntN(600)
			}
			nets = append(nets, gather(rand.New(rand.NewPCG(seed, uint64(len(nets)))), 1+rng.IntN(4), left, program))
			return nets[len(nets)-1], nil
		})
		for _, n := range nets {
			n.all.Wait()
		}
		helped, lost = helped+did, lost+restarts
	}
	if helped < 100 || lost < 3 {
		t.Errorf("helpers have done %d items, %d members were lost", helped, lost)
	}
}

func ofBSP() *tallies { return tally(BSP()) }

// firstTick waits for the first tick of a program on gangs, and returns how many were begun and why there is none.
func firstTick(t *testing.T, next func() *network) (begun int, err error) {
	p := tally(BSP())
	p.counts.Reshape(gangRows, gangColumns)
	p.sums.Reshape(gangRows, gangColumns)
	c := &clocks[float64, int64, tallied]{Work: p.Work, clocks: 4, every: 1, workers: gangWorkers,
		gang: func(context.Context, error) (rdd.Gang, error) {
			begun++
			return next(), nil
		}}
	defer c.close()
	_, err = c.take(t.Context(), 1)
	return begun, err
}

// TestARunOfMembersEndsWithWhatOneSays has a member's error end the run, and it is not begun again.
func TestARunOfMembersEndsWithWhatOneSays(t *testing.T) {
	begun, err := firstTick(t, func() *network {
		n := gather(rand.New(rand.NewPCG(1, 1)), 2, -1, ofBSP)
		n.fail(fault.Newf(fault.UserCode, "run", "a clock", "it is wrong"))
		return n
	})
	if fault.KindOf(err) != fault.UserCode || begun != 1 {
		t.Errorf("%v after %d runs", err, begun)
	}
}

// TestAMembersFailureIsToldBeforeItsOtherWorkersHaveEnded: of its two slots' workers one fails, and the other is in a
// clock until the job's process knows.
func TestAMembersFailureIsToldBeforeItsOtherWorkersHaveEnded(t *testing.T) {
	known := make(chan struct{})
	program := func() *tallies {
		p := ofBSP()
		p.Work.do = func(c *Clock[float64, int64, tallied]) error {
			if c.Worker() == 0 {
				return errors.New("it is wrong")
			}
			<-known
			return nil
		}
		return p
	}
	told := make(chan error, 1)
	go func() {
		_, err := firstTick(t, func() *network {
			n := gather(rand.New(rand.NewPCG(1, 1)), 1, -1, program)
			n.timeout = time.Hour
			return n
		})
		told <- err
	}()
	select {
	case err := <-told:
		if fault.KindOf(err) != fault.UserCode || !strings.Contains(err.Error(), "it is wrong") {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the job's process does not hear of it")
	}
	close(known)
}

// TestLossesWithoutProgressEnd has a run given up whose members are lost again and again.
func TestLossesWithoutProgressEnd(t *testing.T) {
	begun, err := firstTick(t, func() *network { return gather(rand.New(rand.NewPCG(1, 1)), 2, 1, ofBSP) })
	if fault.KindOf(err) != fault.ExecutorLost || begun != mostLosses {
		t.Errorf("%v after %d runs", err, begun)
	}
}
