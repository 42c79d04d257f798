package driver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
)

func sumOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// finished finishes a log, and returns its lines and its footer.
func finished(t *testing.T, l *EventLog) (raw []byte, lines [][]byte, f LogFooter) {
	t.Helper()
	if err := l.Finish(context.Background(), "iterations"); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(l.f.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines = bytes.SplitAfter(raw, []byte("\n"))
	lines = lines[:len(lines)-1]
	if err := json.Unmarshal(lines[len(lines)-1], &f); err != nil {
		t.Fatal(err)
	}
	return raw, lines, f
}

// markedLog is a log of five lines, with a mark after the fourth.
func markedLog(t *testing.T) (*EventLog, LogMark) {
	l, err := CreateEventLog(filepath.Join(t.TempDir(), "a", "b", "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	l.Write(&LogHeader{Event: "header"})
	l.Write(&LogStep{Event: "step", Step: 1})
	l.Write(&LogStep{Event: "step", Step: 2})
	l.Write(&LogEvaluation{Event: "evaluation"})
	m := marked(t, l)
	l.Write(&LogStep{Event: "step", Step: 3})
	return l, m
}

// TestAFooterSaysWhatIsInTheLog: lines, steps and evaluations, and their hash; a mark says so of its place.
func TestAFooterSaysWhatIsInTheLog(t *testing.T) {
	l, m := markedLog(t)
	raw, lines, f := finished(t, l)
	before := bytes.Join(lines[:5], nil)
	want := LogFooter{Event: "footer", Steps: 3, Evaluations: 1, Lines: 5, SHA256: sumOf(before),
		StoppedBy: "iterations"}
	if len(lines) != 6 || f != want {
		t.Errorf("%d lines, %+v, want %+v", len(lines), f, want)
	}
	upTo := bytes.Join(lines[:4], nil)
	if want := (LogMark{Bytes: int64(len(upTo)), Lines: 4, Steps: 2, Evaluations: 1, SHA256: sumOf(upTo)}); m != want {
		t.Errorf("%+v, want %+v", m, want)
	}
	if l.Digest() != sumOf(raw) {
		t.Errorf("its digest is %s", l.Digest())
	}
	if err := l.Err(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); fault.KindOf(err) != fault.NoResources {
		t.Errorf("closed twice: %v", err)
	}
}

// TestALogGoesOnFromItsMark, and not where the file is not the one in which it was made.
func TestALogGoesOnFromItsMark(t *testing.T) {
	l, m := markedLog(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path := l.f.Name()
	other, longer := m, m
	other.SHA256 = sumOf(nil)
	longer.Bytes += 1000
	changed := filepath.Join(t.TempDir(), "changed")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(changed, bytes.Replace(raw, []byte("step"), []byte("stop"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path string
		mark LogMark
	}{
		"no log is wanted": {"", m}, "no mark": {path, LogMark{SHA256: sumOf(nil)}}, "no file": {path + "x", m},
		"another's mark": {path, other}, "a file that is too short": {path, longer}, "a changed file": {changed, m},
		"a file that cannot be written": {filepath.Dir(path), m},
	} {
		if l, ok := ContinueEventLog(c.path, c.mark); ok || l != nil {
			t.Errorf("%s: it goes on", name)
		}
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, raw) {
		t.Errorf("what could not go on was changed: %v", err)
	}
	l, ok := ContinueEventLog(path, m)
	if !ok {
		t.Fatal("it does not go on")
	}
	l.Write(&LogEvaluation{Event: "evaluation"})
	_, lines, f := finished(t, l)
	if len(lines) != 6 || f.Lines != 5 || f.Steps != 2 || f.Evaluations != 2 ||
		f.SHA256 != sumOf(bytes.Join(lines[:5], nil)) {
		t.Errorf("%d lines, %+v", len(lines), f)
	}
}

// TestALineThatCannotBeWrittenIsTold, and nothing follows it; no log at all is none.
func TestALineThatCannotBeWrittenIsTold(t *testing.T) {
	l, m := markedLog(t)
	l.Write(&LogStep{Event: "step", Share: math.NaN()})
	l.Write(&LogStep{Event: "step", Step: 5})
	_, marking := l.Mark()
	for name, err := range map[string]error{"Err": l.Err(), "Mark": marking, "Close": l.Close()} {
		if fault.KindOf(err) != fault.NoResources {
			t.Errorf("%s: %v", name, err)
		}
	}
	raw, err := os.ReadFile(l.f.Name())
	if err != nil || bytes.Count(raw, []byte("\n")) != m.Lines+1 {
		t.Errorf("%s, %v", raw, err)
	}
	none, err := CreateEventLog("")
	if none != nil || err != nil {
		t.Errorf("%v, %v", none, err)
	}
	none.Write(&LogStep{})
	if m, err := none.Mark(); m != (LogMark{}) || err != nil || none.Err() != nil || none.Digest() != "" ||
		none.Finish(context.Background(), "") != nil || none.Close() != nil {
		t.Errorf("%v, %v", m, err)
	}
}

// TestALineSaysWhatItsStepCameTo: a split that is missing has the assignment that it had.
func TestALineSaysWhatItsStepCameTo(t *testing.T) {
	waits := []abss.Wait{{For: "tasks", Bound: 9}}
	r := &StepReport{Number: 4, Train: true, Node: 8, Pack: 2, Entries: []int64{1, 2, 3}, Weighted: true,
		Assigned: []plan.Assignment{{Split: 0, Attempt: 5, Epoch: 6, Cursor: 7},
			{Split: 1, Attempt: 1, Epoch: 2, Cursor: 3}, {Split: 2, Attempt: 1, Epoch: 2, Cursor: 4}},
		Coverage: []*plan.Coverage{nil, {Split: 1, Attempt: 8, Epoch: 9, Cursor: 10, Count: 11, Folded: 12, Weight: 13,
			Entries: 14}, {Split: 2, Attempt: 1, Epoch: 2, Cursor: 4, Count: 15, Folded: 15, Weight: 16, Entries: 17}},
		Missing: []plan.SplitID{0}, Stats: abss.Stats{Waits: waits, StopAt: 70, FirstFinish: 30, ShareFirst: 0.25,
			ShareStop: 0.5, Cut: true}, Took: 100, Bytes: 18, Share: 0.75, NEff: 19, Retried: 20,
		Placement: []int{0, 1, 0},
		Executors: []string{"a", "b"}, Moves: []plan.Move{{Split: 1, From: "a", To: "b", Role: true}}, MoveTime: 21,
		Counters: Counters{DroppedRows: 22, StaleReports: 23}, Batch: 0.5, Chosen: abss.Choice{Ratio: 0.6, Why: "why"}}
	want := &LogStep{Event: "step", Pack: 2, Step: 4, C: []int64{0, 11, 15}, Folded: []int64{0, 12, 15},
		Weight: []float64{0, 13, 16}, Entries: []int64{0, 14, 17}, Attempt: []int{5, 8, 1}, Epoch: []uint64{6, 9, 2},
		Cursor: []int64{7, 10, 4}, Missing: []int{0}, Waits: waits, Placement: []int{0, 1, 0},
		Executors: []string{"a", "b"}, Moves: []LogMove{{Split: 1, From: "a", To: "b", Role: true}},
		Phases: LogPhases{Compute: 70, Wait: 40, Collect: 30, Exchange: 21}, Bytes: 18, ShareFirst: 0.25,
		ShareStop: 0.5, Cut: true, Batch: 0.5, Ratio: 0.6, Why: "why", Share: 0.75, NEff: 19, Retried: 20,
		Dropped: 22, Stale: 23}
	if got := StepLine(r); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want\n%+v", got, want)
	}
	digest := plan.Digest{1}
	pass := &LogEvaluation{Event: "evaluation", Pack: 2, Node: 8, C: want.C, Folded: want.Folded, Attempt: want.Attempt,
		Epoch: want.Epoch, Missing: want.Missing, Waits: waits, TookNs: 100, Params: digest, Why: "why"}
	if got := EvaluationLine(r, digest); !reflect.DeepEqual(got, pass) {
		t.Errorf("%+v, want\n%+v", got, pass)
	}
	r.Entries, r.Weighted, r.Missing, r.Stats.FirstFinish = nil, false, nil, 0
	got := StepLine(r)
	if got.Entries != nil || got.Weight != nil || got.Phases.Wait != 0 || !slices.Equal(got.Missing, []int{}) {
		t.Errorf("of rows without either, none of which was finished: %+v", got)
	}
}

// TestWhatIsTriedUntilThereIsRoomIsTriedOnce where it goes well, and no more once nobody waits.
func TestWhatIsTriedUntilThereIsRoomIsTriedOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	if err := AwaitRoom(ctx, func() error { n++; return nil }); err != nil || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
	cancel()
	began := time.Now()
	if err := AwaitRoom(ctx, func() error { n++; return context.Canceled }); err != context.Canceled || n != 2 ||
		time.Since(began) > RoomWait/2 {
		t.Errorf("%v after %d", err, n)
	}
}
