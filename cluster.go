package volley

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage"
)

// executableDigest tells this program from all others: by the identifier that go build
// has given it, of which digests of its content are a part, or, where another tool
// has given it one or none, by the digest of its file, which takes a tenth of a second.
var executableDigest = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if id := buildID(f); len(id) > 0 {
		return plan.DigestOf(id).String()
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
})

// buildID is the identifier that go build has given to an executable; nil where it has
// none, or one that does not tell contents apart.
func buildID(r io.ReaderAt) []byte {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil
	}
	note := f.Section(".note.go.buildid")
	if note == nil {
		return nil
	}
	raw, err := note.Data()
	if err != nil || !buildIDs.Match(raw) {
		return nil
	}
	return buildIDs.Find(raw)
}

// buildIDs have four digests: of what the program was made of, and how, and of its
// content. Other tools write whatever they like, the same for every program.
var buildIDs = regexp.MustCompile(`[\w-]{20}/[\w-]{20}/[\w-]{20}/[\w-]{20}`)

// Pack is where a node's pack lies: the executors' catalog.
func (e *embedded) Pack(_ context.Context, node int) (string, *storage.PackMeta, error) {
	e.mu.Lock()
	p := e.packs[node]
	e.mu.Unlock()
	if p == nil {
		return "", nil, fault.Newf(fault.FetchFailed, "find", fmt.Sprintf("the pack of node %d", node), "it has not been made")
	}
	return p.Dir, p.Meta, nil
}

// Meta describes a pack: all executors of this process share them.
func (e *embedded) Meta(ctx context.Context, _ executor.Peer, node int) (*storage.PackMeta, error) {
	_, meta, err := e.Pack(ctx, node)
	return meta, err
}

// executorID names an executor of this process.
func executorID(i int) plan.ExecutorID { return plan.ExecutorID(fmt.Sprintf("executor-%d", i)) }

// FetchSplit reads a split from another executor of this process.
func (e *embedded) FetchSplit(_ context.Context, from executor.Peer, key storage.SplitKey, w io.Writer) error {
	for i, en := range e.executors {
		if executorID(i) == from.ID {
			return en.Store().Send(key, w)
		}
	}
	return fault.Newf(fault.FetchFailed, "fetch from", string(from.ID), "there is no such executor")
}

// OpenBucket reads shuffled rows that another executor of this process keeps.
func (e *embedded) OpenBucket(_ context.Context, from executor.Peer, key storage.ShuffleKey, span storage.Span) (io.ReadCloser, error) {
	for i, en := range e.executors {
		if executorID(i) == from.ID {
			return en.Store().OpenBucket(key, span)
		}
	}
	return nil, fault.Newf(fault.LostInput, "reach", string(from.ID), "there is no such executor")
}

// OpenPack makes a pack and makes it known to the cluster. A life that goes on from a
// checkpoint opens the packs of the life before in their order, those too that it does not
// read any more: in the event log and in ledgers they go by their numbers.
func (e *embedded) OpenPack(ctx context.Context, node int) (int, *storage.PackMeta, error) {
	for _, before := range e.resumed.nodesBefore(node) {
		if _, _, err := e.openPack(ctx, before); err != nil {
			return 0, nil, err
		}
	}
	return e.openPack(ctx, node)
}

// openPack opens a pack once.
func (e *embedded) openPack(ctx context.Context, node int) (int, *storage.PackMeta, error) {
	if number := slices.Index(e.nodes, node); number >= 0 {
		return number, e.metas[node], nil
	}
	if e.remote != nil {
		return e.openRemote(ctx, node)
	}
	p, err := e.maker.Make(ctx, node)
	if err != nil {
		return 0, nil, err
	}
	e.mu.Lock()
	e.packs[node] = p
	e.mu.Unlock()
	number, err := e.placePack(ctx, node, "", p.Meta)
	return number, p.Meta, err
}

