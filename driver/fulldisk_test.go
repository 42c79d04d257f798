package driver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
)

// writtenLog is a log of twenty steps, some of them while the disk is full.
func writtenLog(t *testing.T, full func(step int) bool) (raw []byte, digest string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.jsonl")
	l, err := CreateEventLog(path)
	if err != nil {
		t.Fatal(err)
	}
	for step := range 20 {
		stop := func() {}
		if full(step) {
			stop = disk.Fill(func(p string) bool { return p == path })
		}
		l.Write(&LogStep{Event: "step", Step: step + 1, C: make([]int64, step)})
		if _, err := l.Mark(); (err != nil) != full(step) || err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("step %d, full %v: %v", step, full(step), err)
		}
		stop()
	}
	if err := l.Finish(context.Background(), "iterations"); err != nil {
		t.Fatal(err)
	}
	if raw, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return raw, l.Digest()
}

// TestLinesWaitForRoom: a disk that is full for a while costs no line, and no mark is made
// before those that wait.
func TestLinesWaitForRoom(t *testing.T) {
	want, digest := writtenLog(t, func(int) bool { return false })
	for name, full := range map[string]func(int) bool{
		"at first":   func(step int) bool { return step < 3 },
		"half-way":   func(step int) bool { return step > 4 && step < 11 },
		"at the end": func(step int) bool { return step > 16 },
		"every time": func(int) bool { return true },
	} {
		if got, d := writtenLog(t, full); !bytes.Equal(got, want) || d != digest {
			t.Errorf("%s: the log is\n%s\nnot\n%s", name, got, want)
		}
	}
}

// TestNotAllLinesWait: a job does not take all memory while its disk is full, and is told once
// its log has lost a line.
func TestNotAllLinesWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	l, err := CreateEventLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Fill(func(p string) bool { return p == path })()
	line := &LogStep{Event: "step", LogReports: LogReports{Reports: make([]byte, 3<<20)}}
	for n := range 64 {
		if before := len(l.waiting); l.Err() != nil && before <= waitingMost {
			t.Fatalf("after %d lines %d MiB wait no more: %v", n, before>>20, l.Err())
		}
		l.Write(line)
	}
	if err := l.Err(); fault.KindOf(err) != fault.NoResources || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the log has lost lines, and says %v", err)
	}
	if n := len(l.waiting); n > waitingMost+8<<20 {
		t.Errorf("%d MiB wait", n>>20)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Finish(ctx, "iterations"); fault.KindOf(err) != fault.NoResources || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
}

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
