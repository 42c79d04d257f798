package volley

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/pace"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
)

// local is a cluster of goroutines on the real clock: a driver and executors
// that speak the protocol over pipes.
type local struct {
	*driver.Driver
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func newLocal(job driver.JobConfig, cfg Config, engine func(int) (*executor.Engine, error)) (*local, error) {
	ctx, cancel := context.WithCancel(context.Background())
	l := &local{Driver: driver.NewDriver(job, cfg.Logger), cancel: cancel}
	began := time.Now()
	for i := range cfg.Executors {
		en, err := engine(i)
		if err != nil {
			l.Close()
			return nil, err
		}
		down, up := wire.Pipe()
		l.Attach(down)
		ec := executor.Config{ID: plan.ExecutorID(fmt.Sprintf("executor-%d", i)), Slots: cfg.Slots, Log: cfg.Logger}
		if cfg.Pace != nil {
			ec.Pacer = func(slot int) runner.Pacer { return newPacer(cfg.Pace, began, i, slot, cfg.Slots) }
		}
		ex := executor.New(ctx, ec, en, up)
		l.wg.Go(func() {
			if err := ex.Serve(); err != nil {
				cfg.Logger.Error("executor ended", "executor", ec.ID, "error", err)
			}
		})
	}
	return l, nil
}

// Close ends driver and executors and waits for them.
func (l *local) Close() error {
	err := l.Driver.Close()
	l.cancel()
	l.wg.Wait()
	return err
}

// pacer makes a slot sleep after each chunk so that its rate follows a law:
// on the lab's schedule, work that began at t is done when the law says.
type pacer struct {
	law            *pace.Law
	began          time.Time
	executor, slot int
	slots          int
	at             time.Duration // when the law says the work so far is done
}

func newPacer(law *pace.Law, began time.Time, executor, slot, slots int) *pacer {
	return &pacer{law: law, began: began, executor: executor, slot: slot, slots: slots, at: time.Since(began)}
}

// Worked sleeps until the law says that the rows are done: the chunk in hand
// is folded to its end, stop or not. A chunk that took the machine longer than
// the law allows is caught up with by the next ones.
func (p *pacer) Worked(rows int64) {
	p.at = p.law.Spend(p.executor, p.slot, p.slots, p.at, rows)
	if left := p.at - time.Since(p.began); left > 0 {
		time.Sleep(left)
	}
}
