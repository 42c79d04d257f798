package host

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// Job is a program's job as its session sees it: a cluster that runs steps and actions on packs, and
// commits their results.
type Job struct {
	ctx     context.Context
	cfg     Config
	program Program
	cluster cluster
	remote  *remote // the cluster, where it is one of processes
	files   directories
	packs   *catalog
	record  *record
	keeper  *keeper
	meter   meter
	stands  *standing
}

var _ rdd.Cluster = (*Job)(nil)

func openJob(ctx context.Context, cfg Config, p wire.Process, program Program) (*Job, error) {
	if cfg.Identity == "" {
		cfg.Identity = string(program.Args)
	}
	j := &Job{ctx: ctx, cfg: cfg, program: program, stands: &standing{}}
	if err := j.open(ctx, p); err != nil {
		j.close()
		return nil, err
	}
	return j, nil
}

func (j *Job) open(ctx context.Context, p wire.Process) error {
	sources, err := j.program.Graph.Resolve(ctx)
	if err != nil {
		return err
	}
	if err := j.files.open(j.cfg); err != nil {
		return err
	}
	j.packs = j.newCatalog()
	if j.keeper, err = openKeeper(j.cfg, j.program.Graph.Fingerprint(), p.Term); err != nil {
		return err
	}
	if j.record, err = openRecord(j.cfg, j.keeper.resumed); err != nil {
		return err
	}
	job := j.cfg.Job
	job.Life, job.Again = j.keeper.life, j.keeper.resumed != nil || p.Term > 1
	job.ID, job.Fingerprint, job.Sources = plan.JobID(j.program.Name), j.keeper.plan, sources
	job.Executors, job.Record = j.cfg.Executors, j.record.log != nil
	c, err := j.newCluster(p, job)
	if err != nil {
		return err
	}
	j.cluster = c
	j.record.header = j.header(job)
	return j.cluster.Start(j.ctx)
}

func (j *Job) close() {
	if j.cluster != nil {
		j.cluster.Close()
	}
	if l, ok := j.cluster.(*local); ok && l.busy.Load() {
		go func() { // who has not returned may read files and mappings yet
			l.late.Wait()
			j.closeFiles()
		}()
		return
	}
	j.closeFiles()
}

func (j *Job) closeFiles() {
	if j.packs != nil {
		j.packs.maker.Close()
	}
	j.files.close()
}

// unscaled returns the ratio that steps without Scale have to have: 0 is any, 1 is that they are never cut. It returns
// an error where they would be of less than all rows.
func (j *Job) unscaled() (ratio float64, err error) {
	policy, batch := j.cfg.Job.Sync.Policy, j.cfg.Job.BatchFraction
	switch partial := batch > 0 && batch < 1; {
	case j.cfg.Job.ByRows || policy.Whole() && !partial:
		return 0, nil
	case policy == abss.Automatic && !partial:
		return 1, nil
	}
	return 0, fault.Newf(fault.Usage, "run", "a step without Scale", "it cannot be cut under weighting=split").
		WithHint("give the Aggregator a Scale, or run with --weighting rows")
}

// OpenPack builds a pack and registers it with the cluster. A process that continues from
// a checkpoint opens the packs of the one before in their order, even those that it does
// not read any more: the event log and ledgers refer to them by number.
func (j *Job) OpenPack(ctx context.Context, node int, make rdd.PackMaker) (int, *pack.Meta, error) {
	for _, before := range j.keeper.resumed.nodesBefore(node) {
		if _, _, err := j.openPack(ctx, before, make); err != nil {
			return 0, nil, err
		}
	}
	return j.openPack(ctx, node, make)
}

// openPack opens a pack once, or again where its rows are gone.
func (j *Job) openPack(ctx context.Context, node int, make rdd.PackMaker) (int, *pack.Meta, error) {
	number, meta, there := j.packs.opened(node)
	if meta != nil && there {
		return number, meta, nil
	}
	if j.program.Graph.MadeByTask(node) {
		return j.openShuffled(ctx, node, number, meta, make)
	}
	if j.remote != nil {
		return j.openRemote(ctx, node)
	}
	meta, err := j.packs.make(ctx, node)
	if err != nil {
		return 0, nil, err
	}
	number, err = j.placePack(ctx, node, "", meta)
	return number, meta, err
}

