package wire

import (
	"testing"
	"time"
)

// TestAVigil takes the silent for dead within three beats, and nobody for
// what happened while it did not look itself.
func TestAVigil(t *testing.T) {
	const beat = 800 * time.Millisecond
	v, now := NewFailureDetector(beat), time.Unix(1000, 0)
	look := func(until time.Time) {
		for ; now.Before(until); now = now.Add(v.Tick()) {
			v.Look(now)
		}
	}
	heard := now
	look(heard.Add(2 * beat))
	if v.Dead(heard) {
		t.Error("dead after two beats")
	}
	look(heard.Add(Missed * beat))
	if !v.Dead(heard) {
		t.Error("alive after three beats of silence")
	}
	if v.Dead(heard.Add(2 * beat)) {
		t.Error("one that was heard of is dead")
	}
	now = now.Add(time.Minute) // it was stopped, with the process that it watches alive
	last := now.Add(-time.Minute)
	v.Look(now)
	if v.Dead(last) {
		t.Error("dead because the watcher slept")
	}
	look(now.Add(Missed * beat))
	if !v.Dead(last) {
		t.Error("alive though it stayed silent")
	}
}
