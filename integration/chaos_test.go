package integration

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/volley-engine/volley/integration/chaos"
	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/integration/netns"
)

var (
	chaosRuns = flag.Int("chaos", 0, "run that many seeds of TestChaosOnANetwork, each for a minute")
	chaosFrom = flag.Uint64("chaos-from", 1, "the first of them")
)

// Of a run that is not asked for: how long things are done to the cluster, and the seed.
const (
	chaosBrief = 12 * time.Second
	chaosSeed  = 3
)

// TestChaosOnANetwork: whatever is done to three drivers and four executors at seeded times, a job ends with the bytes
// of a run that nothing disturbs, verify and replay take its log, and what clients were told meanwhile is what one
// machine that never fails could have said (make chaos SEEDS=60 FROM=1).
func TestChaosOnANetwork(t *testing.T) {
	if *chaosRuns == 0 {
		t.Parallel()
		newChaos(t, chaosSeed, binary).run(chaosBrief)
		return
	}
	program, err := chaos.Build(t.TempDir(), "../cmd/volley")
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(*chaosRuns) {
		seed := *chaosFrom + n
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			c := newChaos(t, seed, program)
			c.run(time.Minute)
		})
	}
}

// storm is a cluster to which things are done.
type storm struct {
	*drivers
	seed   uint64
	want   string        // the model of an undisturbed run
	active []chaos.Fault // of links
	client *exec.Cmd
	calls  bytes.Buffer
	said   lab.Log // by the client, beside its calls
}

var (
	chaosDrivers   = []string{"d1", "d2", "d3"}
	chaosExecutors = []string{"e1", "e2", "e3", "e4"}
)

// newChaos starts a cluster whose drivers have small disks, and clocks that a program made for that sets apart.
func newChaos(t *testing.T, seed uint64, program string) *storm {
	t.Helper()
	c := &storm{seed: seed}
	c.drivers = driversOf(t, program, func(d *drivers) {
		d.flags = []string{"--max-jobs", "1"}
		for _, id := range []string{"1", "2", "3"} {
			if err := smallDisk(t, d.data(id)); err != nil {
				t.Skipf("a disk of its own cannot be mounted here: %v", err)
			}
		}
		for host, clock := range chaos.Clocks(seed, chaosDrivers, chaosExecutors) {
			d.env[host] = clock.Env()
		}
	})
	return c
}

// smallDisk has a directory be a disk of its own, which lasts as long as the test.
func smallDisk(t *testing.T, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	mount := exec.Command("mount", "-t", "tmpfs", "-o", "size=256m", "volley-test", dir)
	if out, err := mount.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() }) // its driver may not have ended
	return nil
}

// run does to the cluster what the seed's plan says, within a time, and checks what came of it.
func (c *storm) run(within time.Duration) {
	data := generated(c.t)
	flags := steps(data, int(within/time.Second)*360)
	c.want = filepath.Join(c.dir, "want")
	c.as("client", append([]string{"run", "logistic", "--executors", "4", "--out", c.want}, flags...)...)
	id := c.as("client", append([]string{"submit", "logistic", "--detach"}, flags...)...)
	c.startClient(data)
	plan := chaos.Plan(c.seed, within, chaosDrivers, chaosExecutors)
	chaos.Carry(plan, within, c.do)
	c.active = nil
	c.Heal()
	calls := c.endClient()
	defer func() {
		if c.t.Failed() {
			c.tell(plan)
		}
	}()
	c.outlasts(id)
	c.ends(id, c.want)
	c.check(calls)
}

// outlasts waits until a job has gone through what was done.
func (c *storm) outlasts(id string) {
	c.t.Helper()
	var j jobNow
	var err error
	for end := time.Now().Add(3 * time.Minute); ; {
		if j, err = c.job(id); err == nil && j.State != "running" && j.State != "waiting" {
			break
		}
		if time.Now().After(end) {
			c.t.Fatalf("three minutes after the last fault %s is %+v, %v", id, j, err)
		}
	}
	if j.State != "done" {
		c.t.Fatalf("%s: %+v", id, j)
	}
}

// check holds what clients were told against what may be so.
func (c *storm) check(calls []chaos.Call) {
	c.t.Helper()
	count := map[chaos.Kind]int{}
	failed := 0
	for _, one := range calls {
		count[one.Kind]++
		if one.Failed != "" {
			failed++
		}
	}
	how, err := chaos.Check(calls, 30*time.Second)
	c.t.Logf("seed %d: calls %v, %d without an answer; held against the model: %s", c.seed, count, failed, how)
	if err != nil {
		c.t.Errorf("seed %d: %v", c.seed, err)
	}
	if count[chaos.Submit] == 0 || count[chaos.List] == failed {
		c.t.Errorf("seed %d: clients have found out nothing: %v, %d failed\n%s", c.seed, count, failed, &c.said)
	}
}

// tell says what was done, and what the daemons say of it.
func (c *storm) tell(plan []chaos.Fault) {
	c.t.Logf("seed %d: make chaos SEEDS=1 FROM=%d", c.seed, c.seed)
	for _, f := range plan {
		c.t.Log(f)
	}
	for id, p := range c.running {
		if p != nil {
			c.t.Logf("driver %s:\n%s", id, p.Log)
		}
	}
}

