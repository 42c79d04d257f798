package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/wire"
)

// TestWhatFollowsFromTheEndOfAProcess: whose fault it is decides.
func TestWhatFollowsFromTheEndOfAProcess(t *testing.T) {
	for _, c := range []struct {
		e    lifeEnd
		want verdict
		why  string
	}{
		{lifeEnd{said: true}, jobIsDone, ""},
		{lifeEnd{said: true, code: 1, why: "bad input"}, jobHasFailed, "bad input"},
		{lifeEnd{said: true, cancelled: true}, jobIsCancelled, "cancelled"},
		{lifeEnd{cancelled: true, passing: true}, jobIsCancelled, "cancelled"},
		{lifeEnd{said: true, failure: "no runner lives"}, jobHasFailed, "no runner lives"},
		{lifeEnd{said: true, closing: true}, jobGoesOn, ""},
		{lifeEnd{closing: true, most: 5}, jobGoesOn, ""},
		{lifeEnd{most: 5}, startAgain, ""},
		{lifeEnd{most: 5, restarts: 5}, jobHasFailed, ""},
		{lifeEnd{}, jobHasFailed, ""},
		{lifeEnd{lost: true, restarts: 9, most: 5}, startLater, ""},
		{lifeEnd{passing: true, restarts: 9, most: 5}, startLater, ""},
		{lifeEnd{never: "its program is gone", most: 5}, jobHasFailed, "its program is gone"},
	} {
		if got, why := c.e.judge(); got != c.want || why != c.why {
			t.Errorf("%+v: %v %q, want %v %q", c.e, got, why, c.want, c.why)
		}
	}
}

// resumed has a job go on.
func resumed(d *Daemon, id string) error {
	_, err := d.Resume(context.Background(), &wire.ResumeRequest{Id: id})
	return err
}

// TestAFailedJobIsResumed, under its id, in its directory, in its next term, with all of its
// restarts; also when the driver is started again meanwhile.
func TestAFailedJobIsResumed(t *testing.T) {
	d, dir := scripted(t, `echo "$PWD" >> LEFT/starts; test -e LEFT/better && exec sleep 600; exit 1`)
	id := submittedID(t, d)
	endOf(t, d, id)
	if err := os.WriteFile(filepath.Join(dir, "better"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := resumed(d, id); err != nil {
		t.Fatal(err)
	}
	w, err := d.jobs.find(id)
	if err != nil {
		t.Fatal(err)
	}
	info := awaitJob(t, w, "process", func(i *wire.JobInfo) bool { return i.State == JobRunning })
	if info.Restarts > 0 || info.Why != "" || info.EndedUnixNs > 0 {
		t.Errorf("it goes on as %v", info)
	}
	within(t, "it does not begin", func() bool {
		raw, _ := os.ReadFile(filepath.Join(dir, "starts"))
		return strings.Count(string(raw), "\n") == 2+DefaultRestarts
	})
	raw, _ := os.ReadFile(filepath.Join(dir, "starts"))
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	for i, line := range lines {
		if !strings.HasSuffix(line, filepath.Join("jobs", id)) {
			t.Errorf("process %d runs in %s", i, line)
		}
	}
	if s := d.journal.State().Jobs["job-000001"]; s.State != "" || s.Term != uint32(len(lines)) || s.Restarts != 0 {
		t.Errorf("the journal has %+v after %d processes", s, len(lines))
	}
	if err := resumed(d, id); status.Code(err) != codes.InvalidArgument {
		t.Errorf("resumed while it runs: %v", err)
	}
	if reply := pruned(t, d, &wire.Keep{}); len(reply.Jobs) > 0 {
		t.Error("it is removed while it runs")
	}
}

// TestACancelledJobIsResumed, and cancelled again.
func TestACancelledJobIsResumed(t *testing.T) {
	d, _ := scripted(t, "exec sleep 600")
	id := submittedID(t, d)
	for range 3 {
		w, err := d.jobs.find(id)
		if err != nil {
			t.Fatal(err)
		}
		awaitJob(t, w, "process", func(i *wire.JobInfo) bool { return i.State == JobRunning })
		if err := w.cancel(); err != nil {
			t.Fatal(err)
		}
		if info := endOf(t, d, id); info.State != JobCancelled {
			t.Fatalf("%v", info)
		}
		if err := resumed(d, id); err != nil {
			t.Fatal(err)
		}
	}
	if s := d.journal.State().Jobs["job-000001"]; s.State != "" {
		t.Errorf("the journal has %+v", s)
	}
}

// TestWhatCannotBeResumed says why, and changes nothing.
func TestWhatCannotBeResumed(t *testing.T) {
	d, _ := doneJob(t, "model.json")
	if err := resumed(d, "job-000001"); status.Code(err) != codes.InvalidArgument ||
		!strings.Contains(err.Error(), "is done") {
		t.Errorf("one that is done: %v", err)
	}
	if err := resumed(d, "job-000002"); status.Code(err) != codes.NotFound {
		t.Errorf("one that is not there: %v", err)
	}
	id := submittedID(t, d) // of a program that ends at once
	endOf(t, d, id)
	d.journal.store.mu.Lock()
	d.journal.store.broken = errors.New("its disk is gone")
	d.journal.store.mu.Unlock()
	for range 2 {
		if err := resumed(d, id); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("without a journal: %v", err)
		}
	}
	if info := endOf(t, d, id); info.State != JobFailed {
		t.Errorf("the job is %v", info)
	}
	if err := os.RemoveAll(filepath.Join(d.cfg.DataDir, "jobs", id)); err != nil {
		t.Fatal(err)
	}
	if err := resumed(d, id); status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "directory") {
		t.Errorf("without its directory: %v", err)
	}
}

