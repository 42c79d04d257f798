package host

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/proto"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/internal/wire"
)

// relaying is a job's process that speaks to runners by way of the driver, which takes its
// messages as a test says.
func relaying(t *testing.T, cfg driver.JobConfig, send func(*wire.FromJob) error, lost func(error)) *remote {
	r := &remote{Driver: driver.NewDriver(cfg, hclog.NewNullLogger()), peers: map[string]*relayConn{},
		blocks: map[string]string{},
		byName: map[string]*relayConn{}, directs: &directs{}}
	r.out = wire.NewOutbox(send, lost)
	t.Cleanup(func() { _ = r.Driver.Close(); r.out.Stop() })
	return r
}

// says hands over what a runner has sent.
func (r *remote) says(t *testing.T, peer string, m *wire.ToDriver) {
	t.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	r.receive(&wire.Relay{Peer: peer, Data: raw})
}

func (r *remote) registers(t *testing.T, peer string) {
	t.Helper()
	r.says(t, peer, &wire.ToDriver{Body: &wire.ToDriver_Register{Register: &wire.Register{Executor: peer, Slots: 1,
		Version: version.Oldest}}})
}

// TestWhatGoesToManyExecutorsWaits: all of it together is more than may wait, and nobody's is
// too much by itself: the job's process does not give its driver up for that.
func TestWhatGoesToManyExecutorsWaits(t *testing.T) {
	const executors, size = 10, 40 << 20
	read, got, lost := make(chan struct{}), make(chan string, 2*executors), make(chan error, 1)
	r := relaying(t, driver.JobConfig{ID: "job", Executors: executors, Sources: make([]byte, size)},
		func(m *wire.FromJob) error {
			<-read
			if relay := m.GetRelay(); len(relay.GetData()) > size {
				got <- relay.Peer
			}
			return nil
		}, func(err error) { lost <- err })
	for i := range executors {
		r.registers(t, fmt.Sprint("e", i))
	}
	timer := time.NewTimer(30 * time.Second)
	defer timer.Stop()
	busy := time.NewTimer(time.Second) // the driver is, meanwhile all of it is sent
	defer busy.Stop()
	select {
	case <-busy.C:
	case err := <-lost:
		t.Fatalf("the driver is given up: %v", err)
	}
	close(read)
	for i := range executors {
		select {
		case <-got:
		case err := <-lost:
			t.Fatalf("after %d of %d messages the driver is given up: %v", i, executors, err)
		case <-timer.C:
			t.Fatalf("%d of %d messages have come", i, executors)
		}
	}
}

// TestARunnerThatIsTooMuchIsGivenUp: of what it sends nothing is dropped without a word.
func TestARunnerThatIsTooMuchIsGivenUp(t *testing.T) {
	r := relaying(t, driver.JobConfig{ID: "job", Executors: 1}, func(*wire.FromJob) error { return nil },
		func(error) {})
	c := &relayConn{r: r, peer: "e", in: wire.NewQueue[*wire.ToDriver]()} // nobody reads it
	r.peers["e"] = c
	m := &wire.ToDriver{Body: &wire.ToDriver_TaskResult{TaskResult: &wire.TaskResult{Job: "job",
		Data: make([]byte, 1<<20)}}}
	for range 300 {
		r.says(t, "e", m)
	}
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := c.Recv(); err != nil {
				ended <- err
				return
			}
		}
	}()
	timer := time.NewTimer(10 * time.Second)
	defer timer.Stop()
	select {
	case err := <-ended:
		if fault.KindOf(err) != fault.ExecutorLost {
			t.Error(err)
		}
	case <-timer.C:
		t.Error("it goes on although messages are missing")
	}
}
