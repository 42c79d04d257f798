package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/crash"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/programs"
	"github.com/volley-engine/volley/internal/wire"
)

// keeping starts a driver on a data directory.
func keeping(t *testing.T, dir string, k Keep) *Daemon {
	t.Helper()
	t.Setenv("VOLLEY_HOME", filepath.Join(dir, "home"))
	d, err := leading(Config{Listen: wire.SocketAddress(filepath.Join(dir, "driver.sock")), DataDir: dir,
		Program: "/bin/false", Keep: &k, Drain: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// finishedIn is a data directory in which n jobs have ended.
func finishedIn(t *testing.T, jobs int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	withFinished(t, dir, jobs)
	for n := 1; n <= jobs; n++ {
		finishedDirectory(t, dir, jobNumbered(n))
	}
	return dir
}

// jobsOf are the ids of a driver's jobs.
func jobsOf(t *testing.T, d *Daemon) (ids []string) {
	t.Helper()
	reply, err := d.Jobs(context.Background(), &wire.JobsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range reply.Jobs {
		ids = append(ids, j.Id)
	}
	return ids
}

// directories are the names in a data directory's jobs.
func directories(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "jobs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// pruned asks a driver to keep no more than that.
func pruned(t *testing.T, d *Daemon, k *wire.Keep) *wire.PruneReply {
	t.Helper()
	reply, err := d.Prune(context.Background(), &wire.PruneRequest{Keep: k})
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// TestPrunedJobsAreGone: from the list, the journal and the disk, also after the driver was
// started again; and their numbers are given to no other.
func TestPrunedJobsAreGone(t *testing.T) {
	dir := finishedIn(t, 5)
	d := keeping(t, dir, KeepAll)
	reply := pruned(t, d, &wire.Keep{Count: 2, AgeNs: -1, Bytes: -1})
	if want := []string{"job-000001", "job-000002", "job-000003"}; !slices.Equal(reply.Jobs, want) ||
		reply.Bytes < 3000 {
		t.Errorf("%v with %d bytes are removed", reply.Jobs, reply.Bytes)
	}
	left := []string{"job-000004", "job-000005"}
	for range 2 {
		if got := jobsOf(t, d); !slices.Equal(got, left) {
			t.Errorf("%v are listed", got)
		}
		if got := directories(t, dir); !slices.Equal(got, left) {
			t.Errorf("%v are on the disk", got)
		}
		if s := d.journal.State(); len(s.Jobs) != 2 || s.Last != 5 {
			t.Errorf("the journal has %d jobs up to %d", len(s.Jobs), s.Last)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = keeping(t, dir, KeepAll)
	}
	defer d.Close()
	pruned(t, d, &wire.Keep{AgeNs: -1, Bytes: -1})
	if id := submittedID(t, d); id != "job-000006" {
		t.Errorf("the next job is %s", id)
	}
}

// TestARemovedJobIsNamed where it is asked for.
func TestARemovedJobIsNamed(t *testing.T) {
	d := keeping(t, finishedIn(t, 1), KeepAll)
	defer d.Close()
	pruned(t, d, &wire.Keep{AgeNs: -1, Bytes: -1})
	for id, want := range map[string]string{"job-000001": "no longer kept", "job-000002": "there is no job"} {
		_, err := d.Jobs(context.Background(), &wire.JobsRequest{Id: id})
		if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestADriverKeepsWhatItWasTold, and what has just ended; it begins when it starts.
func TestADriverKeepsWhatItWasTold(t *testing.T) {
	dir := finishedIn(t, 4)
	d := keeping(t, dir, Keep{Count: 1, Age: -1, Bytes: -1})
	defer d.Close()
	within(t, "the jobs beyond --keep are there for ever", func() bool { return len(directories(t, dir)) == 1 })
	id := submittedID(t, d)
	endOf(t, d, id)
	if reply := pruned(t, d, nil); !slices.Equal(reply.Jobs, []string{"job-000004"}) {
		t.Errorf("%v are removed", reply.Jobs)
	}
	if got := jobsOf(t, d); !slices.Equal(got, []string{id}) {
		t.Errorf("%v are left", got)
	}
}

// within waits until something holds.
func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	end := time.NewTimer(bound)
	defer end.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatal(what)
		}
	}
}

// TestJobsThatRunAreNotPruned, whatever is to be kept.
func TestJobsThatRunAreNotPruned(t *testing.T) {
	d := scriptedDaemon(t, "exec sleep 600")
	w := submitted(t, d)
	awaitJob(t, w, "process", func(i *wire.JobInfo) bool { return i.State == JobRunning })
	if reply := pruned(t, d, &wire.Keep{}); len(reply.Jobs) > 0 {
		t.Errorf("%v are removed", reply.Jobs)
	}
	if _, err := os.Stat(w.dir); err != nil {
		t.Error(err)
	}
}

// slowly takes a download's first part and waits.
type slowly struct {
	sent
	first, proceed chan struct{}
}

func (s *slowly) Send(p *wire.FilePart) error {
	if len(s.files) == 0 {
		close(s.first)
		<-s.proceed
	}
	return s.sent.Send(p)
}

// TestADownloadIsNotPrunedUnderWay: it comes whole, and the job goes afterwards.
func TestADownloadIsNotPrunedUnderWay(t *testing.T) {
	d, _ := doneJob(t, "model.json", "weights.arrow")
	to := &slowly{sent: sent{files: map[string]string{}}, first: make(chan struct{}), proceed: make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- d.Download(&wire.DownloadRequest{Id: "job-000001"}, to) }()
	<-to.first
	if reply := pruned(t, d, &wire.Keep{}); len(reply.Jobs) > 0 {
		t.Errorf("%v are removed while somebody reads them", reply.Jobs)
	}
	close(to.proceed)
	if err := <-done; err != nil || len(to.files) != 2 {
		t.Errorf("%d files: %v", len(to.files), err)
	}
	if reply := pruned(t, d, &wire.Keep{}); len(reply.Jobs) != 1 {
		t.Errorf("%v are removed afterwards", reply.Jobs)
	}
}

// TestWithoutTheJournalNothingIsRemoved: a job of which the journal cannot be told that it
// is gone stays, and so do its files.
func TestWithoutTheJournalNothingIsRemoved(t *testing.T) {
	dir := finishedIn(t, 3)
	d := keeping(t, dir, KeepAll)
	defer d.Close()
	d.journal.store.mu.Lock()
	d.journal.store.broken = errors.New("its disk is gone")
	d.journal.store.mu.Unlock()
	if reply, err := d.Prune(context.Background(), &wire.PruneRequest{Keep: &wire.Keep{}}); err == nil {
		t.Errorf("%v are removed", reply.Jobs)
	}
	if got := directories(t, dir); len(got) != 3 {
		t.Errorf("%v are left", got)
	}
	if err := d.Download(&wire.DownloadRequest{Id: "job-000001"},
		&sent{files: map[string]string{}}); status.Code(err) == codes.NotFound {
		t.Error(err)
	}
}

// TestAnEndThatWasNotWrittenDown: a job that has ended, which the journal does not know,
// does not begin again without its directory.
func TestAnEndThatWasNotWrittenDown(t *testing.T) {
	dir := finishedIn(t, 1)
	d := keeping(t, dir, KeepAll)
	if err := d.journal.Append(context.Background(),
		Record{Kind: JobSubmitted, Job: "job-000002", Spec: &JobSpec{Kind: "logistic"}}); err != nil {
		t.Fatal(err)
	}
	w := d.jobs.newWork(&wire.JobInfo{Id: "job-000002", Job: "logistic", State: JobFailed, EndedUnixNs: 1}, "t")
	d.jobs.mu.Lock()
	d.jobs.add(w)
	d.jobs.mu.Unlock()
	pruned(t, d, &wire.Keep{})
	if s := d.journal.State(); len(s.Jobs) > 0 {
		t.Errorf("the journal has %v", s.Jobs)
	}
	_ = d.Close()
}

// TestProgramsGoWithTheirJobs: with the last of those that have it.
func TestProgramsGoWithTheirJobs(t *testing.T) {
	dir := t.TempDir()
	digest := strings.Repeat("ab", 32)
	r, err := OpenRaft(filepath.Join(dir, "journal"), hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []plan.JobID{"job-000001", "job-000002"} {
		err = errors.Join(err, r.Append(context.Background(),
			Record{Kind: JobSubmitted, Job: id, At: 1, Spec: &JobSpec{Kind: "own", Program: digest}},
			Record{Kind: JobEnded, Job: id, State: JobDone, At: int64(i)}))
	}
	path := filepath.Join(dir, "programs", digest)
	err = errors.Join(err, r.Close(), os.MkdirAll(filepath.Dir(path), 0o700),
		os.WriteFile(path, []byte("program"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	d := keeping(t, dir, KeepAll)
	defer d.Close()
	pruned(t, d, &wire.Keep{Count: 1, AgeNs: -1, Bytes: -1})
	if _, err := os.Stat(path); err != nil {
		t.Errorf("a job that is kept has lost its program: %v", err)
	}
	pruned(t, d, &wire.Keep{})
	if _, err := os.Stat(path); err == nil {
		t.Error("a program that no job has is kept")
	}
}

// TestARemovalSurvivesALossOfPower: wherever it comes, a job is there with all of its files,
// or it is gone, and after the next start its directory is, too; what was removed stays so.
func TestARemovalSurvivesALossOfPower(t *testing.T) {
	root := finishedIn(t, 3)
	rec := crash.Record(t, root)
	d := tableOn(t, root)
	ids, _, err := d.jobs.prune(Keep{Count: 1, Age: -1, Bytes: -1}, 0)
	rec.Promise()
	if err = errors.Join(err, d.journal.Close()); err != nil || len(ids) != 2 {
		t.Fatal(ids, err)
	}
	rec.End(t)
	faults, states, known := 0, 0, map[string]State{}
	for s := range rec.States(t) {
		dir := s.Put(t)
		why, err := remainder(dir, known, s.Promised > 0)
		if (why != "" || err != nil) && faults < 5 {
			t.Errorf("%v: %s %v", s, why, err)
			faults++
		}
		states++
	}
	t.Logf("%d operations, %d states", len(rec.Ops()), states)
}

// tableOn is as much of a driver as has jobs.
func tableOn(t *testing.T, dir string) *Daemon {
	t.Helper()
	d := &Daemon{Replica: &Replica{cfg: Config{DataDir: dir}.EnsureDefaults(), log: hclog.NewNullLogger()},
		ctx: context.Background()}
	var err error
	if d.programs, err = programs.Open(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if d.journal, err = OpenRaft(filepath.Join(dir, "journal"), d.log); err != nil {
		t.Fatal(err)
	}
	d.jobs = openJobs(d, d.journal.State())
	return d
}

// remainder starts as a driver does, and says what is wrong with what is left. Known are
// the states of journals that were opened before.
func remainder(dir string, known map[string]State, promised bool) (why string, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, "journal", journalName))
	if err != nil {
		return "", err
	}
	s, ok := known[string(raw)]
	if !ok {
		r, err := OpenRaft(filepath.Join(dir, "journal"), hclog.NewNullLogger())
		if err != nil {
			return "", err
		}
		s = r.State()
		if err := r.Close(); err != nil {
			return "", err
		}
		known[string(raw)] = s
	}
	if err := removeLeftOver(filepath.Join(dir, "jobs"), s); err != nil {
		return "", err
	}
	for n := 1; n <= 3; n++ {
		id := jobNumbered(n)
		_, kept := s.Jobs[id]
		files, _ := filepath.Glob(filepath.Join(dir, "jobs", string(id), "*"))
		switch {
		case kept && len(files) != 3:
			return string(id) + " has lost files", nil
		case !kept && len(files) > 0:
			return string(id) + " is gone, its files are not", nil
		case promised && kept != (n == 3):
			return string(id) + " is not as was promised", nil
		}
	}
	return "", nil
}
