package rdd

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/storage/shuffle"
)

// uneven is a cluster of executors in this process whose tasks have the memory of
// their executor. Tasks go to the executors that are up in turn; before each of
// them a test may do harm.
type uneven struct {
	*frail
	memories []int // by executor
	down     map[int]bool
	before   func(u *uneven, node, part int)
	next     int
	outputs  map[shuffle.Key][]uint64 // digests of the rows of map outputs, by partition; attempts are left out
}

func newUneven(t *testing.T, g *Graph, memories ...int) *uneven {
	return &uneven{frail: newFrail(t, g, len(memories), 1), memories: memories, down: map[int]bool{},
		outputs: map[shuffle.Key][]uint64{}}
}

// kill takes an executor down for good, with all that it holds.
func (u *uneven) kill(e int) {
	u.revive(e)
	u.down[e] = true
}

// place is the executor of the next task.
func (u *uneven) place() int {
	for {
		u.next++
		if e := (u.next - 1) % len(u.stores); !u.down[e] {
			return e
		}
	}
}

// RunCall runs tasks one after the other.
func (u *uneven) RunCall(ctx context.Context, c plan.CallRequest) ([][]byte, []error, error) {
	data, lost := make([][]byte, len(c.Args)), make([]error, len(c.Args))
	for i := range c.Args {
		part := c.Partitions[i]
		if u.before != nil {
			u.before(u, c.Node, part)
		}
		raw, err := u.g.Task(ctx, c.Node, part, c.Args[i], unevenPacks{frailPacks{u.frail, u.place()}, u})
		if fault.InputLost(err) {
			lost[i] = err
		} else if err != nil {
			return nil, nil, err
		}
		data[i] = raw
	}
	return data, lost, nil
}

// unevenPacks is what a task on one executor reaches.
type unevenPacks struct {
	frailPacks
	u *uneven
}

func (p unevenPacks) Memory() int { return p.u.memories[p.on] }

func (p unevenPacks) NewMapOutput(partitions int) *shuffle.Writer {
	return p.u.stores[p.on].NewWriter(partitions, p.Memory()/8)
}

// KeepShuffle notes what rows an output has.
func (p unevenPacks) KeepShuffle(key shuffle.Key, b *shuffle.Output) plan.ExecutorID {
	if p.u.g.node(key.Node).kind != "combine-by-key" { // whose keys come in no order, each with what it has come to
		p.u.outputs[shuffle.Key{Node: key.Node, Map: key.Map}] = rowDigests(p.u.t, b)
	}
	return p.frailPacks.KeepShuffle(key, b)
}

// rowDigests are digests of the rows of each partition, however they lie in blocks.
func rowDigests(t *testing.T, b *shuffle.Output) (out []uint64) {
	for part := range b.Len() {
		in, err := b.Open(shuffle.Span{From: part, Through: part + 1})
		if err != nil {
			t.Fatal(err)
		}
		h := fnv.New64a()
		for r := shuffle.NewBlockReader(in); ; {
			block, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			h.Write(block)
		}
		in.Close()
		out = append(out, h.Sum64())
	}
	return out
}

// Memories of tasks: one that holds nothing of what the tests have, one that holds
// most, and one that holds all.
var someMemories = []int{1 << 14, 1 << 18, 1 << 30}

// orderedPlan is an action whose rows are compared in their order.
type orderedPlan struct {
	name  string
	build func(g *Graph, l, r Dataset[kv]) Action[[]string]
}

// inOrder collects rows as text.
func inOrder[T any](ds Dataset[T]) Action[[]string] {
	return Collect(Map(ds, func(row T) string { return fmt.Sprintf("%+v", row) }))
}

// textOfJoined are joined rows without pointers.
func textOfJoined(p joined) string {
	if p.Value.Right == nil {
		return fmt.Sprint(p.Key, p.Value.Left, "none")
	}
	return fmt.Sprint(p.Key, p.Value.Left, *p.Value.Right)
}

// someTenths are fractions whose sum depends on how they are bracketed.
func someTenths(l Dataset[kv]) Dataset[Pair[string, float64]] {
	return MapValues(l, func(v int64) float64 { return float64(v*v) / 7 * float64(1+v%3*1000003) })
}

