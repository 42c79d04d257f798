package driver

import (
	"path/filepath"
	"testing"

	"github.com/volley-engine/volley/internal/crash"
)

// marked is the mark of a log that can be written.
func marked(t *testing.T, l *EventLog) LogMark {
	t.Helper()
	m, err := l.Mark()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestAnEventLogIsOnDiskBeforeItsMark: what a mark says is in the log is there after a loss
// of power, and the log goes on from it.
func TestAnEventLogIsOnDiskBeforeItsMark(t *testing.T) {
	root := t.TempDir()
	rec := crash.Record(t, root)
	l, err := CreateEventLog(filepath.Join(root, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	marks := []LogMark{{}}
	for step := range 4 {
		l.Write(&LogStep{Event: "step", Step: step + 1})
		marks = append(marks, marked(t, l))
		rec.Promise()
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	rec.End(t)
	faults := 0
	for s := range rec.States(t) {
		if s.Promised == 0 {
			continue
		}
		again, ok := ContinueEventLog(filepath.Join(s.Put(t), "events.jsonl"), marks[s.Promised])
		if !ok && faults < 5 {
			t.Errorf("%v: the log does not go on from mark %d", s, s.Promised)
			faults++
		}
		if ok {
			_ = again.Close()
		}
	}
}
