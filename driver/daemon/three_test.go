package daemon

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// threeDrivers are the drivers of a cluster, each with a data directory of its own.
type threeDrivers struct {
	t     *testing.T
	dir   string
	addrs []string
	all   []*Replica // nil where one is down
	admin wire.Party
	cfg   Config
}

// freePorts returns addresses of this machine that are free.
func freePorts(t *testing.T, n int) (out []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		out = append(out, l.Addr().String())
	}
	return out
}

// newThree makes and starts a cluster of three drivers whose job processes run a shell script.
func newThree(t *testing.T, script string) *threeDrivers {
	t.Helper()
	dir := t.TempDir()
	c := &threeDrivers{t: t, dir: dir, addrs: freePorts(t, 3), all: make([]*Replica, 3)}
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	admin, _, err := Init(c.data(0), "test", c.addrs[0], c.addrs[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	bundle := filepath.Join(dir, "bundle")
	if err := WriteBundle(c.data(0), bundle); err != nil {
		t.Fatal(err)
	}
	for n := 1; n < 3; n++ {
		if _, err := InitFrom(c.data(n), bundle, c.addrs[n]); err != nil {
			t.Fatal(err)
		}
	}
	id, err := trust.NewIdentity(admin)
	if err != nil {
		t.Fatal(err)
	}
	c.admin = wire.Party{ID: id}
	c.cfg = Config{Program: program, Drain: time.Second}
	c.startAll()
	t.Cleanup(func() {
		for n := range c.all {
			c.stop(n)
		}
	})
	return c
}

func (c *threeDrivers) data(n int) string { return filepath.Join(c.dir, fmt.Sprint("driver-", n+1)) }

func (c *threeDrivers) start(n int) {
	c.t.Helper()
	cfg := c.cfg
	cfg.DataDir = c.data(n)
	if testing.Verbose() {
		cfg.Logger = hclog.New(&hclog.LoggerOptions{Name: fmt.Sprint("driver-", n+1), Level: hclog.Info})
	}
	r, err := Start(context.Background(), cfg)
	// While it was away a connection of another process may have got its port, which nothing keeps for it.
	for end := time.Now().Add(bound); errors.Is(err, syscall.EADDRINUSE) && time.Now().Before(end); {
		<-time.After(50 * time.Millisecond)
		r, err = Start(context.Background(), cfg)
	}
	if err != nil {
		c.t.Error(err)
	}
	c.all[n] = r
}

// startAll starts all drivers at once: those of a new cluster wait for each other.
func (c *threeDrivers) startAll() {
	c.t.Helper()
	var all sync.WaitGroup
	for n := range c.all {
		all.Go(func() { c.start(n) })
	}
	if all.Wait(); c.t.Failed() {
		c.t.FailNow()
	}
}

func (c *threeDrivers) stop(n int) {
	if r := c.all[n]; r != nil {
		c.all[n] = nil
		if err := r.Close(); err != nil {
			c.t.Error(err)
		}
	}
}

// leader waits until a driver leads, and returns its number.
func (c *threeDrivers) leader() int {
	c.t.Helper()
	for end := time.Now().Add(bound); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		for n, r := range c.all {
			if r != nil && r.present.Load() != nil {
				return n
			}
		}
	}
	c.t.Fatal("no driver leads")
	return 0
}

// client connects to the driver that leads.
func (c *threeDrivers) client() wire.ClusterClient {
	c.t.Helper()
	conn, err := wire.DialDriver(c.addrs[0]+","+c.addrs[1]+","+c.addrs[2], c.admin)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	return wire.NewClusterClient(conn)
}

// TestAJobOutlivesTheDriverThatLeads: another has it in its journal, and starts its process.
func TestAJobOutlivesTheDriverThatLeads(t *testing.T) {
	t.Parallel()
	c := newThree(t, "exec sleep 600")
	first := c.leader()
	client := c.client()
	reply, err := client.Submit(context.Background(), &wire.SubmitRequest{Job: "logistic"})
	if err != nil {
		t.Fatal(err)
	}
	c.stop(first)
	second := c.leader()
	if second == first {
		t.Fatal("the driver leads that is down")
	}
	c.jobIs(client, reply.Id, JobRunning)
}

// jobIs waits until a job is in a state.
func (c *threeDrivers) jobIs(client wire.ClusterClient, id, state string) *wire.JobInfo {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	for {
		jobs, err := client.Jobs(ctx, &wire.JobsRequest{Id: id})
		if err == nil && jobs.Jobs[0].State == state {
			return jobs.Jobs[0]
		}
		select {
		case <-ctx.Done():
			c.t.Fatalf("job %s is not %s: %v: %v", id, state, jobs, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// state waits until a driver's journal has what a function wants.
func (c *threeDrivers) state(n int, what string, has func(State) bool) {
	c.t.Helper()
	for end := time.Now().Add(bound); !has(c.all[n].journal.State()); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("driver %d: %s", n+1, what)
		}
	}
}

// TestTwoOfThreeDecide: one alone takes nothing in, and says why.
func TestTwoOfThreeDecide(t *testing.T) {
	t.Parallel()
	c := newThree(t, "exit 1")
	n := c.leader()
	client := c.client()
	if _, err := client.Submit(context.Background(), &wire.SubmitRequest{Job: "logistic"}); err != nil {
		t.Fatal(err)
	}
	c.stop((n + 1) % 3)
	if _, err := client.Submit(context.Background(), &wire.SubmitRequest{Job: "logistic"}); err != nil {
		t.Fatalf("with two of three: %v", err)
	}
	c.stop((n + 2) % 3)
	for end := time.Now().Add(bound); c.all[n].present.Load() != nil; <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("one of three leads")
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	for {
		r, err := client.Submit(ctx, &wire.SubmitRequest{Job: "logistic"}, grpc.WaitForReady(true))
		if err == nil {
			t.Fatalf("one of three takes in %s", r.Id)
		}
		if strings.Contains(err.Error(), "no driver leads") {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("it says %v", err)
		}
	}
	if s := c.all[n].standing(); s.Leads || s.Leader != "" {
		t.Errorf("it stands %+v", s)
	}
	c.start((n + 1) % 3)
	if _, err := c.client().Submit(context.Background(), &wire.SubmitRequest{Job: "logistic"}); err != nil {
		t.Errorf("with two of three again: %v", err)
	}
}

// TestADamagedJournalIsBroughtFromTheOthers, and so is one that is gone: the driver votes for none before it is there.
func TestADamagedJournalIsBroughtFromTheOthers(t *testing.T) {
	t.Parallel()
	for what, damage := range map[string]func(path string) error{
		"a bit of it is another": func(path string) error {
			raw, err := os.ReadFile(path)
			if err == nil {
				raw[len(raw)/2] ^= 4
				err = os.WriteFile(path, raw, 0o600)
			}
			return err
		},
		"it is gone": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newThree(t, "exit 1")
			n := (c.leader() + 1) % 3
			client := c.client()
			for range 5 {
				if _, err := client.Submit(context.Background(), &wire.SubmitRequest{Job: "logistic"}); err != nil {
					t.Fatal(err)
				}
			}
			c.state(n, "it has no jobs", func(s State) bool { return s.Last == 5 })
			c.stop(n)
			if err := damage(filepath.Join(c.data(n), "journal", journalName)); err != nil {
				t.Fatal(err)
			}
			c.start(n)
			c.state(n, "it has not got the jobs back", func(s State) bool { return s.Last == 5 })
			for end := time.Now().Add(bound); !c.all[n].journal.votes.Load(); <-time.After(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("it does not vote again")
				}
			}
			c.stop((n + 1) % 3)
			if _, err := c.client().Submit(context.Background(), &wire.SubmitRequest{Job: "logistic"},
				grpc.WaitForReady(true)); err != nil {
				t.Errorf("its vote does not count: %v", err)
			}
		})
	}
}

