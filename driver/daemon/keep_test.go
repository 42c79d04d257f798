package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/volley-engine/volley/internal/plan"
)

// TestWhichJobsGo runs the stories of testdata/keep. Commands:
//
//	jobs    then one a line: ID, how long ago it ended, bytes, and held where somebody reads its files
//	keep [count=N] [age=D] [bytes=N] [grace=D]
func TestWhichJobsGo(t *testing.T) {
	now := time.Unix(1e9, 0)
	var jobs []finishedJob
	datadriven.RunTest(t, "testdata/keep", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "jobs" {
			jobs = nil
			for line := range strings.Lines(d.Input) {
				jobs = append(jobs, finishedOf(t, strings.Fields(line), now))
			}
			return ""
		}
		k, grace := keepOf(t, d)
		if ids := k.beyond(jobs, now, grace); len(ids) > 0 {
			return strings.Join(ids, " ") + "\n"
		}
		return "none\n"
	})
}

func finishedOf(t *testing.T, f []string, now time.Time) finishedJob {
	t.Helper()
	ago, err := time.ParseDuration(f[1])
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return finishedJob{id: f[0], number: jobNumber(f[0]), ended: now.Add(-ago), bytes: n, held: len(f) > 3}
}

func keepOf(t *testing.T, d *datadriven.TestData) (k Keep, grace time.Duration) {
	t.Helper()
	k = KeepAll
	for _, a := range d.CmdArgs {
		var err error
		switch v := a.Vals[0]; a.Key {
		case "count":
			k.Count, err = strconv.Atoi(v)
		case "age":
			k.Age, err = time.ParseDuration(v)
		case "bytes":
			k.Bytes, err = strconv.ParseInt(v, 10, 64)
		case "grace":
			grace, err = time.ParseDuration(v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return k, grace
}

// TestWhatStaysIsWithinTheLimits, for any jobs and limits: a job that is held or has just
// ended stays; of the others the last to end do, as many as the limits allow; and who
// stays once stays at a second look, too.
func TestWhatStaysIsWithinTheLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1e9, 0)
		jobs := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) finishedJob {
			number := rapid.IntRange(1, 50).Draw(t, "number")
			return finishedJob{id: jobName(number), number: number,
				ended: now.Add(-rapid.SampledFrom([]time.Duration{-time.Hour, 0, time.Minute, time.Hour,
					2 * time.Hour}).Draw(t, "ago")),
				bytes: int64(rapid.IntRange(0, 20).Draw(t, "bytes")), held: rapid.IntRange(0, 5).Draw(t, "held") == 0}
		}), 0, 20, func(j finishedJob) string { return j.id }).Draw(t, "jobs")
		k := Keep{Count: rapid.IntRange(-1, 20).Draw(t, "count"),
			Age:   time.Duration(rapid.IntRange(-1, 100).Draw(t, "age")) * time.Minute,
			Bytes: int64(rapid.IntRange(-1, 200).Draw(t, "bytes"))}
		const grace = 10 * time.Minute
		gone := k.beyond(jobs, now, grace)
		var left []finishedJob
		for _, j := range jobs {
			age := now.Sub(j.ended)
			free := !j.held && (age < 0 || age >= grace)
			switch {
			case !slices.Contains(gone, j.id):
				left = append(left, j)
				if free && k.Age >= 0 && age > k.Age {
					t.Errorf("%s stays, which ended %v ago", j.id, age)
				}
			case !free:
				t.Errorf("%s goes, which is held, or has just ended", j.id)
			}
		}
		slices.SortFunc(left, laterFirst)
		checkLimits(t, k, left, now, grace)
		if again := k.beyond(left, now, grace); len(again) > 0 {
			t.Errorf("at a second look %v go too", again)
		}
	})
}

