package audit_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/internal/audit/logtest"
)

// TestAnOwnLogTellsTheSame: what is recomputed in the place of being read is what the lines say, of made logs and of
// real ones.
func TestAnOwnLogTellsTheSame(t *testing.T) {
	for name, run := range logtest.Runs {
		tellsTheSame(t, name, run(t).Written())
	}
	real, err := filepath.Glob("../history/testdata/version*.log")
	if err != nil || len(real) == 0 {
		t.Fatalf("%v, %v", real, err)
	}
	for _, path := range real {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tellsTheSame(t, path, bytes.SplitAfter(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n")))
	}
}

func tellsTheSame(t *testing.T, name string, lines [][]byte) {
	t.Helper()
	other, own := audit.Follow("read", "log"), audit.FollowOwn("read", "log")
	for i, raw := range lines {
		want, err := other.Take(raw)
		got, failed := own.Take(raw)
		if err != nil || failed != nil {
			t.Fatalf("%s, line %d: %v, as its own %v", name, i+1, err, failed)
		}
		if a, b := written(t, want), written(t, got); a != b {
			t.Errorf("%s, line %d:\n%s\nas its own\n%s", name, i+1, a, b)
		}
	}
}

// TestAnOwnLogIsNotRead where its reports say it: that is what it is for.
func TestAnOwnLogIsNotRead(t *testing.T) {
	lines := logtest.Runs["absp"](t).Written()
	own := audit.FollowOwn("read", "log")
	for i, raw := range lines {
		text := string(raw)
		if i == 2 {
			if text = strings.Replace(text, `"c":[`, `"c":[9999999,`, 1); text == string(raw) {
				t.Fatal("the line has no counts")
			}
		}
		told, err := own.Take([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if told.Step != nil && told.Step.C[0] == 9999999 {
			t.Error("it was read")
		}
	}
}

// TestAnOwnLogIsCheckedWhereItIsRead: what a log says of slots, which is not recomputed, has to be possible.
func TestAnOwnLogIsCheckedWhereItIsRead(t *testing.T) {
	lines := logtest.Runs["absp"](t).Written()
	own := audit.FollowOwn("read", "log")
	for _, raw := range lines[:2] {
		if _, err := own.Take(raw); err != nil {
			t.Fatal(err)
		}
	}
	forged := `{"event":"slots","line":2,"executors":[{"executor":"a","slots":4000000,"rows":460,"spans":[]}]}` + "\n"
	if _, err := own.Take([]byte(forged)); err == nil || !strings.Contains(err.Error(), "more than the step lets it") {
		t.Errorf("%v", err)
	}
}

func written(t *testing.T, v any) string {
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
