package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/volley-engine/volley/internal/wire"
)

// lastLog is how long the driver may take, once a runner has ended, for the last that it
// has printed.
const lastLog = time.Second

// runnerLog takes what a runner prints to the driver, on a stream of its own: while the driver
// cannot keep more the runner waits with its next line, and nobody else does.
type runnerLog struct {
	d      *Daemon
	job    string
	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex
	stream wire.Cluster_LogsClient // nil before the first line, and once it has failed
	lost   bool                    // since when something went well
	closed bool
}

func (d *Daemon) newRunnerLog(job string) *runnerLog {
	l := &runnerLog{d: d, job: job}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// put sends what was printed. What a driver that is gone cannot take is lost: the runner is
// about to be ended. Where only the stream is, the next one takes it.
func (l *runnerLog) put(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	err := l.send(p)
	if err != nil {
		l.stream = nil
		err = l.send(p)
	}
	if err != nil && !l.lost {
		l.d.log.Warn("what a runner prints is lost", "job", l.job, "why", err)
	}
	l.lost = err != nil
}

// send sends on a stream, which is opened with the first message.
func (l *runnerLog) send(p []byte) (err error) {
	m := &wire.RunnerLog{Job: l.job, Data: p}
	if l.stream == nil {
		m.Executor = l.d.cfg.Name
		if l.stream, err = l.open(); err != nil {
			l.stream = nil
			return err
		}
	}
	return l.stream.Send(m)
}

func (l *runnerLog) open() (wire.Cluster_LogsClient, error) {
	l.d.mu.Lock()
	client := l.d.client
	l.d.mu.Unlock()
	if client == nil {
		return nil, errNoDriver
	}
	return client.Logs(l.ctx)
}

var errNoDriver = errors.New("there is no connection to the driver")

// close ends the stream once the driver has all of it, or has had its time.
func (l *runnerLog) close() {
	timer := time.AfterFunc(lastLog, l.cancel)
	defer timer.Stop()
	defer l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream != nil {
		_, _ = l.stream.CloseAndRecv()
	}
	l.closed = true
}
