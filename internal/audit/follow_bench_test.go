package audit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/internal/audit/logtest"
)

// BenchmarkFollow measures what reading the log of 500 steps of 16 splits costs, as a page that is followed does.
func BenchmarkFollow(b *testing.B) {
	path := filepath.Join(b.TempDir(), "log")
	if err := os.WriteFile(path, bytes.Join(logtest.Large(b, 16, 500), nil), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := audit.FollowFile("read", path, func(audit.Told, int) {}); err != nil {
			b.Fatal(err)
		}
	}
}
