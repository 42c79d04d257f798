package console

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/audit/logtest"
	"github.com/volley-engine/volley/internal/wire"
)

// BenchmarkJobPage measures the first view of a job's page, and what a step costs that comes while it is looked at: the
// log's line is checked, and the page is made from it.
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