// openRemote has an executor make a pack.
func (e *embedded) openRemote(ctx context.Context, node int) (int, *storage.PackMeta, error) {
	req := &driver.CallRequest{Node: node, Pack: rdd.NoPack, Args: [][]byte{nil}}
	if mark := e.resumed.pack(node); mark != nil {
		req.Prefer = mark.Maker // it need not make the pack, but find it
	}
	for _, other := range e.madeWith(node) {
		if maker := e.makers[other]; maker != "" {
			req.Prefer = maker
		}
	}
	out, err := e.back.RunCall(ctx, req)
	if err != nil {
		return 0, nil, err
	}
	var made rdd.MadePack
	if err := json.Unmarshal(out.Data[0], &made); err != nil {
		return 0, nil, fault.New(fault.Corrupt, "read", "the description of a pack", err)
	}
	number, err := e.placePack(ctx, node, made.Holder, made.Meta)
	return number, made.Meta, err
}

// placePack hands a pack's splits to the executors.
func (e *embedded) placePack(ctx context.Context, node int, maker plan.ExecutorID, meta *storage.PackMeta) (int, error) {
	info := &driver.PackInfo{Node: node, Maker: maker}
	for _, s := range meta.Splits {
		info.Rows = append(info.Rows, s.Rows)
		if meta.Weighted {
			info.Weights = append(info.Weights, s.Weight)
		}
		if meta.Layout == storage.SparseLayout {
			info.Entries = append(info.Entries, s.Nonzeros)
		}
		info.Bytes = append(info.Bytes, s.Bytes)
		info.SHA256 = append(info.SHA256, s.SHA256)
	}
	e.metas[node], e.makers[node] = meta, maker
	if e.cfg.Pace != nil {
		e.cfg.Pace.Balance(meta.Rows)
	}
	number, err := e.back.OpenPack(ctx, info)
	if err != nil {
		return 0, err
	}
	e.nodes = append(e.nodes, node)
	mark := e.resumed.pack(node)
	if number == 0 {
		e.writeHeader(info)
	} else if !e.goesOn || mark == nil {
		e.log.Write(&driver.LogPack{Event: "pack", Pack: number, N: info.Rows, Weights: info.Weights, Entries: info.Entries, Splits: info.SHA256})
	}
	if mark != nil {
		if err := e.sameData(meta, mark); err != nil {
			return 0, err
		}
		r := mark.Ledger
		r.Pack = number
		e.back.Restore(&r)
		e.writeResume(&r)
	}
	return number, nil
}

func (e *embedded) writeHeader(info *driver.PackInfo) {
	if e.header {
		return
	}
	e.header = true
	e.log.Write(&driver.LogHeader{Event: "header", Version: driver.LogVersion, Job: e.name, Plan: e.plan, Args: e.args, Options: e.options(),
		N: info.Rows, Weights: info.Weights, Entries: info.Entries, Splits: info.SHA256, Machine: e.machine(),
		Versions: driver.LogVersions{Volley: Version, Go: runtime.Version(), Wire: wire.Version}})
}

// options are those that the job runs under, as the log has them.
func (e *embedded) options() driver.LogOptions {
	o := driver.OptionsOf(e.job)
	if o.Clock = "real"; e.cfg.Virtual {
		o.Clock = "virtual"
	}
	if e.remote == nil {
		o.Slots = e.cfg.Slots
	}
	if e.cfg.Pace != nil {
		o.Pace = e.cfg.Pace.Name
	}
	return o
}

func (e *embedded) writeResume(r *driver.Restored) {
	line := &driver.LogResume{Event: "resume", Pack: r.Pack, Step: r.Steps, Options: e.options()}
	for _, a := range r.Entries {
		line.Cursor = append(line.Cursor, a.Cursor)
		line.Merged = append(line.Merged, a.Merged)
	}
	e.log.Write(line)
}

