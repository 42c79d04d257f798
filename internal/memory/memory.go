package memory

import (
	"fmt"
	"os"
	"runtime/debug"
	"sync"
)

// The least and the greatest share of a child: below the one it would collect garbage
// all the time, above the other it gains nothing.
const (
	childLeast = 20 << 20
	childMost  = 64 << 20
	childShare = 8 // a limit's part
)

// budget is the limit of this process and its children, and the number of children.
var budget struct {
	sync.Mutex
	limit    int64 // of this process and all it starts; 0 is none
	children int64
}

// SetLimit sets a soft limit on the memory of this process and of its children, all
// together; least is the smallest share for the process itself.
func SetLimit(limit, least int64) {
	budget.Lock()
	defer budget.Unlock()
	budget.limit = max(limit, least)
	set()
}

// Limit returns what this process and its children may take; 0 is no limit.
func Limit() int64 {
	budget.Lock()
	defer budget.Unlock()
	return budget.limit
}

// OfChild returns the limit of a child; 0 is none.
func OfChild() int64 {
	budget.Lock()
	defer budget.Unlock()
	return ofChild(budget.limit)
}

func ofChild(limit int64) int64 {
	if limit == 0 {
		return 0
	}
	return min(childMost, max(childLeast, limit/childShare))
}

// Started notes that there is one child more.
func Started() { count(1) }

// Ended notes that a child has ended.
func Ended() { count(-1) }

func count(n int64) {
	budget.Lock()
	defer budget.Unlock()
	budget.children += n
	set()
}

// set lowers this process's limit by its children's shares, to no less than half;
// the budget is locked.
func set() {
	if budget.limit > 0 {
		debug.SetMemoryLimit(max(budget.limit/2, budget.limit-budget.children*ofChild(budget.limit)))
	}
}

// DiesFirst has the kernel end a process before others where memory runs out: users' programs go before the daemons
// that have started them.
func DiesFirst(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("500"), 0) // not everywhere can that be said
}
