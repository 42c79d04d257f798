package host

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/memory"
)

// limitMemory keeps this process within the memory that it may take, or collects garbage seldom
// where nobody has said how much that is; what it returns takes that back.
func (c Config) limitMemory() (undo func()) {
	if c.Memory > 0 {
		memory.SetLimit(c.Memory, leastLimit) // below that, there is garbage to collect all the time
		return func() {}
	}
	return collectSeldom()
}

// collectSeldom sets how much garbage is worth collecting, unless the environment
// says; what it returns takes that back.
func collectSeldom() func() {
	ballastOnce.Do(func() { ballastHeld = make([]byte, ballast) })
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	runtime.KeepAlive(ballastHeld)
	before := debug.SetGCPercent(garbagePercent)
	return func() { debug.SetGCPercent(before) }
}

var (
	ballastOnce sync.Once
	ballastHeld []byte // for as long as the process lives
)

// leastLimit is the least limit on memory that a process can live within.
const leastLimit = 32 << 20

// ballast is memory that is reserved and never touched, so that no page of it is
// ever there: a process whose rows take little memory would otherwise collect
// its garbage many times a second.
const ballast = 192 << 20

// garbagePercent is how much garbage, as a part of what is alive, makes a process
// collect it: rows have few pointers and are cheap to look through.
const garbagePercent = 50

// sortedShare is the part of a memory limit that tasks may sort in, all of them
// together.
const sortedShare = 4

// taskMemory returns how much each of a number of tasks at a time may sort in
// memory; 0 leaves it to the executor.
func (c Config) taskMemory(tasks int) int {
	if c.TaskMemory == 0 && c.Memory > 0 {
		return int(c.Memory / int64(sortedShare*max(1, tasks)))
	}
	return int(c.TaskMemory)
}

// taskHeld returns how much each of a number of tasks at a time may hold of what
// cannot be written down and read again piece by piece; 0 where there is no limit.
func (c Config) taskHeld(tasks int) int {
	return int(c.Memory / int64(sortedShare*max(1, tasks)))
}

// sharedRoom returns how many bytes of rows and tables the tasks of a process keep in common: a
// quarter of what it may take, so that tasks have room beside them; 0 where nobody has said how
// much that is.
func (c Config) sharedRoom() int64 { return c.Memory / 4 }

// heldByTask returns how many bytes of rows a task holds at the most.
func (c Config) heldByTask() int {
	if n := c.taskMemory(c.Executors * c.Slots); n > 0 {
		return n
	}
	return executor.DefaultTaskMemory
}
