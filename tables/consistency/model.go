package consistency

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/fault"
)

// Worker is a number of a worker, from 0 on: of a fixed set of splits, whichever process runs it.
type Worker int

// Clock counts the clocks that a worker has finished; a worker at clock c is within its clock number c, from 0 on.
// As an age of a row it is the number of clocks of which the row has all updates, of all workers.
type Clock int

// Row is a row of a table.
type Row int64

// Unbounded is the slack of a model without a bound on clocks.
const Unbounded Clock = math.MaxInt32

// Model is what a read of a table may miss.
type Model struct {
	// Slack is how many clocks a worker may be ahead of the slowest, and a read behind its worker.
	Slack Clock
	// Eager has updates leave, and reach caches, as bandwidth allows, not only at the end of a clock.
	Eager bool
	// Bound is the most that a worker's updates of a parameter may add up to that not everyone has seen, in absolute
	// value; 0 is no bound.
	Bound float64
	// Strong bounds what some others have seen and not all, too.
	Strong bool
	// Prefetch says which rows are asked for at the end of a clock, of those that it has read.
	Prefetch Prefetch `json:",omitempty"`
}

// Prefetch is how rows are asked for before they are read, by what the clock before has read (LazyTable, section 3.3).
type Prefetch int

// Prefetching is aggressive unless a program says otherwise.
const (
	Aggressive   Prefetch = iota // the newest of each row
	Conservative                 // rows that would be waited for
	NoPrefetch                   // none
)

var prefetches = []string{"aggressive", "conservative", "off"}

// String returns it as flags name it.
func (p Prefetch) String() string { return prefetches[p] }

// ParsePrefetch returns the one that flags name so.
func ParsePrefetch(name string) (Prefetch, error) {
	if at := slices.Index(prefetches, name); at >= 0 {
		return Prefetch(at), nil
	}
	return 0, fault.Newf(fault.Usage, "use", "prefetch", "%q is not one of %s", name, strings.Join(prefetches, ", "))
}

// BSP returns the model in which a read sees all updates of the clocks before its own, and no others.
func BSP() Model { return Model{} }

// SSP returns the model of LazyTable, section 2.3: a read may miss the last slack clocks. SSP(0) is BSP.
func SSP(slack Clock) Model { return Model{Slack: slack} }

// ASP returns the model without any bound.
func ASP() Model { return Model{Slack: Unbounded, Eager: true} }

// CAP returns the clock-bounded model of Petuum, section 2.1.
func CAP(slack Clock) Model { return Model{Slack: slack, Eager: true} }

// VAP returns the value-bounded model of Petuum, section 2.2, weak or strong.
func VAP(bound float64, strong bool) Model {
	return Model{Slack: Unbounded, Eager: true, Bound: bound, Strong: strong}
}

// CVAP returns both, section 2.3.
func CVAP(slack Clock, bound float64, strong bool) Model {
	return Model{Slack: slack, Eager: true, Bound: bound, Strong: strong}
}

// Check refuses what is no model.
func (m Model) Check() error {
	switch {
	case m.Slack < 0:
		return fault.Newf(fault.Usage, "use", "the slack of a table", "%d is negative", m.Slack)
	case m.Bound < 0 || math.IsNaN(m.Bound) || math.IsInf(m.Bound, 0):
		return fault.Newf(fault.Usage, "use", "the value bound of a table", "%v is no bound", m.Bound)
	case m.Strong && m.Bound == 0:
		return fault.Newf(fault.Usage, "use", "a strong table", "it has no value bound")
	case m.Prefetch < Aggressive || m.Prefetch > NoPrefetch:
		return fault.Newf(fault.Usage, "use", "the prefetching of a table", "%d is none", int(m.Prefetch))
	}
	return nil
}

// Exact reports whether reads see the clocks before their own and nothing newer, so that a run has the same bits
// whatever its processes do.
func (m Model) Exact() bool { return m.Slack == 0 && !m.Eager }

// Needs returns the age that a read needs in a clock, and the clocks that all must have finished before it begins.
func (m Model) Needs(c Clock) Clock { return max(0, c-m.Slack) }

// String returns the model as its flags name it.
func (m Model) String() string {
	kind := ""
	if m.Strong {
		kind = ", strong"
	}
	switch {
	case m.Bound > 0 && m.Slack < Unbounded:
		return fmt.Sprintf("cvap(%d, %v%s)", m.Slack, m.Bound, kind)
	case m.Bound > 0:
		return fmt.Sprintf("vap(%v%s)", m.Bound, kind)
	case m.Eager && m.Slack < Unbounded:
		return fmt.Sprintf("cap(%d)", m.Slack)
	case m.Eager:
		return "asp"
	case m.Exact():
		return "bsp"
	}
	return fmt.Sprintf("ssp(%d)", m.Slack)
}

// Algebra is how the values of rows, and of updates to them, are added up: an associative, commutative operation. The
// zero V is that of a row that no worker has updated.
type Algebra[V any] interface {
	// Add returns the sum; it may use the memory of sum, and never that of delta.
	Add(sum, delta V) V
	// Clone returns a copy that changes of v do not change.
	Clone(v V) V
	// Bytes returns how much of the bandwidth a value takes.
	Bytes(v V) int
	// Seal returns an update as it is kept and sent from now on; it may use the memory of v, or keep it for another.
	Seal(v V) V
	// Columns calls f with the columns of an update that are not zero.
	Columns(v V, f func(column int, value float64))
}

// Options are what a table is kept with.
type Options struct {
	Model
	Workers int
	Shards  int
	// Budget is how many bytes a second a client, or a shard, sends of its own accord; 0 is no limit.
	Budget float64
	// Cache bounds the bytes of the rows that a client's cache holds; 0 is no bound. Rows that workers wait for come on
	// top.
	Cache int
	// Batch is about how many bytes a batch of updates may have, so that the first are on their way, and
	// taken, while the others leave; 0 is no bound.
	Batch int
	// Every is after how many clocks shards make a snapshot of their own accord, so that clients let go of their logs;
	// 0 is never. They make one of Last, too, where that is not 0.
	Every, Last Clock
	// Together says that clients and shards end together, so that no log is kept for a shard that is lost, and that a
	// worker which others wait for is there, however long it takes.
	Together bool
	// Again is after how long a message without an answer is sent again, and Patience how long is waited at all.
	Again, Patience time.Duration
}

// saves reports whether shards make a snapshot of an age of their own accord.
func (o Options) saves(age Clock) bool {
	return o.Every > 0 && age%o.Every == 0 || age == o.Last && age > 0
}

// Shard returns the shard that has a row.
func (o Options) Shard(r Row) int { return int(uint64(r) % uint64(o.Shards)) }

// budget is a limit on bytes by time.
type budget struct {
	rate, left float64
	at         time.Duration
}

// burst is for how long a budget that is not used is kept.
const burst = 50 * time.Millisecond

// refill adds what has become free since.
func (b *budget) refill(now time.Duration) {
	b.left = min(b.left+b.rate*(now-b.at).Seconds(), b.rate*burst.Seconds())
	b.at = now
}

// take reports whether more may be sent, and counts it.
func (b *budget) take(bytes int) bool {
	if b.rate == 0 {
		return true
	}
	if !plantedFree(b.left > 0) {
		return false
	}
	b.left -= float64(bytes) // what is larger than all that is left is paid for afterwards
	return true
}