// orderedPlans are all operations that move rows, or whose rows depend on an order.
func orderedPlans() []orderedPlan {
	add := func(a, b int64) int64 { return a + b }
	join := func(l, r Dataset[kv]) Dataset[Pair[string, Joined[int64, int64]]] { return Join(l, r, Partitions(3)) }
	return []orderedPlan{
		{"join", func(_ *Graph, l, r Dataset[kv]) Action[[]string] { return inOrder(join(l, r)) }},
		{"join, partitions by size", func(_ *Graph, l, r Dataset[kv]) Action[[]string] { return inOrder(Join(l, r)) }},
		{"join in place", func(_ *Graph, l, r Dataset[kv]) Action[[]string] {
			return inOrder(Join(ReduceByKey(l, add, Partitions(3)), PartitionBy(r, HashPartitioner[string](3))))
		}},
		{"broadcast join", func(_ *Graph, l, r Dataset[kv]) Action[[]string] { return inOrder(BroadcastJoin(l, r)) }},
		{"left join", func(_ *Graph, l, r Dataset[kv]) Action[[]string] {
			return Collect(Map(LeftJoin(l, r, Partitions(3)), textOfJoined))
		}},
		{"full join", func(_ *Graph, l, r Dataset[kv]) Action[[]string] {
			return Collect(Map(FullJoin(l, r, Partitions(3)), func(p Pair[string, Joined[*int64, *int64]]) string {
				return fmt.Sprint(p.Key, p.Value.Left != nil, p.Value.Right != nil)
			}))
		}},
		{"repartitioned join", func(_ *Graph, l,
			r Dataset[kv]) Action[[]string] {
			return inOrder(Repartition(join(l, r), 4))
		}},
		{"sample of a join", func(_ *Graph, l, r Dataset[kv]) Action[[]string] {
			return inOrder(Sample(join(l, r), 0.3,
				1))
		}},
		{"numbered join", func(_ *Graph, l, r Dataset[kv]) Action[[]string] {
			return inOrder(ZipWithIndex(join(l,
				r)))
		}},
		{"kept join", func(_ *Graph, l, r Dataset[kv]) Action[[]string] { return inOrder(Cache(join(l, r))) }},
		{"group", func(_ *Graph, l, _ Dataset[kv]) Action[[]string] { return inOrder(GroupByKey(l, Partitions(3))) }},
		{"cogroup", func(_ *Graph, l, r Dataset[kv]) Action[[]string] { return inOrder(CoGroup(l, r, Partitions(3))) }},
		{"subtract", func(_ *Graph, l, r Dataset[kv]) Action[[]string] {
			return inOrder(SubtractByKey(l, r,
				Partitions(3)))
		}},
		{"distinct", func(_ *Graph, l, _ Dataset[kv]) Action[[]string] { return inOrder(Distinct(l, Partitions(3))) }},
		{"distinct, partitions by size", func(_ *Graph, l, _ Dataset[kv]) Action[[]string] {
			return inOrder(Glom(Distinct(Keys(l))))
		}},
		{"sums of fractions", func(_ *Graph, l, _ Dataset[kv]) Action[[]string] {
			return inOrder(ReduceByKey(someTenths(l), func(a, b float64) float64 { return a + b }, Partitions(3)))
		}},
		{"texts put together", func(_ *Graph, l, _ Dataset[kv]) Action[[]string] {
			all := AggregateByKey(l, func() string { return "" },
				func(s string, v int64) string { return fmt.Sprint(s, v) },
				func(a, b string) string { return a + "/" + b }, Partitions(3))
			return inOrder(all)
		}},
		{"sort", func(_ *Graph, l, _ Dataset[kv]) Action[[]string] { return inOrder(SortByKey(l, Partitions(3))) }},
		{"partition and sort", func(_ *Graph, l, _ Dataset[kv]) Action[[]string] {
			return inOrder(RepartitionAndSort(l, HashPartitioner[string](3)))
		}},
		{"dealt out sums of fractions", func(_ *Graph, l, _ Dataset[kv]) Action[[]string] {
			return inOrder(Repartition(ReduceByKey(someTenths(l), func(a, b float64) float64 { return a + b },
				Partitions(3)), 4))
		}},
		{"partition", func(_ *Graph, l, _ Dataset[kv]) Action[[]string] {
			return inOrder(PartitionBy(l, HashPartitioner[string](3)))
		}},
	}
}

