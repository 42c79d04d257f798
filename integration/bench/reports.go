package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/internal/wire"
)

// reports: a job's controller with a thousand executors of four splits, each
// of which reports ten times a second. What ten seconds of that cost is
// measured by sending it as fast as it goes.
func reports(ctx context.Context, _ string, _ int64) error {
	const executors, splits, rounds = 1000, 4, 100
	fingerprint := plan.DigestOf([]byte("reports"))
	d := driver.NewDriver(driver.JobConfig{ID: "reports", Fingerprint: fingerprint, Executors: executors,
		ReportInterval: time.Hour}, hclog.NewNullLogger())
	defer d.Close()
	fakes := make([]*fakeExecutor, executors)
	for i := range fakes {
		down, up := wire.Pipe()
		d.Attach(down)
		fakes[i] = &fakeExecutor{conn: up, started: make(chan *wire.StartStep, 1)}
		go fakes[i].serve(fmt.Sprint("e", i), fingerprint)
	}
	if err := d.Start(ctx); err != nil {
		return err
	}
	info := &driver.PackInfo{}
	for range executors * splits {
		info.Rows, info.Bytes, info.SHA256 = append(info.Rows, fakeRows), append(info.Bytes, 1),
			append(info.SHA256, fingerprint)
	}
	if _, err := d.Ask(ctx, driver.Event{Pack: info}); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		_, err := d.Ask(ctx, driver.Event{Step: &plan.StepRequest{Train: true}})
		done <- err
	}()
	steps := make([]*wire.StartStep, executors)
	for i, f := range fakes {
		steps[i] = <-f.started
	}
	before := cpuSeconds()
	for round := range rounds {
		for i, f := range fakes {
			p := &wire.Progress{Step: steps[i].Step}
			for _, t := range steps[i].Tasks {
				p.Counts = append(p.Counts, &wire.Count{Split: t.Split, Attempt: t.Attempt, Epoch: t.Epoch,
					Processed: uint64(round + 1)})
			}
			if err := f.conn.Send(&wire.ToDriver{Body: &wire.ToDriver_Progress{Progress: p}}); err != nil {
				return err
			}
		}
	}
	for i, f := range fakes { // results come after all reports: with the last one the step ends
		if err := f.finish(steps[i]); err != nil {
			return err
		}
	}
	if err := <-done; err != nil {
		return err
	}
	took := cpuSeconds() - before
	fmt.Printf("controller, 1000 executors × 4 splits: 10 s of 10 reports a second each take %.1f s of one core "+
		"(%.2f of it), sending included; resident %.0f MB (limit 300)\n",
		took, took/10, float64(peak())/1e6)
	return nil
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// fakeRows are the rows of a split that is never folded.
const fakeRows = 1_000_000

// finish reports to the controller that every row of a step was folded.
func (f *fakeExecutor) finish(s *wire.StartStep) error {
	r := &wire.Result{Step: s.Step}
	for _, t := range s.Tasks {
		r.Coverage = append(r.Coverage, &wire.Coverage{Split: t.Split, Attempt: t.Attempt, Epoch: t.Epoch,
			Count: fakeRows, Folded: fakeRows})
	}
	return f.conn.Send(&wire.ToDriver{Body: &wire.ToDriver_Result{Result: r}})
}

// fakeExecutor answers as an executor does, and folds nothing.
type fakeExecutor struct {
	conn    wire.ExecutorConn
	started chan *wire.StartStep
}

func (f *fakeExecutor) serve(name string, fingerprint plan.Digest) {
	send := func(m *wire.ToDriver) { _ = f.conn.Send(m) }
	send(&wire.ToDriver{Body: &wire.ToDriver_Register{Register: &wire.Register{Executor: name, Slots: 1,
		Version: version.Oldest}}})
	for {
		m, err := f.conn.Recv()
		if err != nil {
			return
		}
		switch b := m.Body.(type) {
		case *wire.ToExecutor_Prepare:
			send(&wire.ToDriver{Body: &wire.ToDriver_Prepared{Prepared: &wire.Prepared{Job: b.Prepare.Job,
				Fingerprint: fingerprint[:]}}})
		case *wire.ToExecutor_Hold:
			h := b.Hold
			send(&wire.ToDriver{Body: &wire.ToDriver_Holding{Holding: &wire.Holding{Job: h.Job, Pack: h.Pack,
				Split: h.Split, Sha256: h.Sha256}}})
		case *wire.ToExecutor_StartStep:
			f.started <- b.StartStep
		}
	}
}