// startClient starts the program that asks the cluster.
func (c *storm) startClient(data string) {
	c.t.Helper()
	program, args := c.Host("client").On(built(c.t, "./integration/chaos/client"),
		"--identity", filepath.Join(c.home("client"), "clusters", "net"), "--drivers", c.addresses(), "--data", data,
		"--seed", fmt.Sprint(c.seed))
	c.client = exec.Command(program, args...)
	c.client.Stdout, c.client.Stderr = &c.calls, &c.said
	if err := c.client.Start(); err != nil {
		c.t.Fatal(err)
	}
}

// endClient ends it, and returns the calls that it has made.
func (c *storm) endClient() []chaos.Call {
	c.t.Helper()
	_ = c.client.Process.Signal(syscall.SIGTERM)
	if err := c.client.Wait(); err != nil {
		c.t.Fatalf("the client: %v\n%s", err, &c.said)
	}
	calls, err := chaos.Read(&c.calls)
	if err != nil {
		c.t.Fatal(err)
	}
	return calls
}

// do does one thing to the cluster.
func (c *storm) do(f chaos.Fault) {
	c.t.Helper()
	switch f.What {
	case chaos.CutOff, chaos.CutOneWay, chaos.Slow, chaos.Lossy:
		c.active = append(c.active, f)
		c.link()
	case chaos.Uncut:
		c.active = slices.DeleteFunc(c.active, func(a chaos.Fault) bool { return slices.Equal(a.On, f.On) })
		c.link()
	case chaos.KillJob, chaos.KillRunner:
		for _, host := range f.On {
			c.killChild(host)
		}
	default:
		for _, host := range f.On {
			c.daemon(f.What, host)
		}
	}
}

// link has packets meet what the faults that last have on their ways.
func (c *storm) link() {
	ways, cut := map[[2]*netns.Host]netns.Link{}, netns.Link{Cut: true}
	both := func(h *netns.Host, l netns.Link) {
		for _, o := range c.Hosts {
			ways[[2]*netns.Host{h, o}], ways[[2]*netns.Host{o, h}] = l, l
		}
	}
	slices.SortStableFunc(c.active, func(a, b chaos.Fault) int { // what is cut is cut, however slow it is
		return strings.Compare(string(b.What), string(a.What))
	})
	for _, f := range c.active {
		first := c.Host(f.On[0])
		switch f.What {
		case chaos.CutOff:
			for _, name := range f.On {
				for _, o := range c.Hosts {
					if !slices.Contains(f.On, o.Name) {
						h := c.Host(name)
						ways[[2]*netns.Host{h, o}], ways[[2]*netns.Host{o, h}] = cut, cut
					}
				}
			}
		case chaos.CutOneWay:
			ways[[2]*netns.Host{first, c.Host(f.On[len(f.On)-1])}] = cut
		case chaos.Slow:
			both(first, netns.Link{Delay: 200 * time.Millisecond})
		case chaos.Lossy:
			both(first, netns.Link{Loss: 0.05})
		}
	}
	c.SetAll(ways)
}

// daemon does something to the daemon of a host.
func (c *storm) daemon(what chaos.What, host string) {
	c.t.Helper()
	p := c.executors[host]
	if id, driver := strings.CutPrefix(host, "d"); driver {
		p = c.running[id]
	}
	switch what {
	case chaos.Kill:
		p.Kill()
	case chaos.Stop:
		_ = p.Process.Signal(syscall.SIGSTOP)
	case chaos.Resume:
		_ = p.Process.Signal(syscall.SIGCONT)
	case chaos.Restart:
		c.again(host)
	case chaos.FillDisk:
		c.fill(host)
	case chaos.FreeDisk:
		_ = os.Remove(c.ballast(host))
		select {
		case <-p.Ended: // it could not go on
			c.again(host)
		default:
		}
	}
}

// again starts a daemon, and does not wait for it: others may be down.
func (c *storm) again(host string) {
	args := []string{"executor", "--driver", c.addresses(), "--name", host, "--data-dir",
		filepath.Join(c.dir, host+"-data")}
	id, driver := strings.CutPrefix(host, "d")
	if driver {
		args = c.command(id)
	}
	program, rest := c.on(host, args)
	p, err := lab.Begin(program, rest...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(p.Kill)
	if driver {
		c.running[id] = p
	} else {
		c.executors[host] = p
	}
}

func (c *storm) ballast(host string) string {
	return filepath.Join(c.data(strings.TrimPrefix(host, "d")), "ballast")
}

// fill leaves no byte free on a driver's disk.
func (c *storm) fill(host string) {
	f, err := os.Create(c.ballast(host))
	if err != nil {
		return // it has none already
	}
	defer f.Close()
	for chunk := make([]byte, 1<<20); ; {
		if _, err := f.Write(chunk); err != nil {
			return
		}
	}
}

// killChild kills a process that a daemon has started, if there is one.
func (c *storm) killChild(host string) {
	p := c.executors[host]
	if id, driver := strings.CutPrefix(host, "d"); driver {
		p = c.running[id]
	}
	for _, child := range childrenOf(c.t, p.Process.Pid) {
		if pid, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			return
		}
	}
}
