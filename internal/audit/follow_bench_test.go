package audit_test

import (
	"testing"

	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/internal/audit/logtest"
)

// BenchmarkFollow measures what reading the log of 500 steps of 16 splits costs: any log, and one of the cluster's own,
// as a page that is followed does.
func BenchmarkFollow(b *testing.B) {
	lines := logtest.Large(b, 16, 500)
	for name, follow := range map[string]func(what, path string) *audit.Following{"any": audit.Follow,
		"own": audit.FollowOwn} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f := follow("read", "log")
				for _, raw := range lines {
					if _, err := f.Take(raw); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(lines)), "µs/line")
		})
	}
}