// seeded is a source of random numbers.
func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// orderedRows is what a plan comes to where tasks have so much memory, and what its
// map tasks have written.
func orderedRows(t *testing.T, p orderedPlan, task, session int) ([]string, map[shuffle.Key][]uint64) {
	g := NewGraph()
	l := Parallelize(g, 5, somePairs(seeded(1), 6000, 900)...)
	r := Parallelize(g, 4, somePairs(seeded(2), 3000, 700)...)
	a := p.build(g, l, r)
	if g.Err() != nil {
		t.Fatal(g.Err())
	}
	u := newUneven(t, g, task)
	rows, err := a.Run(context.Background(), NewSession(g, u, Config{TaskMemory: session}))
	if err != nil {
		t.Fatal(err)
	}
	return rows, u.outputs
}

// TestMemoryOfTasksChangesNoOrder: the rows of every operation come in one order,
// and are the same to the bit, whatever memory the tasks have that make them.
func TestMemoryOfTasksChangesNoOrder(t *testing.T) {
	for _, p := range orderedPlans() {
		t.Run(p.name, func(t *testing.T) {
			want, _ := orderedRows(t, p, someMemories[len(someMemories)-1], 1<<10)
			for _, memory := range someMemories[:len(someMemories)-1] {
				if got, _ := orderedRows(t, p, memory, 1<<10); !slices.Equal(got, want) {
					t.Errorf("%d rows with %d bytes of memory, %d with all: %s", len(got), memory, len(want),
						difference(got, want))
				}
			}
		})
	}
}

// TestMemoryOfTheSessionChangesNoOrder: nor does that which the session was told of.
func TestMemoryOfTheSessionChangesNoOrder(t *testing.T) {
	for _, p := range orderedPlans() {
		t.Run(p.name, func(t *testing.T) {
			want, _ := orderedRows(t, p, 1<<30, someMemories[len(someMemories)-1])
			for _, memory := range someMemories[:len(someMemories)-1] {
				if got, _ := orderedRows(t, p, 1<<30, memory); !slices.Equal(got, want) {
					t.Errorf("%d rows where the session has %d bytes, %d with more: %s", len(got), memory, len(want),
						difference(got, want))
				}
			}
		})
	}
}

// TestMemoryChangesNoMapOutput: what a map task writes into each partition is the same
// whatever memory it has, so that an output that is made again elsewhere can take the
// place of the one that was lost.
func TestMemoryChangesNoMapOutput(t *testing.T) {
	for _, p := range orderedPlans() {
		t.Run(p.name, func(t *testing.T) {
			_, want := orderedRows(t, p, someMemories[len(someMemories)-1], 1<<10)
			for _, memory := range someMemories[:len(someMemories)-1] {
				_, got := orderedRows(t, p, memory, 1<<10)
				for key, digests := range want {
					if !slices.Equal(got[key], digests) {
						t.Errorf("with %d bytes of memory map task %d of node %d writes other rows", memory, key.Map,
							key.Node)
						break
					}
				}
			}
		})
	}
}

// difference says where rows are others.
func difference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("row %d is %.60s, want %.60s", i, got[i], want[i])
		}
	}
	return fmt.Sprintf("%d rows, want %d", len(got), len(want))
}

// TestMemoryChangesNoPartitions: which small partitions are read together is decided by
// sizes, and these are the same whatever memory map tasks have had to combine in.
func TestMemoryChangesNoPartitions(t *testing.T) {
	partitions := func(memory int) []int {
		g := NewGraph()
		keys := Map(Range(g, 0, 30_000, 2), func(i int64) string { return fmt.Sprintf("%0300d", i%5000) })
		action := Collect(Map(Glom(Distinct(keys)), func(rows []string) int { return len(rows) }))
		rows, err := action.Run(context.Background(), NewSession(g, newUneven(t, g, memory), Config{}))
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	want := partitions(1 << 30)
	for _, memory := range someMemories {
		if got := partitions(memory); !slices.Equal(got, want) {
			t.Errorf("with %d bytes of memory partitions have %v rows, want %v", memory, got, want)
		}
	}
}
