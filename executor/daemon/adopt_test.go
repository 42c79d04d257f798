package daemon

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/wire"
)

// fileOf reads frames that are in a file.
type fileOf struct{ io.Reader }

func (fileOf) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (fileOf) Close() error              { return nil }

// heardBy returns what a runner whose script copies its socket to a file was sent, in short.
func heardBy(t *testing.T, path string) (all []string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil // it has not begun
	}
	in := wire.FramedExecutor(wire.NewFramed(fileOf{bytes.NewReader(raw)}))
	for {
		m, err := in.Recv()
		switch {
		case err != nil:
			return all
		case m.GetPause() != nil && m.GetPause().On:
			all = append(all, "pause")
		case m.GetPause() != nil:
			all = append(all, "go on")
		case m.GetAdopt() != nil:
			all = append(all, "adopted by "+m.GetAdopt().Incarnation)
		}
	}
}

// TestARunnerThatWasPausedGoesOnWithTheNextProcess: it was another job's turn when its job's process was lost, and that
// turn is not told to end.
func TestARunnerThatWasPausedGoesOnWithTheNextProcess(t *testing.T) {
	d, _, out := alone(t, `exec cat <&3 >"$0.heard"`)
	l := &link{ctx: context.Background(), out: out, beat: time.Second}
	o := &wire.OpenJob{Job: "job-000001", Args: []string{"run", "logistic"}, Incarnation: "job-000001.1"}
	d.open(o, l)
	r := d.runner(o.Job)
	r.pause(true)
	d.orphan()
	next := &wire.OpenJob{Job: o.Job, Args: o.Args, Runner: 2, Incarnation: "job-000001.2"}
	d.open(next, l)
	want := []string{"pause", "go on", "adopted by job-000001.2"}
	var got []string
	within(t, "the runner does not hear it", func() bool {
		got = heardBy(t, d.cfg.Program+".heard")
		return len(got) >= len(want)
	})
	if !slices.Equal(got, want) || d.runner(o.Job) != r {
		t.Errorf("it hears %v, want %v", got, want)
	}
}

// TestARunnerThatGoesOnIsNotKilledAsAnOrphan: it had said that it waits for the next process when that had it already.
func TestARunnerThatGoesOnIsNotKilledAsAnOrphan(t *testing.T) {
	d, told, out := alone(t, `head -c 1 <&3 >/dev/null; cat "$0.says" >&3; exec sleep 600`)
	var says bytes.Buffer
	to := wire.FramedExecutor(wire.NewFramed(toBuffer{&says}))
	_ = to.Send(&wire.ToDriver{Body: &wire.ToDriver_Note{Note: &wire.Note{Orphaned: true}}})
	_ = to.Send(&wire.ToDriver{Body: &wire.ToDriver_Register{Register: &wire.Register{}}})
	if err := os.WriteFile(d.cfg.Program+".says", says.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &link{ctx: context.Background(), out: out, beat: time.Second}
	o := &wire.OpenJob{Job: "job-000001", Args: []string{"run", "logistic"}, Incarnation: "job-000001.1"}
	d.open(o, l)
	r := d.runner(o.Job)
	d.orphan()
	d.open(&wire.OpenJob{Job: o.Job, Args: o.Args, Runner: 2, Incarnation: "job-000001.2"}, l)
	within(t, "its registration does not arrive", func() bool {
		select {
		case m := <-told:
			return m.GetRelay() != nil
		default:
			return false
		}
	})
	if since := r.alone.Load(); since != 0 || d.runner(o.Job) != r {
		t.Errorf("it is taken for one without a process since %v", time.Duration(since))
	}
}

// toBuffer takes frames.
type toBuffer struct{ *bytes.Buffer }

func (toBuffer) Close() error { return nil }

// TestTheEndOfARunnerIsThatOfOneRequest, also where it ends while the next process of its job asks for it: it is that
// process's runner, or another one begins, and is not taken for ended.
func TestTheEndOfARunnerIsThatOfOneRequest(t *testing.T) {
	for range 40 {
		d, told, out := alone(t, "exec sleep 600")
		l := &link{ctx: context.Background(), out: out, beat: time.Second}
		d.open(&wire.OpenJob{Job: "job-000001", Args: []string{"run", "logistic"}, Runner: 1}, l)
		r := d.runner("job-000001")
		d.orphan()
		var both sync.WaitGroup
		both.Go(func() { r.kill() })
		both.Go(func() {
			d.open(&wire.OpenJob{Job: "job-000001", Args: []string{"run", "logistic"}, Runner: 2}, l)
		})
		both.Wait()
		<-r.ended
		another := false
		within(t, "neither has it a runner nor hears of its end", func() bool {
			select {
			case m := <-told:
				return m.GetClosed().GetRunner() == 2
			default:
			}
			now := d.runner("job-000001")
			another = now != nil && now != r
			return another
		})
		for timer := time.After(50 * time.Millisecond); another; {
			select {
			case m := <-told:
				if m.GetClosed().GetRunner() == 2 {
					t.Fatal("a runner that goes on is told to have ended")
				}
			case <-timer:
				another = false
			}
		}
	}
}