// openRemote makes an executor build a pack.
func (j *Job) openRemote(ctx context.Context, node int) (int, *pack.Meta, error) {
	req := &plan.CallRequest{Node: node, Pack: plan.NoPack, Args: [][]byte{nil}}
	if mark := j.keeper.resumed.pack(node); mark != nil {
		req.Prefer = mark.Maker // it need not build the pack, but find it
	}
	if maker := j.packs.makerBeside(node); maker != "" {
		req.Prefer = maker
	}
	c, err := j.cluster.Ask(ctx, driver.Event{Call: req})
	if err != nil {
		return 0, nil, err
	}
	var made rdd.MadePack
	if err := json.Unmarshal(c.CallDone.Data[0], &made); err != nil {
		return 0, nil, fault.New(fault.Corrupt, "read", "the description of a pack", err)
	}
	number, err := j.placePack(ctx, node, made.Holder, made.Meta)
	return number, made.Meta, err
}

// openShuffled has an executor build a pack of shuffled rows, which it alone is told where to find.
func (j *Job) openShuffled(ctx context.Context, node, number int, before *pack.Meta, make rdd.PackMaker) (int,
	*pack.Meta, error) {
	if before != nil {
		j.cfg.Logger.Warn("rows of a pack were lost with the executors that held them: it is made again", "node", node)
	}
	made, err := make(ctx, node)
	if err != nil {
		return 0, nil, err
	}
	if j.remote == nil { // all executors share it
		made.Holder = ""
	}
	if before == nil {
		number, err = j.placePack(ctx, node, made.Holder, made.Meta)
		return number, made.Meta, err
	}
	if err := sameRows(before, made.Meta); err != nil {
		return 0, nil, err
	}
	j.packs.remade(node)
	c, err := j.cluster.Ask(ctx, driver.Event{Remade: &driver.Remade{Pack: number, Maker: made.Holder}})
	if err == nil {
		err = j.packs.lost(c)
	}
	return number, made.Meta, err
}

// sameRows returns an error where a pack that was made again has other rows than before.
func sameRows(before, again *pack.Meta) error {
	if slices.Equal(hashes(before), hashes(again)) {
		return nil
	}
	return fault.Newf(fault.UserCode, "make", "a pack again", "its rows are others than before").
		WithHint("what makes rows must depend on its input only: no clock, order of a map or number without a seed")
}

// placePack places a pack's splits on the executors.
func (j *Job) placePack(ctx context.Context, node int, maker plan.ExecutorID, meta *pack.Meta) (int, error) {
	info := infoOf(node, maker, meta)
	if j.cfg.Pace != nil {
		j.cfg.Pace.Balance(meta.Rows, j.cfg.Executors, j.cfg.Slots)
	}
	info.Sourceless = maker != "" && j.program.Graph.MadeByTask(node)
	c, err := j.cluster.Ask(ctx, driver.Event{Pack: info})
	if err != nil {
		return 0, err
	}
	number := 0
	if c.PackOpen != nil {
		number = *c.PackOpen
	} else if c.PackGone != nil {
		number = c.PackGone.Pack
	}
	j.packs.add(number, node, maker, meta)
	if err := j.packs.lost(c); err != nil {
		return 0, err
	}
	mark := j.keeper.resumed.pack(node)
	j.record.pack(number, info, mark != nil)
	if mark == nil {
		return number, nil
	}
	if err := j.keeper.sameData(meta, mark); err != nil {
		return 0, err
	}
	r := mark.Ledger
	r.Pack = number
	j.cluster.Restore(&r)
	j.record.resume(&r, j.keeper.ended())
	return number, nil
}

// pacerOf returns the pacer of a slot; nil where slots run at their own speed.
func pacerOf(of func(slot int) runner.Pacer, slot int) rdd.Pacer {
	if of == nil {
		return nil
	}
	return of(slot)
}

// RunStep runs a step and notes it for the event log.
func (j *Job) RunStep(ctx context.Context, req plan.StepRequest) (*plan.StepOutcome, error) {
	began := j.cluster.Now()
	req.Digest = plan.DigestOf(req.Param)
	trains := req.Train || req.Work
	j.meter.begin(trains, began)
	c, err := j.cluster.Ask(ctx, driver.Event{Step: &req})
	if err != nil {
		return nil, err
	}
	if err := j.packs.lost(c); err != nil {
		return nil, err
	}
	r := c.StepDone
	j.meter.step(r, trains, began, j.cluster.Now())
	if j.cfg.Observer != nil {
		j.cfg.Observer(r)
	}
	j.record.step(r, req.Digest, req.Train)
	return &r.Outcome, nil
}

