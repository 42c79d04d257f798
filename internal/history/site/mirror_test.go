package site

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/storage/objects"
	"github.com/volley-engine/volley/storage/objects/storetest"
)

// TestLogsOfObjects: the logs below a name are shown as those of a folder; one that comes, changes or goes does so
// here, and what is no log is left there.
func TestLogsOfObjects(t *testing.T) {
	t.Parallel()
	name, dir, ctx := objects.Join(storetest.S3(t), "runs"), t.TempDir(), context.Background()
	raw, err := os.ReadFile("../testdata/version6.log")
	if err != nil {
		t.Fatal(err)
	}
	put := func(rel string, raw []byte) {
		if err := objects.Put(ctx, objects.Join(name, rel), raw); err != nil {
			t.Fatal(err)
		}
	}
	m, logs := NewMirror(name, dir, hclog.NewNullLogger()), found{}
	listed := func() (out []string) {
		t.Helper()
		if err := m.Bring(ctx); err != nil {
			t.Fatal(err)
		}
		all, err := logs.scan(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			out = append(out, e.Path+" "+e.Stopped)
		}
		slices.Sort(out)
		return out
	}
	if got := listed(); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
	put("a.jsonl", raw)
	put("deep/b.jsonl", raw[:len(raw)/2])
	put("notes.txt", []byte("no log"))
	put("empty", nil)
	if got := listed(); !slices.Equal(got, []string{"a.jsonl max-iterations", "deep/b.jsonl "}) {
		t.Errorf("%q", got)
	}
	put("deep/b.jsonl", raw)
	put("c.jsonl", raw)
	if err := objects.Remove(ctx, objects.Join(name, "a.jsonl")); err != nil {
		t.Fatal(err)
	}
	if got := listed(); !slices.Equal(got, []string{"c.jsonl max-iterations", "deep/b.jsonl max-iterations"}) {
		t.Errorf("%q", got)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".bring-*")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
