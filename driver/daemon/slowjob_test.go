package daemon

import (
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/wire"
)

// beating gives heartbeats as a party does that reads nothing.
func beating(t *testing.T, every time.Duration, send func() error) {
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for send() == nil {
			select {
			case <-tick.C:
			case <-over:
				return
			}
		}
	}()
}

// TestAJobProcessThatReadsTooLittleIsStartedAgain: it lives, and takes none of the messages of its
// runners. Before, they were dropped without a word once enough of them waited. The executor
// that sends them keeps its connection, and other jobs get theirs.
func TestAJobProcessThatReadsTooLittleIsStartedAgain(t *testing.T) {
	d := scriptedDaemonOf(t, "sleep 600", time.Second)
	stuck, well := submitted(t, d), submitted(t, d)
	e := asExecutor(t, d, "e")
	go func() { // what it is asked for
		for {
			if _, err := e.Recv(); err != nil {
				return
			}
		}
	}()
	beat := time.Second / wire.Missed
	sends := make(chan *wire.FromExecutor)
	go func() {
		for m := range sends {
			_ = e.Send(m)
		}
	}()
	beating(t, beat, func() error {
		select {
		case sends <- &wire.FromExecutor{Body: &wire.FromExecutor_Beat{Beat: &wire.Beat{}}}:
		default: // it is sending
		}
		return nil
	})
	sign := &wire.FromJob{Body: &wire.FromJob_Beat{Beat: &wire.Beat{}}}
	deaf, hears := asProcess(t, d, stuck), asProcess(t, d, well)
	beating(t, beat, func() error { return deaf.Send(sign) })
	beating(t, beat, func() error { return hears.Send(sign) })
	heard := make(chan struct{})
	go func() {
		for {
			m, err := hears.Recv()
			if err != nil {
				return
			}
			if m.GetRelay() != nil {
				close(heard)
				return
			}
		}
	}()
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	go func() {
		data := make([]byte, 1<<20)
		for range 400 {
			select {
			case sends <- &wire.FromExecutor{Body: &wire.FromExecutor_Relay{Relay: &wire.Relay{Peer: stuck.info.Id,
				Data: data}}}:
			case <-over:
				return
			}
		}
		sends <- &wire.FromExecutor{Body: &wire.FromExecutor_Relay{Relay: &wire.Relay{Peer: well.info.Id,
			Data: data[:1]}}}
	}()
	awaitJob(t, stuck, "other process", func(i *wire.JobInfo) bool { return i.Restarts > 0 })
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-heard:
	case <-timer.C:
		t.Error("another job does not get its messages")
	}
	if d.members.get("e") == nil {
		t.Error("the executor has lost its connection")
	}
	if i, _ := well.snapshot(); i.Restarts > 0 {
		t.Error("another job is started again")
	}
}
