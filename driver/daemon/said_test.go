package daemon

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/wire"
)

// TestAJobSaysWhatKeepsItFromCommitting, until nothing does.
func TestAJobSaysWhatKeepsItFromCommitting(t *testing.T) {
	d, _ := scripted(t, "exec sleep 600")
	asExecutor(t, d, "e1")
	w := submitted(t, d)
	s := asProcess(t, d, w)
	for _, what := range []string{"no step is committed: no space left on device", ""} {
		if err := s.Send(&wire.FromJob{Body: &wire.FromJob_Trouble{Trouble: &wire.Trouble{What: what}}}); err != nil {
			t.Fatal(err)
		}
		info := awaitJob(t, w, "word of it", func(i *wire.JobInfo) bool { return i.Why == what })
		if info.State != JobRunning || strings.Contains(info.Why, "executor") {
			t.Errorf("%v", info)
		}
	}
}

// TestResultsAreBounded: a process that prints without end does not fill the driver.
func TestResultsAreBounded(t *testing.T) {
	d, _ := scripted(t, "exec sleep 600")
	w := submitted(t, d)
	p := &printed{}
	for _, n := range []int{10, resultMost} {
		if _, err := io.Copy(p, io.LimitReader(zeros{}, int64(n))); err != nil {
			t.Fatal(err)
		}
	}
	if result := w.resultOf(p); result != "" || len(p.text) > resultMost {
		t.Errorf("%d bytes are kept", len(p.text))
	}
	if raw, _ := os.ReadFile(filepath.Join(w.dir, "log.0")); !strings.Contains(string(raw), "is not kept") {
		t.Errorf("the log says %q", raw)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
