package daemon

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/plan"
)

// Keep is the retention of ended jobs: a driver keeps those within every limit. A limit
// below zero is none.
type Keep struct {
	Count int           // number of jobs, those that ended last
	Age   time.Duration // age since their ends
	Bytes int64         // total bytes of their directories; the last to end is always kept
}

// KeepAll keeps every job, DefaultKeep is the default.
var (
	KeepAll     = Keep{Count: -1, Age: -1, Bytes: -1}
	DefaultKeep = Keep{Count: 1000, Age: -1, Bytes: -1}
)

// finishedJob is what Keep considers of an ended job.
type finishedJob struct {
	id     string
	number int // in its id
	ended  time.Time
	bytes  int64 // of its directory
	held   bool  // its files are being read
}

// beyond returns the jobs to remove, the first to end first. One that has ended less than
// grace ago, or is held, stays, but counts.
func (k Keep) beyond(jobs []finishedJob, now time.Time, grace time.Duration) (ids []string) {
	if k.Count < 0 && k.Age < 0 && k.Bytes < 0 {
		return nil
	}
	jobs = slices.SortedFunc(slices.Values(jobs), laterFirst)
	var bytes int64
	for place, j := range jobs {
		bytes += j.bytes
		age := now.Sub(j.ended)
		fresh := age >= 0 && age < grace // an end in the future is by another clock
		if !fresh && !j.held && k.exceeded(place, age, bytes) {
			ids = append(ids, j.id)
		}
	}
	slices.Reverse(ids)
	return ids
}

// exceeded reports whether a job is beyond a limit, by its rank among those that ended last,
// its age, and the bytes of all up to it.
func (k Keep) exceeded(place int, age time.Duration, bytes int64) bool {
	tooMany := k.Count >= 0 && place >= k.Count
	tooOld := k.Age >= 0 && age > k.Age
	tooLarge := k.Bytes >= 0 && bytes > k.Bytes && place > 0
	return tooMany || tooOld || tooLarge
}

// laterFirst orders jobs by their ends, and those of one moment by their numbers.
func laterFirst(a, b finishedJob) int {
	return cmp.Or(b.ended.Compare(a.ended), cmp.Compare(b.number, a.number))
}

// jobName returns the id of the job of a number.
func jobName(number int) string { return fmt.Sprintf("job-%06d", number) }

// jobNumber returns the number in a job's id; 0 where it has none.
func jobNumber(id string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(id, "job-"))
	if err != nil || n < 0 || jobName(n) != id {
		return 0
	}
	return n
}

// leftOver returns those of some directories that belong to removed jobs: their numbers were
// assigned and the state has no such jobs. Other directories must not be removed.
func leftOver(directories []string, s State) (out []string) {
	for _, name := range directories {
		n := jobNumber(name)
		if _, kept := s.Jobs[plan.JobID(name)]; n > 0 && n <= s.Last && !kept {
			out = append(out, name)
		}
	}
	return out
}