// checkLimits holds those that stay, the last to end first, against the limits.
func checkLimits(t *rapid.T, k Keep, left []finishedJob, now time.Time, grace time.Duration) {
	var sum int64
	for place, j := range left {
		sum += j.bytes
		age := now.Sub(j.ended)
		if j.held || age >= 0 && age < grace {
			continue
		}
		if k.Count >= 0 && place >= k.Count {
			t.Errorf("%s stays, before which %d others ended later", j.id, place)
		}
		if k.Bytes >= 0 && place > 0 && sum > k.Bytes {
			t.Errorf("%s stays, with which those that ended later take %d bytes", j.id, sum)
		}
	}
}

// TestTheNumbersOfJobs: what is no job's id has no number.
func TestTheNumbersOfJobs(t *testing.T) {
	for id, want := range map[string]int{"job-000001": 1, "job-999999": 999999, "job-1000000": 1000000,
		"job-1": 0, "job-0000001": 0, "job--00001": 0, "job-+00001": 0, "job-": 0, "jobs": 0, "job-000001.old": 0,
		"job-000000": 0} {
		if got := jobNumber(id); got != want {
			t.Errorf("%s: %d, want %d", id, got, want)
		}
	}
}

// TestOnlyWhatWasRemovedIsLeftOver: directories that no removed job has had are nobody's to
// remove.
func TestOnlyWhatWasRemovedIsLeftOver(t *testing.T) {
	s := State{Last: 5, Jobs: map[plan.JobID]JobState{"job-000002": {State: JobDone}, "job-000004": {}}}
	got := leftOver([]string{"job-000001", "job-000002", "job-000003", "job-000004", "job-000005", "job-000006",
		"job-7", "mine", "job-000001.bak", ".part"}, s)
	if want := []string{"job-000001", "job-000003", "job-000005"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestARemovedJobIsForgotten, but its number is not; one that has not ended cannot be
// removed, and records of one that was change nothing.
func TestARemovedJobIsForgotten(t *testing.T) {
	var s State
	spec := &JobSpec{Kind: "logistic"}
	apply := func(rs ...Record) {
		for _, r := range rs {
			s.Apply(r)
		}
	}
	apply(Record{Kind: JobSubmitted, Job: "job-000007", Spec: spec},
		Record{Kind: JobSubmitted, Job: "job-000006", Spec: spec}, Record{Kind: JobRemoved, Job: "job-000006"})
	if _, there := s.Jobs["job-000006"]; !there {
		t.Error("a job that runs was removed")
	}
	apply(Record{Kind: JobEnded, Job: "job-000007", State: JobFailed}, Record{Kind: JobRemoved, Job: "job-000007"},
		Record{Kind: StepCommitted, Job: "job-000007", Step: 3},
		Record{Kind: JobEnded, Job: "job-000007", State: JobDone}, Record{Kind: JobRemoved, Job: "job-000007"})
	if len(s.Jobs) != 1 || s.Last != 7 {
		t.Errorf("%d jobs, the last number is %d", len(s.Jobs), s.Last)
	}
}

// TestASnapshotKeepsTheLastNumber, and one of an earlier version, which has none, does not
// give the numbers of its jobs away.
func TestASnapshotKeepsTheLastNumber(t *testing.T) {
	for _, c := range []struct {
		text string
		last int
	}{{`{"jobs":{"job-000003":{},"job-000012":{}}}`, 12}, {`{"jobs":{"job-000003":{}},"last":9}`, 9},
		{`{"jobs":{}}`, 0}} {
		m := &machine{}
		if err := m.Restore(io.NopCloser(strings.NewReader(c.text))); err != nil {
			t.Fatal(err)
		}
		if got := m.copy().Last; got != c.last {
			t.Errorf("%s: %d, want %d", c.text, got, c.last)
		}
		s, err := m.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		var back State
		if err := json.Unmarshal(s.(snapshot), &back); err != nil || back.Last != c.last ||
			!bytes.Contains(s.(snapshot), fmt.Append(nil, `"last":`, c.last)) {
			t.Errorf("%s comes back as %s (%v)", c.text, s, err)
		}
	}
}