// Signal passes a step's measurements to auto.
func (j *Job) Signal(spread, norm float64) {
	if j.cfg.Job.Sync.Policy == abss.Automatic {
		j.cluster.Signal(driver.Signal{Spread: spread, Norm: norm})
	}
}

// Extend has every executor add what the plan has come to have.
func (j *Job) Extend(ctx context.Context, e plan.Extension) error {
	_, err := j.cluster.Ask(ctx, driver.Event{Extend: &e})
	return err
}

// RunCall runs an action.
func (j *Job) RunCall(ctx context.Context, c plan.CallRequest) ([][]byte, []error, error) {
	j.record.plan(j.program.Graph)
	done, err := j.cluster.Ask(ctx, driver.Event{Call: &c})
	if err != nil {
		return nil, nil, err
	}
	if err := j.packs.lost(done); err != nil {
		return nil, nil, err
	}
	j.meter.lose(done.CallDone.ExecutorsLost)
	j.record.action(driver.ActionLine(&c, done.CallDone))
	return done.CallDone.Data, done.CallDone.Lost, nil
}

// Shuffled notes what map tasks have made.
func (j *Job) Shuffled(s plan.Shuffled) { j.record.shuffle(driver.ShuffleLine(&s)) }

// Commit writes the step's line and, where due, a checkpoint.
func (j *Job) Commit(ctx context.Context, c rdd.Commit) error {
	for name, v := range c.Values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			delete(c.Values, name) // JSON has no such numbers
		}
	}
	if j.record.commit(c, j.cluster.Now()-j.meter.ended) && j.remote != nil {
		j.keeper.unsaid = append(j.keeper.unsaid, commitOf(j.meter.last, c.Digest))
	} else if j.remote != nil && j.meter.last == nil {
		j.keeper.unsaid = append(j.keeper.unsaid, &wire.Commit{Step: j.keeper.iterations(c), Params: c.Digest[:]})
	}
	j.stands.commit(c, j.keeper.iterations(c), j.cluster.Now())
	j.record.flush()
	if err := j.record.log.Err(); err != nil {
		return err // it would be useless: without its log the run fails in the end
	}
	if !j.keeper.due(ctx, c, j.remote != nil) {
		return nil
	}
	if !c.Last {
		return j.keep(c)
	}
	return j.keepLast(ctx, c)
}

// Evaluated adds the objective to the line of the pass that found it.
func (j *Job) Evaluated(ev rdd.Evaluation) {
	j.stands.evaluated(ev)
	j.record.evaluated(ev)
}

// Now returns the time since the job began.
func (j *Job) Now() time.Duration { return j.cluster.Now() }

// Resume returns where the checkpoint that the job continues from left a loop, if there is one.
func (j *Job) Resume(loop int) rdd.LoopMark {
	if j.keeper.last(loop) {
		j.record.goesOn()
	}
	return j.keeper.loop(loop)
}

// meter measures how long the job trains.
type meter struct {
	began     time.Duration // the first training step; 0 before it
	ended     time.Duration // the last step
	evaluated time.Duration // uncut passes since the first training step
	last      *driver.StepReport
	passes    Passes
	worked    time.Duration // by what is no step
	stepped   time.Duration // by training steps
	lost      atomic.Int64  // executors, when the last action ended
}

// lose notes how many executors were lost when an action ended; others may end at the same time.
func (m *meter) lose(n int64) {
	for had := m.lost.Load(); n > had && !m.lost.CompareAndSwap(had, n); had = m.lost.Load() {
	}
}

func (m *meter) begin(trains bool, at time.Duration) {
	if m.began == 0 && trains {
		m.began = max(1, at)
	}
}

func (m *meter) step(r *driver.StepReport, trains bool, began, ended time.Duration) {
	m.last, m.ended = r, ended
	switch {
	case r.Stats.Cut:
		m.passes.Cut++
	case r.Leased:
		m.passes.Leased++
	default:
		m.passes.Whole++
	}
	switch {
	case m.began == 0:
	case trains:
		m.passes.Rows += r.Merged
		m.stepped += ended - began
	default:
		m.evaluated += ended - began
	}
}

// train returns how long the job has trained, evaluation left out.
func (m *meter) train() time.Duration {
	switch {
	case m.worked > 0: // evaluations go on beside it
		return m.worked + m.stepped
	case m.began == 0:
		return 0
	}
	return m.ended - m.began - m.evaluated
}
