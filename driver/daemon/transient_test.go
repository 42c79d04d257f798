package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/volley-engine/volley/internal/wire"
)

// outOfDescriptors leaves this process none, until there are some again.
func outOfDescriptors(t *testing.T) (again func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	again = func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) }
	t.Cleanup(again)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 1, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	return again
}

// TestWithoutDescriptorsAJobWaits: that its process cannot be started is no failure of the
// job's. It says what it waits for, and runs when there are some again.
func TestWithoutDescriptorsAJobWaits(t *testing.T) {
	d, dir := scripted(t, "echo x >> LEFT/starts; exec sleep 600")
	again := outOfDescriptors(t)
	w := submitted(t, d)
	info := awaitJob(t, w, "sign of want", func(i *wire.JobInfo) bool { return i.Why != "" })
	if Over(info.State) || !strings.Contains(info.Why, "too many open files") || info.Restarts > 0 {
		t.Errorf("a driver without descriptors: %v", info)
	}
	again()
	info = awaitJob(t, w, "process", func(i *wire.JobInfo) bool { return i.State == JobRunning })
	within(t, "the process does not run", func() bool {
		raw, _ := os.ReadFile(filepath.Join(dir, "starts"))
		return len(raw) > 0
	})
	if info.Restarts > 0 || strings.Contains(info.Why, "open files") {
		t.Errorf("once there are some again: %v", info)
	}
}

// TestAJobThatWaitsToBeStartedCanBeCancelled, at once.
func TestAJobThatWaitsToBeStartedCanBeCancelled(t *testing.T) {
	d, _ := scripted(t, "exec sleep 600")
	again := outOfDescriptors(t)
	w := submitted(t, d)
	awaitJob(t, w, "sign of want", func(i *wire.JobInfo) bool { return i.Why != "" })
	if err := w.cancel(); err != nil {
		t.Fatal(err)
	}
	if info := awaitJob(t, w, "end", over); info.State != JobCancelled {
		t.Errorf("%v", info)
	}
	again()
}

// beats has an executor say how it is.
func beats(t *testing.T, s wire.Cluster_ServeClient, b *wire.Beat) {
	t.Helper()
	if err := s.Send(&wire.FromExecutor{Body: &wire.FromExecutor_Beat{Beat: b}}); err != nil {
		t.Fatal(err)
	}
}

// asked waits until an executor is asked for a runner, or to end one.
func asked(t *testing.T, s wire.Cluster_ServeClient) (open bool) {
	t.Helper()
	for {
		m, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if m.GetOpen() != nil || m.GetClose() != nil {
			return m.GetOpen() != nil
		}
	}
}

// executorNamed is how a driver shows an executor.
func executorNamed(d *Daemon, name string) ExecutorView {
	for _, e := range d.executorViews() {
		if e.Name == name {
			return e
		}
	}
	return ExecutorView{}
}

// TestAnUnfitExecutorIsNamed, and given no work: its runner of a job is ended, the job waits
// and does not fail, however often runners there end; and when the executor is fit again, it
// is asked for a runner.
func TestAnUnfitExecutorIsNamed(t *testing.T) {
	d := scriptedDaemon(t, "exec sleep 600")
	e := asExecutor(t, d, "e1")
	w := submitted(t, d)
	asProcess(t, d, w)
	if !asked(t, e) {
		t.Fatal("the executor is not asked for a runner")
	}
	const why = "its data directory cannot be used: /data: no such file or directory"
	beats(t, e, &wire.Beat{Unfit: why})
	for range 2 * maxRunners {
		if err := e.Send(&wire.FromExecutor{Body: &wire.FromExecutor_Closed{Closed: &wire.CloseJob{Job: w.info.Id,
			Why: "start a runner: chdir"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if asked(t, e) {
		t.Error("an unfit executor is asked for a runner")
	}
	info := awaitJob(t, w, "word of the executor", func(i *wire.JobInfo) bool { return i.Why != "" })
	if Over(info.State) || !strings.Contains(info.Why, "e1 is unfit") {
		t.Errorf("the job is %v", info)
	}
	if v := executorNamed(d, "e1"); v.State != "unfit" || v.Why != why {
		t.Errorf("the executor is %+v", v)
	}
	beats(t, e, &wire.Beat{})
	if !asked(t, e) {
		t.Error("an executor that is fit again is not asked for a runner")
	}
	awaitJob(t, w, "end of the wait", func(i *wire.JobInfo) bool { return i.Why == "" && i.State == JobRunning })
	if v := executorNamed(d, "e1"); v.State != "alive" || v.Why != "" {
		t.Errorf("the executor is %+v", v)
	}
}
