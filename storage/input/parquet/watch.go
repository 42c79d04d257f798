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

// A decoder that hands nothing over may loop over a malformed file, or stand still: be
// paused, starved, or waiting for a disk. The first uses its processor, and says
// something of the file; the second does not, and may do better another time.

// How much of its processor's time the child may use without handing anything over, and
// how long it may stand still.
const (
	decodeSpins = 4 * time.Second
	decodeStall = 2 * time.Minute
)

var (
	errSpins   = errors.New("the decoder made no progress: the file is malformed")
	errStalled = errors.New("the decoder stood still")
)

// decodeWatch ends a child that hands nothing over.
type decodeWatch struct {
	pid     int
	replies atomic.Int64
	idle    atomic.Bool // what it has handed over is being taken in
	stop    context.CancelCauseFunc
}

// watch looks at the child until the context ends.
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
// where the system does not say.
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
