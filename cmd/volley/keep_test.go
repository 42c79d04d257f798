package main

import (
	"testing"
	"time"

	"github.com/volley-engine/volley/driver/daemon"
)

// TestWhatKeepSays: limits are read, and shown as they can be read again.
func TestWhatKeepSays(t *testing.T) {
	for text, want := range map[string]daemon.Keep{
		"all":                             daemon.KeepAll,
		"count=0":                         {Count: 0, Age: -1, Bytes: -1},
		"age=30d":                         {Count: -1, Age: 720 * time.Hour, Bytes: -1},
		"age=90m":                         {Count: -1, Age: 90 * time.Minute, Bytes: -1},
		"bytes=0":                         {Count: -1, Age: -1, Bytes: 0},
		"bytes=2KiB":                      {Count: -1, Age: -1, Bytes: 2048},
		"count=10, age=1h, bytes=1000000": {Count: 10, Age: time.Hour, Bytes: 1e6},
	} {
		var k, again keepValue
		if err := k.Set(text); err != nil || daemon.Keep(k) != want {
			t.Errorf("%s: %+v, want %+v (%v)", text, k, want, err)
		}
		if err := again.Set(k.String()); err != nil || again != k {
			t.Errorf("%s is shown as %s: %v", text, k.String(), err)
		}
	}
}

// TestWhatKeepRefuses: what says no limit changes none.
func TestWhatKeepRefuses(t *testing.T) {
	for _, text := range []string{"", "10", "count", "count=", "count=-1", "count=1.5", "age=", "age=30", "age=-1h",
		"age=-1d", "age=xd", "bytes=", "bytes=many", "bytes=-1", "all,count=1", "count=1,,age=1h", "rows=3"} {
		k := keepValue(daemon.DefaultKeep)
		if err := k.Set(text); err == nil || daemon.Keep(k) != daemon.DefaultKeep {
			t.Errorf("%q is taken for %s", text, k.String())
		}
	}
}
