package rdd

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/volley-engine/volley/internal/plan"
)

// fabricated is a cluster of executors whose tasks say what they would have made: what it
// costs is what the session costs.
type fabricated struct {
	Cluster   // what shuffles do not need
	g         *Graph
	executors int
	parts     int // of each output
	maps      int
	looked    func()     // called when the tasks that read the shuffle are handed out
	args      [2]int     // bytes of the arguments of map tasks, and of others
	tasks     [2]float64 // how many those were
}

// Shuffled notes nothing.
func (f *fabricated) Shuffled(plan.Shuffled) {}

// RunCall answers each task without running it.
func (f *fabricated) RunCall(_ context.Context, c plan.CallRequest) ([][]byte, []error, error) {
	kind := 1
	if f.g.node(c.Node).shuffle != nil {
		kind = 0
	} else if f.looked != nil {
		f.looked()
	}
	data := make([][]byte, len(c.Args))
	for i, a := range c.Args {
		f.args[kind] += len(a)
		f.tasks[kind]++
		said := taskResult{}
		var err error
		if kind == 0 {
			said.Output = f.output(c.Partitions[i])
		} else {
			said.Data, err = Encode(int64(1))
		}
		if err == nil {
			data[i], err = cborMode.Marshal(said)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return data, make([]error, len(data)), nil
}

// output is what a map task has made: of each partition some hundred bytes.
func (f *fabricated) output(m int) *mapOutput {
	o := &mapOutput{Attempt: 1, Digest: uint64(m), Raw: make([]int64, f.parts)}
	o.Holders = []string{fmt.Sprintf("executor-of-some-host-%d", m%f.executors)}
	for p := range o.Raw {
		o.Raw[p] = int64(100 + (m+p)%100)
		o.Rows += 7
	}
	return o
}

// countOver counts what is grouped from one number of partitions to another.
func countOver(t testing.TB, maps, parts int, look func(f *fabricated)) *fabricated {
	g := NewGraph()
	keyed := KeyBy(Range(g, 0, int64(maps), maps), func(i int64) int64 { return i })
	count := Count(GroupByKey(keyed, Partitions(parts)))
	f := &fabricated{g: g, executors: 4, maps: maps, parts: parts}
	if look != nil {
		f.looked = func() { look(f) }
	}
	n, err := count.Run(context.Background(), NewSession(g, f, Config{}))
	if err != nil || n != int64(parts) {
		t.Fatal(n, err)
	}
	return f
}

// TestATaskIsToldLittleOfEachOutput that it reads: who holds it.
func TestATaskIsToldLittleOfEachOutput(t *testing.T) {
	few, many := countOver(t, 50, 64, nil), countOver(t, 1000, 64, nil)
	a, b := float64(few.args[1])/few.tasks[1], float64(many.args[1])/many.tasks[1]
	if each := (b - a) / 950; each > 1.5 {
		t.Errorf("a task is told %.0f bytes of 50 outputs and %.0f of 1000: %.1f of each", a, b, each)
	}
}

// heldMost is how many bytes the session may hold of each map task and partition while
// tasks run, so that 5000 by 5000 take less than 300 MB; madeMost is what it may have
// asked for in all.
const (
	heldMost = 6
	madeMost = 48
)

// TestASessionHoldsLittleOfAShuffle: neither what each map task has written for each
// partition, nor what is told to tasks that wait.
func TestASessionHoldsLittleOfAShuffle(t *testing.T) {
	const n = 700
	var before, during, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	made := uint64(0)
	f := countOver(t, n, n, func(f *fabricated) {
		runtime.ReadMemStats(&during)
		made = during.TotalAlloc - before.TotalAlloc
		runtime.GC()
		runtime.ReadMemStats(&after)
	})
	runtime.KeepAlive(f)
	held := float64(int64(after.HeapAlloc)-int64(before.HeapAlloc)) / n / n
	if each := float64(made) / n / n; held > heldMost || each > madeMost {
		t.Errorf("of each map task and partition %.1f bytes are held and %.1f were asked for; %d and %d may be",
			held, each, heldMost, madeMost)
	}
}

// BenchmarkSessionOfAShuffle is what the driver's side does for as many map tasks as
// partitions.
func BenchmarkSessionOfAShuffle(b *testing.B) {
	for _, n := range []int{250, 500, 1000, 2000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				countOver(b, n, n, nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n*n), "ns/pair")
		})
	}
}
