package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// jobNumbered is the id of a job.
func jobNumbered(n int) plan.JobID { return plan.JobID(fmt.Sprintf("job-%06d", n)) }

// finishedRecords are the decisions about a job that has ended.
func finishedRecords(n int) []Record {
	id := jobNumbered(n)
	spec := &JobSpec{Kind: "logistic", Args: []string{"--data=/data/train.libsvm", "--reg=0.1", "--sync=absp",
		"--sync-ratio=0.5", "--max-iterations=100"}, Token: fmt.Sprintf("%048d", n)}
	return []Record{{Kind: JobSubmitted, Job: id, At: int64(2 * n), Spec: spec}, {Kind: JobStarted, Job: id, Term: 1},
		{Kind: StepCommitted, Job: id, Step: 7, Epoch: 9},
		{Kind: JobEnded, Job: id, State: JobDone, At: int64(2*n + 1),
			Files: []MadeFile{{Path: "out/model.json", Size: 5}}}}
}

// finishedDirectory is what a job that has ended has left.
func finishedDirectory(t *testing.T, dir string, id plan.JobID) {
	t.Helper()
	own := filepath.Join(dir, "jobs", string(id))
	err := os.MkdirAll(filepath.Join(own, "out"), 0o700)
	for name, text := range map[string]string{"result.json": `{"job":"logistic","why":"` + strings.Repeat("x", 1000) +
		`"}`, "log.0": "trained\n", "out/model.json": "model"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(own, name), []byte(text), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// withFinished is the data directory of a driver whose first n jobs have ended.
func withFinished(t testing.TB, dir string, jobs int) {
	t.Helper()
	r, err := OpenRaft(filepath.Join(dir, "journal"), hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	var all []Record
	for n := 1; n <= jobs; n++ {
		all = append(all, finishedRecords(n)...)
	}
	for part := range slices.Chunk(all, 400) {
		err = errors.Join(err, r.Append(context.Background(), part...))
	}
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
}

// startedOn is a driver on a data directory.
func startedOn(t *testing.T, dir string) *Daemon {
	t.Helper()
	t.Setenv("VOLLEY_HOME", filepath.Join(dir, "home"))
	d, err := leading(Config{Listen: wire.SocketAddress(filepath.Join(dir, "driver.sock")), HTTP: "127.0.0.1:0",
		DataDir: dir, Program: "/bin/false",
		Keep: &KeepAll})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// allocated is how many bytes something allocates, the least of a few times.
func allocated(do func()) (least uint64) {
	for i := range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; i == 0 || n < least {
			least = n
		}
	}
	return least
}

// TestFinishedJobsCostNothingToWatch: what a driver does all the time looks at the jobs
// that run, and not at those that have ended.
func TestFinishedJobsCostNothingToWatch(t *testing.T) {
	const few, many, aJob = 10, 1000, 4 // a list of jobs takes eight bytes for each
	var less, more map[string]uint64
	t.Run("few", func(t *testing.T) { less = watching(t, few) })
	t.Run("many", func(t *testing.T) { more = watching(t, many) })
	for what, n := range more {
		if n > less[what]+(many-few)*aJob {
			t.Errorf("%s takes %d bytes where %d jobs have ended, and %d where %d have", what, n, many, less[what], few)
		}
	}
}

// watching returns how many bytes each thing allocates that a driver does all the time,
// where some jobs have ended.
func watching(t *testing.T, jobs int) map[string]uint64 {
	t.Helper()
	dir := t.TempDir()
	withFinished(t, dir, jobs)
	d := startedOn(t, dir)
	took := map[string]uint64{}
	m := &member{name: "e1", out: wire.NewOutbox(func(*wire.ForExecutor) error { return nil }, func(error) {})}
	for what, do := range map[string]func(){
		"looking for hung processes": func() { d.jobs.killSilent(wire.NewFailureDetector(time.Second)) },
		"an executor that joins":     func() { _ = d.jobs.memberJoined(m) },
		"an executor that leaves":    func() { d.jobs.memberLeft(m, "it was killed") },
		"an executor that is drained": func() {
			d.jobs.step(LifeEvent{Member: &MemberEvent{Executor: m.name,
				Drain: true}})
		},
		"whether a program is needed": func() { d.jobs.uses("digest") },
		"whether anything is due":     func() { d.jobs.step(LifeEvent{}) },
	} {
		took[what] = allocated(do)
	}
	return took
}

// TestTenThousandFinishedJobs says what they cost.
func TestTenThousandFinishedJobs(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes many directories")
	}
	const jobs = 10000
	dir := t.TempDir()
	withFinished(t, dir, jobs)
	for n := 1; n <= jobs; n += 10 {
		finishedDirectory(t, dir, jobNumbered(n))
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, began := heap(), time.Now()
	d := startedOn(t, dir)
	start := time.Since(began)
	memory := heap() - before
	ctx, conn := connected(t, d, "")
	began = time.Now()
	reply, err := wire.NewClusterClient(conn).Jobs(ctx, &wire.JobsRequest{Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	list := time.Since(began)
	began = time.Now()
	const looks = 20
	for range looks {
		d.jobs.killSilent(wire.NewFailureDetector(time.Second))
	}
	look := time.Since(began) / looks
	began = time.Now()
	_, metrics := get(t, d, "/metrics", nil)
	scrape := time.Since(began)
	if !strings.Contains(metrics, fmt.Sprintf(`volley_jobs{state="done"} %d`, jobs)) {
		t.Error("they are not counted")
	}
	journal, err := os.Stat(filepath.Join(dir, "journal", journalName))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d jobs: the driver starts in %v, holds %.1f MiB for them, lists %d in %v, looks for hung processes in "+
		"%v, is scraped in %v; its journal has %.1f MiB",
		jobs, start.Round(time.Millisecond), float64(memory)/(1<<20), len(reply.Jobs), list.Round(time.Millisecond),
		look.Round(time.Microsecond), scrape.Round(time.Millisecond), float64(journal.Size())/(1<<20))
	if look > 500*time.Microsecond {
		t.Errorf("a look for hung processes takes %v", look)
	}
}

// TestAJournalForgetsWhatASnapshotHas: entries of jobs that were removed do not stay.
func TestAJournalForgetsWhatASnapshotHas(t *testing.T) {
	r, err := OpenRaft(t.TempDir(), hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for n := range 3 * trailing {
		if err := r.Append(context.Background(), Record{Kind: JobRestarted, Job: jobNumbered(n)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	if n := len(r.store.logs); n > trailing+1 {
		t.Errorf("%d entries are left", n)
	}
}
