package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/volley-engine/volley/internal/wire"
)

// lastLog bounds how long the driver may take, once a runner has ended, for its last
// output.
const lastLog = time.Second

// runnerLog sends a runner's output to the driver on a separate stream: while the driver
// accepts no more, only this runner waits.
type runnerLog struct {
	d      *Daemon
	job    string
	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex
	stream wire.Cluster_LogsClient // nil before the first line, and once it has failed
	lost   bool                    // time of the last success
	closed bool
}

func (d *Daemon) newRunnerLog(job string) *runnerLog {
	l := &runnerLog{d: d, job: job}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// put sends output. It is lost where the driver cannot be reached: the runner is about to
// be ended. Where only the stream has failed, the next one carries it.
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

// send sends on the stream, opening it with the first message.
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

// close ends the stream once the driver has all of it, or after a timeout.
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
