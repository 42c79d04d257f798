package host

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/pace"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
)

// local is a cluster of goroutines on the real clock: a driver and executors
// that speak the protocol over pipes.
type local struct {
	*driver.Driver
	cancel context.CancelFunc
	wg     sync.WaitGroup
	late   sync.WaitGroup // executors of which a function has not returned
	busy   atomic.Bool    // there are such
	limits *limits
	log    hclog.Logger
	pacers func(executor int) func(slot int) runner.Pacer // each result is nil where slots run at their own speed
}

// limits counts how much work the machine finished later than the pace demands:
// then the machine was the limit, and times do not reflect the pace.
type limits struct{ chunks, late atomic.Int64 }

// lateShare is the share of late chunks above which a run with a pace warns.
const lateShare = 0.1

// newLocal starts a driver and executors with the given engines; lost is told of each executor that is lost.
func newLocal(job driver.JobConfig, cfg Config, engine func(int) (*executor.Engine, error), lost func(i int)) (*local,
	error) {
	ctx, cancel := context.WithCancel(context.Background())
	l := &local{Driver: driver.NewDriver(job, cfg.Logger), cancel: cancel, limits: &limits{}, log: cfg.Logger}
	began := time.Now()
	l.pacers = func(executor int) func(int) runner.Pacer {
		return lawPacer(cfg.Pace, began, executor, cfg.Slots, l.limits)
	}
	for i := range cfg.Executors {
		en, err := engine(i)
		if err != nil {
			l.Close()
			return nil, err
		}
		down, up := wire.Pipe()
		l.Attach(down)
		ec := executor.Config{ID: executorID(i), Slots: cfg.Slots, Pacer: l.pacers(i)}
		own, end := context.WithCancel(ctx)
		gone := slices.IndexFunc(cfg.Losses, func(x Loss) bool { return x.Executor == i })
		if gone >= 0 {
			up = &losing{ExecutorConn: up, left: cfg.Losses[gone].After, lose: func() { lost(i); end() }}
		}
		ex := executor.New(own, ec, en, up)
		l.wg.Go(func() {
			defer end()
			err := ex.Serve()
			if errors.Is(err, executor.ErrNotBack) {
				l.busy.Store(true)
				l.late.Go(ex.Wait)
			}
			if err != nil && gone < 0 {
				cfg.Logger.Error("executor ended", "executor", ec.ID, "error", err)
			}
		})
	}
	return l, nil
}

// Close ends driver and executors and waits for them; where a function has not returned for long that is left.
func (l *local) Close() error {
	err := l.Driver.Close()
	l.cancel()
	l.wg.Wait()
	if n, late := l.limits.chunks.Load(), l.limits.late.Load(); float64(late) > lateShare*float64(n) {
		l.log.Warn("the machine, not the pace, was the limit; lower --pace-rate, or use --clock virtual", "late chunks",
			late, "chunks", n)
	}
	return err
}

// pacer makes a slot sleep after each chunk so that its rate follows a law: on
// the lab's schedule, work that began at t is done at the law's time.
type pacer struct {
	law            *pace.Law
	began          time.Time
	executor, slot int
	slots          int
	at             time.Duration // the law's time for the end of the work so far
	limits         *limits
}

func newPacer(law *pace.Law, began time.Time, executor, slot, slots int, l *limits) *pacer {
	return &pacer{law: law, began: began, executor: executor, slot: slot, slots: slots, at: time.Since(began),
		limits: l}
}

// overslept is how late a sleep may end without the machine being at fault.
const overslept = 2 * time.Millisecond

// Worked sleeps until the law's time for the rows: the chunk in hand is folded
// to its end, stop or not. A chunk that took the machine longer than the law
// allows is caught up with by the next ones.
func (p *pacer) Worked(rows int64) {
	p.at = p.law.Spend(p.executor, p.slot, p.slots, p.at, rows)
	left := p.at - time.Since(p.began)
	p.limits.chunks.Add(1)
	if left > 0 {
		time.Sleep(left)
	} else if left < -overslept {
		p.limits.late.Add(1)
	}
}

// Waited moves the schedule on.
func (p *pacer) Waited(d time.Duration) { p.at += d }
