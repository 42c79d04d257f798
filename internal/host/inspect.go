package host

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"time"

	"github.com/volley-engine/volley/internal/wire"
)

// inspectedWait bounds how long a process tries to bring the driver what it was asked for.
const inspectedWait = 10 * time.Second

// answer brings the driver this process's stacks, or a profile; executor names a runner's, and is empty for the job's
// process.
func (p jobParty) answer(ask *wire.Ask, executor string) {
	reply := &wire.Inspection{Ticket: ask.Ticket, Executor: executor}
	data, err := inspect(time.Duration(ask.ProfileNs))
	if reply.Data = data; err != nil {
		reply.Failure = err.Error()
	}
	conn, err := p.driver()
	if err == nil {
		defer conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), inspectedWait)
		defer cancel()
		_, err = wire.NewClusterClient(conn).Inspected(ctx, reply)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "volley: what this process was asked for was not brought to the driver: %v\n", err)
	}
}

// inspect returns the stacks of all goroutines, or what the processors did for a while, as pprof reads it.
func inspect(profile time.Duration) ([]byte, error) {
	var out bytes.Buffer
	if profile <= 0 {
		return stacks(), nil
	}
	if err := pprof.StartCPUProfile(&out); err != nil {
		return nil, err // another is being made
	}
	timer := time.NewTimer(profile)
	defer timer.Stop()
	<-timer.C
	pprof.StopCPUProfile()
	return out.Bytes(), nil
}

// stacks returns the stacks of all goroutines, as a panic prints them.
func stacks() []byte {
	var out bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&out, 2) // a buffer takes all
	return out.Bytes()
}
