package console

import (
	"runtime"
	"syscall"
)

// aside is how far a thread's priority is lowered, as Linux counts it, which is as far as it goes: it has a sixtieth
// of a processor that others want all the time, and all of one that none does.
const aside = 19

// lowerPriority has the calling goroutine run on a thread of a lower priority, from now on. The thread ends with it, as
// a priority that was given up is not got back.
func lowerPriority() {
	runtime.LockOSThread()
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), aside) // of this thread, where it is Linux
}
