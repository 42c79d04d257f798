package host

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/memory"
)

// limitMemory keeps this process within its memory limit, or without a limit collects garbage
// seldom; the function that it returns undoes that.
func (c Config) limitMemory() (undo func()) {
	if c.Memory > 0 {
		memory.SetLimit(c.Memory, leastLimit) // below that, there is garbage to collect all the time
		return func() {}
	}
	return collectSeldom()
}

// collectSeldom raises the garbage percentage, unless GOGC is set; the function
// that it returns undoes that.
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

// leastLimit is the least memory limit that a process can work within.
const leastLimit = 32 << 20

// ballast is memory that is reserved and never touched, so that it has no pages:
// a process with a small heap would otherwise collect garbage many times a
// second.
const ballast = 192 << 20

// garbagePercent is how much garbage, as a part of what is alive, makes a process
// collect it: rows have few pointers and are cheap to look through.
const garbagePercent = 50

// sortedShare is the part of a memory limit that all tasks together may sort
// in.
const sortedShare = 4

// taskMemory returns how much each of a number of tasks at a time may sort in
// memory; 0 leaves it to the executor.
func (c Config) taskMemory(tasks int) int {
	if c.TaskMemory == 0 && c.Memory > 0 {
		return int(c.Memory / int64(sortedShare*max(1, tasks)))
	}
	return int(c.TaskMemory)
}

// taskHeld returns how much each of a number of concurrent tasks may hold of data
// that cannot be spilled; 0 where there is no limit.
func (c Config) taskHeld(tasks int) int {
	return int(c.Memory / int64(sortedShare*max(1, tasks)))
}

// sharedRoom returns how many bytes of rows and tables the tasks of a process may share: a
// quarter of its limit, so that tasks have memory beside them; 0 without a limit.
func (c Config) sharedRoom() int64 { return c.Memory / 4 }

// heldByTask returns how many bytes of rows a task holds at the most.
func (c Config) heldByTask() int {
	if n := c.taskMemory(c.Executors * c.Slots); n > 0 {
		return n
	}
	return executor.DefaultTaskMemory
}
