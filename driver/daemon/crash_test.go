package daemon

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/internal/crash"
)

// statesOf are what a journal may hold before the first record, and after each.
func statesOf(t *testing.T, rs []Record) (all []string) {
	t.Helper()
	var s State
	for i := 0; i <= len(rs); i++ {
		raw, err := json.Marshal(s.Clone())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(raw))
		if i < len(rs) {
			s.Apply(rs[i])
		}
	}
	return all
}

// reopened is the state of a journal that is opened again.
func reopened(t *testing.T, dir string) (string, error) {
	t.Helper()
	r, err := OpenRaft(dir, hclog.NewNullLogger())
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(r.State())
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), r.Close()
}

// TestAJournalSurvivesALossOfPower: wherever it comes, also while the journal is made, a
// driver that is started again has every record that was written down, in order, and at
// most the one that was about to be.
func TestAJournalSurvivesALossOfPower(t *testing.T) {
	root := t.TempDir()
	rec := crash.Record(t, root)
	r, err := OpenRaft(filepath.Join(root, "journal"), hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	rs := keptJobs()[:4]
	for _, one := range rs {
		if err := r.Append(context.Background(), one); err != nil {
			t.Fatal(err)
		}
		rec.Promise()
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	rec.End(t)
	allowed, faults, states := statesOf(t, rs), 0, 0
	for s := range rec.States(t) {
		got, err := reopened(t, filepath.Join(s.Put(t), "journal"))
		right := err == nil && (got == allowed[s.Promised] || s.Promised < len(rs) && got == allowed[s.Promised+1])
		if !right && faults < 5 {
			t.Errorf("%v, after %d records: %s %v", s, s.Promised, got, err)
			faults++
		}
		states++
	}
	t.Logf("%d operations, %d states", len(rec.Ops()), states)
}
