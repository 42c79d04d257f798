// Command client has workers ask a cluster for what several users would, until it is told to end, and prints each call
// and what came of it, a JSON object a line (chaos.Call).
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volley-engine/volley/integration/chaos"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

func main() {
	identity := flag.String("identity", "", "directory of the certificate")
	drivers := flag.String("drivers", "", "addresses of the drivers")
	data := flag.String("data", "", "file that submitted jobs read")
	workers := flag.Int("workers", 4, "how many ask at a time")
	seed := flag.Uint64("seed", 1, "what they ask for")
	flag.Parse()
	id, err := trust.OpenIdentity(*identity)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	s := &session{by: wire.Party{ID: id}, drivers: *drivers, data: *data, ids: map[string]string{},
		out: json.NewEncoder(os.Stdout)}
	var all sync.WaitGroup
	for n := range *workers {
		all.Go(func() { s.work(ctx, n, rand.New(rand.NewPCG(*seed, uint64(n)))) })
	}
	all.Wait()
}

// session is what the workers share.
type session struct {
	by            wire.Party
	drivers, data string

	mu  sync.Mutex
	ids map[string]string // of jobs, by tag
	out *json.Encoder
}

const (
	// callWait bounds a call: what comes later the client does not know.
	callWait = 3 * time.Second
	// pause is the longest time between two calls of a worker.
	pause = 250 * time.Millisecond
)

// work makes calls until the context ends. One that fails makes a new connection.
func (s *session) work(ctx context.Context, client int, rng *rand.Rand) {
	var hangUp func() error
	var calls wire.ClusterClient
	for n := 0; ctx.Err() == nil; n++ {
		if calls == nil {
			conn, err := wire.DialDriver(s.drivers, s.by)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			calls, hangUp = wire.NewClusterClient(conn), conn.Close
		}
		c := s.call(ctx, calls, client, n, rng)
		s.mu.Lock()
		_ = s.out.Encode(c) // who reads it has ended: so will this
		s.mu.Unlock()
		if c.Failed != "" {
			_ = hangUp()
			calls = nil
		}
		time.Sleep(time.Duration(rng.Int64N(int64(pause))))
	}
}

// call makes one call.
func (s *session) call(ctx context.Context, to wire.ClusterClient, client, n int, rng *rand.Rand) chaos.Call {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	c := chaos.Call{Client: client, Kind: chaos.List, Begun: now()}
	var err error
	switch draw := rng.IntN(10); {
	case draw < 1:
		c.Kind, c.Tag = chaos.Submit, fmt.Sprintf("%d-%d", client, n)
		err = s.submit(ctx, to, c.Tag)
	case draw < 3:
		if tag, id := s.any(); id != "" {
			c.Kind, c.Tag = chaos.Cancel, tag
			_, err = to.Cancel(ctx, &wire.CancelRequest{Id: id})
			break
		}
		fallthrough
	default:
		err = s.list(ctx, to, &c)
	}
	if c.Ended = now(); err != nil {
		c.Failed = err.Error()
	}
	return c
}

// submit submits a job that would go on for longer than anything here, in a pool that is named after its tag.
func (s *session) submit(ctx context.Context, to wire.ClusterClient, tag string) error {
	reply, err := to.Submit(ctx, &wire.SubmitRequest{Job: "logistic", Pool: poolPrefix + tag, Args: []string{"--data",
		s.data, "--solver", "gd", "--sync", "bsp", "--tol", "0", "--max-iterations", "1000000000"}})
	if err == nil {
		s.know(tag, reply.Id)
	}
	return err
}

const poolPrefix = "chaos-"

// list lists all jobs that workers have submitted.
func (s *session) list(ctx context.Context, to wire.ClusterClient, c *chaos.Call) error {
	reply, err := to.Jobs(ctx, &wire.JobsRequest{Brief: true})
	if err != nil {
		return err
	}
	c.Jobs = map[string]string{}
	for _, j := range reply.Jobs {
		tag, ours := strings.CutPrefix(j.Pool, poolPrefix)
		if !ours {
			continue
		}
		if _, there := c.Jobs[tag]; there {
			c.Twice = append(c.Twice, tag)
		}
		c.Jobs[tag] = j.State
		if j.State != "cancelled" && strings.HasPrefix(j.Why, "it is cancelled") {
			c.Jobs[tag] = "cancelled" // its process ends after a step
		}
		s.know(tag, j.Id)
	}
	return nil
}

func (s *session) know(tag, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids[tag] = id
}

// any returns any job whose id a worker has learned.
func (s *session) any() (tag, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tag, id = range s.ids {
		break
	}
	return tag, id
}

// now returns the machine's monotonic time in nanoseconds, which all its processes share.
func now() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // which is always there
	return t.Nano()
}
