package console

import (
	"runtime"
	"syscall"
)

// leastPriority is what Linux calls the lowest priority of a thread.
const leastPriority = 19

// yieldProcessor has the calling goroutine run when no other thread needs its processor, from now on. The thread that
// it runs on ends with it, as a priority that was given up is not got back.
func yieldProcessor() {
	runtime.LockOSThread()
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), leastPriority) // of this thread, where it is Linux
}
