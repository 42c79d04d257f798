package driver

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
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
