package console

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/audit/logtest"
	"github.com/volley-engine/volley/internal/wire"
)

// BenchmarkJobPage measures the first view of a job's page, and what a step costs that comes while it is looked at: the
// log's line is followed, and the page is made from it.
func BenchmarkJobPage(b *testing.B) {
	for _, splits := range []int{16, 500, 5000} {
		lines := logtest.Large(b, splits, 40)
		c := &cluster{log: filepath.Join(b.TempDir(), "events.jsonl"), jobs: []*wire.JobInfo{{Id: "job-1", Job: "job",
			State: "running"}}}
		if err := os.WriteFile(c.log, bytes.Join(lines[:20], nil), 0o600); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("first/%d", splits), func(b *testing.B) {
			for b.Loop() {
				p := &jobPage{path: c.log}
				if _, _, err := p.made(c, "job-1", time.Now()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("step/%d", splits), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				p := &jobPage{path: filepath.Join(b.TempDir(), "log")}
				for _, part := range [][][]byte{lines[:20], lines[20:21]} {
					f, err := os.OpenFile(p.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
					if err != nil {
						b.Fatal(err)
					}
					_, err = f.Write(bytes.Join(part, nil))
					if failed := f.Close(); err != nil || failed != nil {
						b.Fatal(err, failed)
					}
					if len(part) == 1 {
						b.StartTimer()
					}
					if _, _, err := p.made(c, "job-1", time.Now()); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkOverview measures what drawing the overview of 1,000 jobs and 500 executors costs.
func BenchmarkOverview(b *testing.B) {
	objective, jobs, executors := 0.5, []*wire.JobInfo{}, []*wire.ExecutorInfo{}
	for i := range 1000 {
		jobs = append(jobs, &wire.JobInfo{Id: fmt.Sprintf("job-%06d", i), Job: "logistic", State: "running",
			Standing: &wire.LoopStanding{Iteration: 5, Objective: &objective, PerSecond: 3, LeftNs: 1e9}})
	}
	for i := range 500 {
		executors = append(executors, &wire.ExecutorInfo{Name: fmt.Sprintf("executor-%d", i), State: "alive", Slots: 8,
			RowsPerSecond: float64(i)})
	}
	for b.Loop() {
		bytes := 0
		for _, p := range overviewParts(many{&cluster{jobs: jobs}, executors}, place{}, time.Now()) {
			bytes += len(p.HTML)
		}
		b.ReportMetric(float64(bytes), "bytes")
	}
}

// many is a cluster of many executors.
type many struct {
	*cluster
	executors []*wire.ExecutorInfo
}

func (m many) Executors() []*wire.ExecutorInfo { return slices.Clone(m.executors) }

// BenchmarkLongJob measures the page of a job of 100,000 steps: its first view, which has a part of them, how long it
// is until all of its log is read beside that, drawing it then, and how much memory it keeps.
func BenchmarkLongJob(b *testing.B) {
	c := &cluster{log: filepath.Join(b.TempDir(), "events.jsonl"), jobs: []*wire.JobInfo{{Id: "job-1", Job: "job",
		State: "running"}}}
	if err := os.WriteFile(c.log, bytes.Join(logtest.Large(b, 16, 100_000), nil), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		before := heap()
		p, began := &jobPage{path: c.log}, time.Now()
		m, _, err := p.made(c, "job-1", time.Now())
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/first")
		for whole := false; !whole; runtime.Gosched() {
			p.mu.Lock()
			whole = p.at == p.size || p.failed != nil
			p.mu.Unlock()
			p.used.Store(time.Now().UnixNano())
		}
		b.ReportMetric(time.Since(began).Seconds(), "s/whole")
		if m, _, err = p.made(c, "job-1", time.Now()); err != nil || len(p.run.Steps) < 1000 {
			b.Fatal(err, len(p.run.Steps))
		}
		b.ReportMetric(float64(m.cost.Milliseconds()), "ms/drawn")
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
		runtime.KeepAlive(p)
	}
}

// heap returns how much memory is in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