// RunStep runs a step and notes it for the event log.
func (e *embedded) RunStep(ctx context.Context, req rdd.StepRequest) (*rdd.StepOutcome, error) {
	if e.began == 0 && (req.Train || req.Work) {
		e.began = max(1, e.back.Now())
	}
	start, digest := e.back.Now(), plan.DigestOf(req.Param)
	r, err := e.back.RunStep(ctx, &driver.StepRequest{Node: req.Node, Pack: req.Pack, Param: req.Param, Digest: digest, Train: req.Train, Ratio: req.Ratio, Pieces: req.Pieces, State: req.State, Weighted: req.Weighted, Entries: req.Entries, Batch: req.Batch})
	if err != nil {
		return nil, err
	}
	e.report, e.stepEnd = r, e.back.Now()
	if e.began > 0 && !req.Train && !req.Work {
		e.evaluated += e.stepEnd - start
	}
	if e.cfg.Observer != nil {
		e.cfg.Observer(r)
	}
	if req.Train {
		e.stepped = true
		e.flush()
		e.pending = driver.StepLine(r)
		e.pending.Params, e.pending.LogReports = digest, e.reportsOf(r)
	} else if !e.goesOn || e.stepped || req.Work {
		line := driver.EvaluationLine(r, digest)
		line.LogReports = e.reportsOf(r)
		e.passes = append(e.passes, line)
	} else {
		e.unlogged = e.reportsOf(r)
	}
	return e.outcomeOf(r), nil
}

// reportsOf are those of a step, and of the passes before it that have no line.
func (e *embedded) reportsOf(r *driver.StepReport) driver.LogReports {
	out := driver.LogReports{Reports: append(e.unlogged.Reports, r.Reports...), LeftOut: e.unlogged.LeftOut || !r.Kept}
	if e.unlogged = (driver.LogReports{}); out.LeftOut {
		out.Reports = nil
	}
	return out
}

func (e *embedded) outcomeOf(r *driver.StepReport) *rdd.StepOutcome {
	out := &rdd.StepOutcome{Splits: len(r.Coverage), Visited: make([]int64, len(r.Rows)), Scale: r.Train && !e.cfg.Job.ByRows,
		Info: rdd.StepInfo{Step: r.Number, Merged: r.Merged, Share: r.Share, NEff: r.NEff, Cut: r.Stats.Cut}}
	for i, c := range r.Coverage {
		out.Info.Rows += r.Rows[i]
		if c != nil {
			out.Visited[i] = c.Count
		}
	}
	for _, p := range r.Parts {
		out.Parts = append(out.Parts, rdd.EncodedPart{Level: int(p.Level), Index: int(p.Index), Data: p.Data, Weight: p.Weight})
	}
	return out
}

// Signal lets adaptive know what a step has shown.
func (e *embedded) Signal(spread, norm float64) {
	if e.cfg.Job.Sync.Policy == abss.Adapting {
		e.back.Signal(driver.Signal{Spread: spread, Norm: norm})
	}
}

// RunCall runs an action.
func (e *embedded) RunCall(ctx context.Context, c rdd.CallRequest) ([][]byte, []error, error) {
	out, err := e.back.RunCall(ctx, &driver.CallRequest{Node: c.Node, Pack: c.Pack, Args: c.Args, Partitions: c.Partitions, Holders: c.Holders, Avoid: c.Avoid})
	if err != nil {
		return nil, nil, err
	}
	return out.Data, out.Lost, nil
}

// Commit writes the step's line and, where due, a checkpoint.
func (e *embedded) Commit(ctx context.Context, c rdd.Commit) error {
	for name, v := range c.Values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			delete(c.Values, name) // JSON has no such numbers
		}
	}
	if e.pending != nil {
		e.pending.Iteration, e.pending.Params, e.pending.Values = c.Iteration, c.Digest, c.Values
		e.pending.Phases.Update = int64(e.back.Now() - e.stepEnd)
		if e.remote != nil {
			e.unsaid = append(e.unsaid, commitOf(e.report, c.Digest))
		}
	}
	e.flush()
	if err := e.log.Err(); err != nil {
		return err // it would be in vain: without its log the run fails in the end
	}
	if e.cfg.Checkpoints == "" || (c.Iteration%e.cfg.CheckpointEach != 0 && !c.Last && ctx.Err() == nil) {
		return nil
	}
	if e.remote != nil && !c.Last && time.Since(e.kept) < max(commitEvery, keepShare*e.keeping) {
		return nil
	}
	if !c.Last {
		return e.keep(c)
	}
	return e.keepLast(ctx, c)
}

