package host

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/pace"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/sim"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/storage/pack"
	"github.com/volley-engine/volley/storage/shuffle"
)

// cluster is what runs a job's steps: in virtual time, embedded, or in processes.
type cluster interface {
	Start(ctx context.Context) error
	// Ask hands the job a pack, a step or a call, and returns what it has come to.
	Ask(ctx context.Context, request driver.Event) (driver.Command, error)
	Slots() int
	Restore(*driver.Restored)
	Signal(driver.Signal)
	Ledger(pack int) *driver.Restored
	Now() time.Duration
	Running() []driver.Running
	Close() error
}

var (
	_ cluster = (*sim.Virtual)(nil)
	_ cluster = (*driver.Driver)(nil)
)

func (j *Job) newCluster(p wire.Process, job driver.JobConfig) (cluster, error) {
	if p.Role == wire.JobRole {
		had := 0
		if j.keeper.resumed != nil {
			had = j.keeper.resumed.Executors
		}
		r, err := connect(j.ctx, p, job, had, j.stands, j.cfg.Logger)
		if err != nil {
			return nil, err
		}
		j.remote, j.cfg.Executors = r, r.executors
		return r, nil
	}
	m := &members{catalog: j.packs, job: j}
	if j.cfg.Virtual {
		return sim.NewVirtual(sim.VirtualConfig{Job: job, Executors: j.cfg.Executors, Slots: j.cfg.Slots,
			Law: j.cfg.Pace, Engine: m.engine})
	}
	if err := j.cfg.checkLosses(); err != nil {
		return nil, err
	}
	return newLocal(job, j.cfg, m.engine, m.lose)
}

// members are the executors of a cluster embedded in this process; they read each other's splits and
// map outputs directly.
type members struct {
	*catalog
	job    *Job
	all    []*executor.Engine
	lost   sync.Map        // executors that are, by number
	shared executor.Shared // values that tasks of all of them share
}

// engine makes the engine of one.
func (m *members) engine(i int) (*executor.Engine, error) {
	j := m.job
	program, err := j.program.Again()
	if err != nil {
		return nil, err
	}
	store, err := executor.OpenStore(filepath.Join(j.files.dir, fmt.Sprintf("executor-%d", i)))
	if err != nil {
		return nil, err
	}
	j.files.atEnd(func() { store.Close() })
	en := executor.NewEngine(executorID(i), program, store, m, linked(m, j.cfg.realLaw(), i))
	en.TaskMemory = j.cfg.taskMemory(j.cfg.Executors * j.cfg.Slots)
	en.TaskHeld, en.OneMachine = j.cfg.taskHeld(j.cfg.Executors*j.cfg.Slots), true
	m.shared.Room = j.cfg.sharedRoom()
	en.Shared = &m.shared
	m.all = append(m.all, en)
	return en, nil
}

// realLaw returns the law that work on the real clock has to follow; in virtual time
// it is computed, not waited for.
func (c Config) realLaw() *pace.Law {
	if c.Virtual {
		return nil
	}
	return c.Pace
}

// executorID names an executor of this process.
func executorID(i int) plan.ExecutorID { return plan.ExecutorID(fmt.Sprintf("executor-%d", i)) }

// member returns an executor of this process; nil where there is no such one.
func (m *members) member(id plan.ExecutorID) *executor.Engine {
	for i, en := range m.all {
		if _, lost := m.lost.Load(i); !lost && executorID(i) == id {
			return en
		}
	}
	return nil
}

// lose makes an executor one that cannot be reached.
func (m *members) lose(i int) { m.lost.Store(i, true) }

// FetchSplit reads a split from another executor of this process.
func (m *members) FetchSplit(_ context.Context, from executor.Peer, key pack.SplitKey, w io.Writer) error {
	if en := m.member(from.ID); en != nil {
		return en.Store().Splits.Send(key, w)
	}
	return fault.Newf(fault.FetchFailed, "fetch from", string(from.ID), "there is no such executor")
}

// OpenMapOutput reads shuffled rows that another executor of this process keeps.
func (m *members) OpenMapOutput(_ context.Context, from executor.Peer, key shuffle.Key,
	span shuffle.Span) (io.ReadCloser, error) {
	if en := m.member(from.ID); en != nil {
		return en.Store().Outputs.Open(key, span)
	}
	return nil, fault.Newf(fault.HolderLost, "reach", string(from.ID), "there is no such executor")
}
