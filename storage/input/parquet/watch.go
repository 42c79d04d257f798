package parquet

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A decoder without progress may loop over a malformed file, or be stalled: paused,
// starved, or waiting for a disk. The first uses CPU time, and is the file's fault;
// the second does not, and may succeed when retried.

// How much CPU time the child may use without progress, and how long it may be stalled.
const (
	decodeSpins = 4 * time.Second
	decodeStall = 2 * time.Minute
)

var (
	errSpins   = errors.New("the decoder made no progress: the file is malformed")
	errStalled = errors.New("the decoder made no progress for two minutes")
)

// decodeWatch kills a child without progress.
type decodeWatch struct {
	pid     int
	replies atomic.Int64
	idle    atomic.Bool // its output is being processed
	stop    context.CancelCauseFunc
}

// watch observes the child until the context ends.
func (w *decodeWatch) watch(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	seen, used, since := int64(-1), time.Duration(0), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, known := processorTime(w.pid)
		switch replies := w.replies.Load(); {
		case replies != seen, w.idle.Load():
			seen, used, since = replies, now, time.Now()
		case known && now-used >= decodeSpins:
			w.stop(errSpins)
		case time.Since(since) >= decodeStall:
			w.stop(errStalled)
		}
	}
}

// ticks is how many make a second of a process's time, whatever the kernel's clock: the
// constant of Linux's interface to programs.
const ticks = 100

// processorTime returns how much of processors' time a child has used; known is false
// where the system does not provide it.
func processorTime(pid int) (used time.Duration, known bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	_, after, _ := strings.Cut(string(raw), ") ") // the name may hold anything else
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0, false
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * (time.Second / ticks), err == nil && err2 == nil
}