// keep writes a checkpoint, and tells the cluster's driver of the steps that are in it:
// what is called committed is never done again. A checkpoint for which there is no
// room is tried again at the next commit; until then no step is called
// committed.
func (e *embedded) keep(c rdd.Commit) error {
	e.kept = time.Now()
	defer func() { e.keeping = time.Since(e.kept) }()
	err := e.checkpoint(c)
	if fault.KindOf(err) == fault.NoResources && e.log.Err() == nil {
		e.cfg.Logger.Warn("no checkpoint could be written; it is tried again at the next commit", "error", err)
		e.troubled("no step is committed: " + err.Error())
		return nil
	}
	if err == nil {
		e.troubled("")
	}
	if err == nil && e.remote != nil {
		e.remote.committed(e.unsaid)
		e.unsaid = nil
	}
	return err
}

// keepLast writes the checkpoint after which there is none, and waits for room for it.
func (e *embedded) keepLast(ctx context.Context, c rdd.Commit) error {
	var final error
	_ = driver.AwaitRoom(ctx, func() error { // what it is troubled by is said
		final = e.keep(c)
		if e.trouble == "" || final != nil {
			return nil
		}
		return errNoRoom
	})
	return final
}

var errNoRoom = errors.New("there is no room for a checkpoint")

// checkpoint writes a checkpoint, unless the state cannot be encoded, as the session is
// about to say.
func (e *embedded) checkpoint(c rdd.Commit) error {
	state := c.State()
	if state == nil {
		return nil
	}
	for len(e.loops) < c.Loop {
		e.loops = append(e.loops, loopMark{})
	}
	e.loops[c.Loop-1] = loopMark{Iteration: c.Iteration, Ended: c.Stopped, State: state}
	mark, err := e.log.Mark()
	if err != nil {
		return err
	}
	e.sequence++
	return writeCheckpoint(e.cfg.Checkpoints, &checkpoint{Version: checkpointVersion, Plan: e.plan, Job: e.cfg.Identity, Packs: e.marks(),
		Sequence: e.sequence, Loops: e.loops, Life: e.life, Executors: e.cfg.Executors, Log: mark})
}

// troubled notes what keeps steps from being committed, and tells the cluster's driver
// where that is news.
func (e *embedded) troubled(what string) {
	if e.remote != nil && what != e.trouble {
		e.remote.troubled(what)
	}
	e.trouble = what
}

// Evaluated adds the objective to the line of the pass that found it.
func (e *embedded) Evaluated(ev rdd.Evaluation) {
	if n := len(e.passes); n > 0 {
		e.passes[n-1].Iteration, e.passes[n-1].Objective = ev.Iteration, &ev.Objective
	}
}

// flush writes the lines that wait, in the order in which the program ran
// them: a step, whose digest its commit has brought, then the passes after it.
func (e *embedded) flush() {
	if e.pending != nil {
		e.log.Write(e.pending)
		e.pending = nil
	}
	for _, l := range e.passes {
		e.log.Write(l)
	}
	e.passes = nil
}

// Now is the time since the job began.
func (e *embedded) Now() time.Duration { return e.back.Now() }

// Resume is what the checkpoint that the job goes on from has of a loop, if any.
func (e *embedded) Resume(loop int) (int, []byte, bool) {
	if e.resumed == nil || loop > len(e.resumed.Loops) {
		return 0, nil, false
	}
	l := e.resumed.Loops[loop-1]
	return l.Iteration, l.State, l.Ended
}

func (e *embedded) outcome(s *rdd.Session, stoppedBy string) *Outcome {
	o := &Outcome{Load: s.LoadTime(), Evaluation: s.EvaluationTime(), Executors: e.cfg.Executors, StoppedBy: stoppedBy}
	if e.began > 0 {
		o.Train = e.stepEnd - e.began - e.evaluated
	}
	if e.report != nil {
		o.Counters = e.report.Counters
		o.Splits = len(e.report.Coverage)
	}
	return o
}