// TestWhatAJobHasMadeOutlivesItsDriver: model, result and log are at a majority before the job is done, and what is
// damaged at one is brought from another.
func TestWhatAJobHasMadeOutlivesItsDriver(t *testing.T) {
	t.Parallel()
	c := newThree(t, `mkdir -p out; echo model > out/model; echo '{"a":1}'; echo said >&2; exec sleep 600`)
	first := c.leader()
	client := c.client()
	reply, err := client.Submit(context.Background(), &wire.SubmitRequest{Job: "logistic"})
	if err != nil {
		t.Fatal(err)
	}
	d := c.all[first].present.Load()
	w, err := d.jobs.find(reply.Id)
	if err != nil {
		t.Fatal(err)
	}
	awaitLog(t, w, "said")
	sum := sha256.Sum256([]byte("model\n"))
	made := []MadeFile{{Path: "out/model", Size: 6, SHA256: plan.DigestFromBytes(sum[:])}}
	d.jobs.step(LifeEvent{Process: &ProcessEvent{Job: reply.Id, Said: &ProcessSaid{Incarnation: reply.Id + ".1",
		Files: made}}})
	w.signal(1, os.Kill)
	c.jobIs(client, reply.Id, JobDone)
	c.stop(first)
	second := c.leader()
	info := c.jobIs(client, reply.Id, JobDone)
	if info.Result != `{"a":1}` {
		t.Errorf("its result is %q", info.Result)
	}
	model := filepath.Join(c.data(second), "jobs", reply.Id, "out", "model")
	if raw, err := os.ReadFile(model); err != nil || string(raw) != "model\n" {
		t.Logf("the driver that leads has not the model yet: %q %v", raw, err) // another has: a majority is two
	}
	c.start(first)
	if err := os.MkdirAll(filepath.Dir(model), 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"out/model": "modem\n", "result.json": `{"a":2}`, "log.0": "paid\n"} {
		if err := os.WriteFile(filepath.Join(c.data(second), "jobs", reply.Id, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if info := c.jobIs(client, reply.Id, JobDone); info.Result != `{"a":1}` {
		t.Errorf("its result, once damaged, is %q (%s)", info.Result, info.Why)
	}
	if got := downloaded(t, client, reply.Id)["out/model"]; got != "model\n" {
		t.Errorf("its model, once damaged, is %q", got)
	}
	if got := watched(t, client, reply.Id); got != "said\n" {
		t.Errorf("its log, once damaged, is %q", got)
	}
}

// downloaded brings the files of a job.
func downloaded(t *testing.T, client wire.ClusterClient, id string) map[string]string {
	t.Helper()
	stream, err := client.Download(context.Background(), &wire.DownloadRequest{Id: id})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out[part.Path] += string(part.Data)
	}
}

// watched brings the log of a job that has ended.
func watched(t *testing.T, client wire.ClusterClient, id string) (out string) {
	t.Helper()
	stream, err := client.Watch(context.Background(), &wire.WatchRequest{Id: id})
	if err != nil {
		t.Fatal(err)
	}
	for {
		part, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if out += string(part.Log); part.Ended != nil {
			return out
		}
	}
}

// awaitLog waits until a job's process has printed a text.
func awaitLog(t *testing.T, w *jobHandle, text string) {
	t.Helper()
	for end := time.Now().Add(bound); ; <-time.After(10 * time.Millisecond) {
		raw, _ := os.ReadFile(filepath.Join(w.dir, "log.0")) // it is there once something is printed
		if strings.Contains(string(raw), text) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("it has printed %q", raw)
		}
	}
}

// TestADriverIsTakenInAndOut, by a token, while the cluster runs; and the only one of a cluster stays.
func TestADriverIsTakenInAndOut(t *testing.T) {
	t.Parallel()
	c := newThree(t, "exit 1")
	c.leader()
	client := c.client()
	made, err := client.CreateToken(context.Background(), &wire.CreateTokenRequest{Role: "driver",
		TtlNs: int64(time.Hour), Uses: 1}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	token, err := trust.ParseToken(made.Token)
	if err != nil {
		t.Fatal(err)
	}
	own, bundle, err := wire.JoinDriver(context.Background(), token, "")
	if err != nil {
		t.Fatal(err)
	}
	c.addrs = append(c.addrs, freePorts(t, 1)...)
	c.all = append(c.all, nil)
	if id, err := InitJoined(c.data(3), own, bundle, c.addrs[3]); err != nil || id != "4" {
		t.Fatalf("driver %q: %v", id, err)
	}
	c.start(3)
	c.state(3, "it has no journal", func(s State) bool { return len(s.Access.Members) > 0 })
	list := func() int {
		reply, err := client.Drivers(context.Background(), &wire.DriversRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return len(reply.Drivers)
	}
	if n := list(); n != 4 {
		t.Errorf("there are %d drivers", n)
	}
	for end := time.Now().Add(bound); !c.all[3].isVoter(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not vote")
		}
	}
	if _, err := client.RemoveDriver(context.Background(), &wire.RemoveDriverRequest{Id: "4"}); err != nil {
		t.Fatal(err)
	}
	if n := list(); n != 3 {
		t.Errorf("there are %d drivers after one was taken out", n)
	}
	_, err = client.RemoveDriver(context.Background(), &wire.RemoveDriverRequest{Id: fmt.Sprint(c.leader() + 1)})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("the driver that leads: %v", err)
	}
}

// TestOnlyDriversShare: no other role is let at the journal or the copies of files.
func TestOnlyDriversShare(t *testing.T) {
	t.Parallel()
	c := newThree(t, "exit 1")
	r := c.all[c.leader()]
	for role, by := range map[trust.Role]wire.Party{
		trust.Admin: c.admin,
		trust.Executor: issued(t, r.present.Load(), trust.Name{Role: trust.Executor, ID: "e"}, time.Hour,
			time.Now()),
		trust.Job: issued(t, r.present.Load(), trust.Name{Role: trust.Job, ID: "job-000001"}, time.Hour, time.Now()),
	} {
		conn, err := wire.DialFiles(r.self.Address, by, r.founding)
		if err != nil {
			t.Fatal(err)
		}
		_, err = wire.NewFilesClient(conn).Have(context.Background(), &wire.HaveRequest{Dir: "jobs/job-000001"})
		conn.Close()
		if status.Code(err) != codes.PermissionDenied && status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s asks for files: %v", role, err)
		}
		raw, err := by.DialProtocol(context.Background(), r.self.Address, wire.OfJournal(r.founding),
			trust.OfRole(trust.Driver))
		if err != nil {
			continue
		}
		_ = raw.SetReadDeadline(time.Now().Add(bound))
		if n, err := raw.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s speaks to the journal: %d bytes, %v", role, n, err)
		}
		raw.Close()
	}
}

// TestOneAddressIsEnough: who has spoken with one driver finds the others when that one is lost.
func TestOneAddressIsEnough(t *testing.T) {
	t.Parallel()
	c := newThree(t, "exit 1")
	n := c.leader()
	jobs := func() error {
		conn, err := wire.DialDriver(c.addrs[n], c.admin)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, err = wire.NewClusterClient(conn).Jobs(context.Background(), &wire.JobsRequest{})
		return err
	}
	if err := jobs(); err != nil {
		t.Fatal(err)
	}
	c.stop(n)
	if err := jobs(); err != nil {
		t.Error(err)
	}
}
