package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/wire"
)

// bound is the longest that a test waits for something.
const bound = 30 * time.Second

// alone is an executor whose runners run a script, and what it tells its driver.
func alone(t *testing.T, script string) (d *Daemon, told chan *wire.FromExecutor,
	out *wire.Outbox[*wire.FromExecutor]) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := New(Config{DataDir: filepath.Join(dir, "executor"), Program: path})
	if err != nil {
		t.Fatal(err)
	}
	told = make(chan *wire.FromExecutor, 100)
	out = wire.NewOutbox(func(m *wire.FromExecutor) error { told <- m; return nil }, func(error) {})
	t.Cleanup(func() { d.stopAll(); out.Stop() })
	return d, told, out
}

// within waits until something holds.
func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	end := time.NewTimer(bound)
	defer end.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatal(what)
		}
	}
}

// open asks an executor for a runner.
func open(d *Daemon, ctx context.Context, out *wire.Outbox[*wire.FromExecutor]) {
	d.open(&wire.OpenJob{Job: "job-000001", Args: []string{"run", "logistic"}},
		&link{ctx: ctx, out: out, beat: time.Second})
}

// TestWithoutDescriptorsARunnerIsStartedLater: the driver hears no word of an end, and the
// runner runs when there are some again.
func TestWithoutDescriptorsARunnerIsStartedLater(t *testing.T) {
	d, told, out := alone(t, "exec sleep 600")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	again := func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) }
	defer again()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 1, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	open(d, ctx, out)
	again()
	within(t, "the runner is never started", func() bool { return d.runner("job-000001") != nil })
	select {
	case m := <-told:
		t.Errorf("the driver is told %v", m)
	default:
	}
}

// TestAnExecutorWithoutItsDirectoryIsUnfit, and says so before it says that a runner could
// not be started; it is fit again when the directory is back.
func TestAnExecutorWithoutItsDirectoryIsUnfit(t *testing.T) {
	d, told, out := alone(t, "exec sleep 600")
	if why := d.look(); why != "" {
		t.Fatalf("it is unfit: %s", why)
	}
	away := d.cfg.DataDir + ".away"
	if err := os.Rename(d.cfg.DataDir, away); err != nil {
		t.Fatal(err)
	}
	open(d, context.Background(), out)
	first, second := <-told, <-told
	if why := first.GetBeat().GetUnfit(); !strings.Contains(why, d.cfg.DataDir) {
		t.Errorf("first it says %v", first)
	}
	if second.GetClosed() == nil {
		t.Errorf("then it says %v", second)
	}
	if err := os.Rename(away, d.cfg.DataDir); err != nil {
		t.Fatal(err)
	}
	if d.look(); d.state().Unfit != "" {
		t.Errorf("it is unfit: %s", d.state().Unfit)
	}
}