// TestARestartOfTheDriverKeepsWhatWasResumed.
func TestARestartOfTheDriverKeepsWhatWasResumed(t *testing.T) {
	var s State
	for _, r := range []Record{{Kind: JobSubmitted, Job: "job-000001", Spec: &JobSpec{}, At: 1},
		{Kind: JobStarted, Job: "job-000001", Term: 4},
		{Kind: StepCommitted, Job: "job-000001", Step: 9}, {Kind: JobRestarted, Job: "job-000001"},
		{Kind: JobEnded, Job: "job-000001", State: JobFailed, At: 2},
		{Kind: JobResumed, Job: "job-000001", At: 3}, {Kind: JobStarted, Job: "job-000001", Term: 5}} {
		s.Apply(r)
	}
	j := s.Jobs["job-000001"]
	if j.State != "" || j.Term != 5 || j.Step != 9 || j.Restarts != 0 || j.Resumed != 3 {
		t.Errorf("%+v", j)
	}
	s.Apply(Record{Kind: JobEnded, Job: "job-000001", State: JobDone})
	s.Apply(Record{Kind: JobResumed, Job: "job-000001", At: 4})
	if j := s.Jobs["job-000001"]; j.State != JobDone {
		t.Errorf("one that is done: %+v", j)
	}
}

// TestAJobHasAsManyRestartsAsItWasGiven.
func TestAJobHasAsManyRestartsAsItWasGiven(t *testing.T) {
	for _, restarts := range []uint32{0, 2} {
		t.Run(fmt.Sprint(restarts), func(t *testing.T) {
			d, dir := scripted(t, "echo x >> LEFT/starts; exit 1", func(c *Config) { c.Restarts = &restarts })
			endOf(t, d, submittedID(t, d))
			if raw, _ := os.ReadFile(filepath.Join(dir, "starts")); strings.Count(string(raw), "x") != int(restarts)+1 {
				t.Errorf("it was started %d times", strings.Count(string(raw), "x"))
			}
		})
	}
}

// TestAResumedJobTakesItsTurnAnew: it comes after those of its pool that are there already.
func TestAResumedJobTakesItsTurnAnew(t *testing.T) {
	d, _ := scripted(t, "test -e mine && exec sleep 600; touch mine; exit 1",
		func(c *Config) { c.Restarts = new(uint32) })
	submit := func() string {
		reply, err := d.Submit(context.Background(), &wire.SubmitRequest{Job: "logistic", Pool: "p"})
		if err != nil {
			t.Fatal(err)
		}
		return reply.Id
	}
	first, second := submit(), ""
	endOf(t, d, first)
	second = submit()
	endOf(t, d, second)
	for _, id := range []string{second, first} {
		if err := resumed(d, id); err != nil {
			t.Fatal(err)
		}
	}
	w, err := d.jobs.find(first)
	if err != nil {
		t.Fatal(err)
	}
	if info := awaitJob(t, w, "turn", func(i *wire.JobInfo) bool {
		return i.Why != "" ||
			i.State == JobRunning
	}); !strings.Contains(info.Why, second) {
		t.Errorf("%v", info)
	}
}
