package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/volley-engine/volley/internal/wire"
)

// scriptedDriver is a driver that has one executor start one runner, which runs a
// shell script, and does with its messages as a test says.
type scriptedDriver struct {
	wire.UnimplementedClusterServer
	t       *testing.T
	on      func(*wire.FromExecutor) // each message but Hello
	printed chan struct{}            // somebody has begun to hand in what the runner prints
	over    chan struct{}            // the test
	gone    chan struct{}            // the executor's connection
	served  atomic.Bool
	breaks  atomic.Int32 // how many streams of output end at once
}

// withRunner starts the driver, and an executor that joins it.
func withRunner(t *testing.T, script string, on func(d *scriptedDriver, f *wire.FromExecutor),
	changes ...func(*scriptedDriver)) *scriptedDriver {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("VOLLEY_HOME", dir)
	l, err := wire.Listen(wire.SocketAddress(filepath.Join(dir, "driver.sock")))
	if err != nil {
		t.Fatal(err)
	}
	d := &scriptedDriver{t: t, printed: make(chan struct{}, 1), over: make(chan struct{}), gone: make(chan struct{})}
	d.on = func(f *wire.FromExecutor) { on(d, f) }
	for _, change := range changes {
		change(d)
	}
	admit := func(context.Context, string) error { return nil }
	s := wire.Party{}.NewServer(wire.Gate{Admit: admit}, grpc.StreamInterceptor(d.keep))
	wire.RegisterClusterServer(s, d)
	go func() { _ = s.Serve(l) }()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	daemon, err := New(Config{Driver: l.Addr().String(), Name: "e", DataDir: filepath.Join(dir, "data"),
		Program: program, MaxWait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- daemon.Run(ctx) }()
	t.Cleanup(func() {
		close(d.over)
		s.Stop()
		cancel()
		<-ended
	})
	return d
}

// keep takes nothing of what a runner has printed, where that comes by a stream of its own.
func (d *scriptedDriver) keep(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo,
	handle grpc.StreamHandler) error {
	if !strings.HasSuffix(info.FullMethod, "/Logs") {
		return handle(srv, s)
	}
	if d.breaks.Add(-1) >= 0 {
		return context.Canceled
	}
	d.keeps()
	return nil
}

// keeps is the disk of the driver's logs: it hangs.
func (d *scriptedDriver) keeps() {
	select {
	case d.printed <- struct{}{}:
	default:
	}
	<-d.over
}

// Serve is the executor's connection: it is served once.
func (d *scriptedDriver) Serve(s wire.Cluster_ServeServer) error {
	hello, err := s.Recv()
	if err != nil || hello.GetHello() == nil {
		return fmt.Errorf("it said %v, %w", hello, err)
	}
	if d.served.Swap(true) {
		return context.Canceled // it has lost its connection
	}
	gone := sync.OnceFunc(func() { close(d.gone) })
	defer gone()
	context.AfterFunc(s.Context(), gone)
	_ = s.Send(&wire.ForExecutor{Body: &wire.ForExecutor_Welcome{Welcome: &wire.Welcome{BeatNs: uint64(
		100 * time.Millisecond)}}})
	_ = s.Send(&wire.ForExecutor{Body: &wire.ForExecutor_Open{Open: &wire.OpenJob{Job: "job", Slots: 1,
		Args: []string{"run", "job"}}}})
	for {
		f, err := s.Recv()
		if err != nil {
			return err
		}
		d.on(f)
	}
}

// await waits for something, and fails where the executor's connection ends before.
func (d *scriptedDriver) await(what string, c <-chan struct{}) {
	d.t.Helper()
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-c:
	case <-d.gone:
		d.t.Fatalf("no %s: the executor's connection has ended", what)
	case <-timer.C:
		d.t.Fatalf("no %s", what)
	}
}

// TestOutputHoldsNothingElseUp: a program prints lines of two bytes faster than they
// are kept. It is held up itself; heartbeats and its messages go on.
func TestOutputHoldsNothingElseUp(t *testing.T) {
	beats, relays := make(chan struct{}, 1000), make(chan struct{}, 1000)
	d := withRunner(t, `yes a &
while :; do printf '\004\000\000\000abcd' >&3; done`, func(d *scriptedDriver, f *wire.FromExecutor) {
		to := relays
		switch {
		case f.GetBeat() != nil:
			to = beats
		case f.GetRelay() == nil:
			d.keeps()
			return
		}
		select {
		case to <- struct{}{}:
		default:
		}
	})
	d.await("output", d.printed)
	for len(beats) > 0 {
		<-beats
	}
	for range 20 {
		d.await("heartbeat", beats)
		d.await("message", relays)
	}
}

// TestMessagesWaitForADriverThatIsSlow: more than an executor may keep for a driver does not
// end the connection, and nothing is lost; the runner that sends it is held up.
func TestMessagesWaitForADriverThatIsSlow(t *testing.T) {
	const frames, size = 400, 1 << 20
	ours, theirs := net.Pipe()
	defer ours.Close()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	read, failed, got := make(chan struct{}), make(chan error, 1), make(chan struct{}, frames)
	out := wire.NewOutbox(func(*wire.FromExecutor) error {
		<-read
		got <- struct{}{}
		return nil
	}, func(err error) { failed <- err })
	defer out.Stop()
	d := &Daemon{began: time.Now()}
	r := &runnerProcess{job: "job", cmd: cmd, frames: wire.NewFramed(theirs)}
	r.link.Store(&link{ctx: context.Background(), out: out})
	go d.carry(r)
	var sent atomic.Int64
	go func() {
		runner, frame := wire.NewFramed(ours), make([]byte, size)
		for range frames {
			if runner.Write(frame) != nil {
				return
			}
			sent.Add(1)
		}
	}()
	for last, still := int64(0), 0; still < 5; { // until it is held up
		tick := time.NewTimer(50 * time.Millisecond)
		select {
		case err := <-failed:
			t.Fatalf("after %d messages the connection ends: %v", sent.Load(), err)
		case <-tick.C:
		}
		if n := sent.Load(); n > last {
			last, still = n, 0
		} else {
			still++
		}
	}
	close(read)
	timer := time.NewTimer(bound)
	defer timer.Stop()
	for i := range frames {
		select {
		case <-got:
		case err := <-failed:
			t.Fatalf("after %d messages the connection ends: %v", i, err)
		case <-timer.C:
			t.Fatalf("%d of %d messages have come", i, frames)
		}
	}
}

// TestOutputOutlivesItsStream: where a stream of output ends and the driver is there, the
// next line begins another.
func TestOutputOutlivesItsStream(t *testing.T) {
	d := withRunner(t, "exec yes a", func(*scriptedDriver, *wire.FromExecutor) {},
		func(d *scriptedDriver) { d.breaks.Store(3) })
	d.await("output after a stream has ended", d.printed)
}
