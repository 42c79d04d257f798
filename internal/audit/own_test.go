package audit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/internal/audit/logtest"
)

// TestAnOwnLogTellsTheSame: what is recomputed in the place of being read is what the lines say.
func TestAnOwnLogTellsTheSame(t *testing.T) {
	for name, run := range logtest.Runs {
		lines := run(t).Written()
		other, own := audit.Follow("read", "log"), audit.FollowOwn("read", "log")
		short := 0
		for i, raw := range lines {
			want, err := other.Take(raw)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, err := own.Take(raw)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			a, b := written(t, want), written(t, got)
			if a != b {
				t.Errorf("%s, line %d:\n%s\nas its own\n%s", name, i+1, a, b)
			}
			if got.Report != nil {
				short++
			}
		}
		if short == 0 {
			t.Errorf("%s: no line was recomputed", name)
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

func written(t *testing.T, v any) string {
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
