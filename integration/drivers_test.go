package integration

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/integration/netns"
)

// failovers is how often TestHowLongAFailoverTakes has the driver that leads fail.
var failovers = flag.Int("failovers", 0, "measure that many failovers of three drivers")

// drivers is a cluster of three drivers, four executors and a client, each on a host of its own.
type drivers struct {
	*onNetwork
	running map[string]*lab.Process // of the drivers, by id; nil where one is down
	flags   []string                // of each driver
}

// newDrivers starts the cluster by the commands of docs/operations.md.
func newDrivers(t *testing.T) *drivers { return driversOf(t, binary, nil) }

// driversOf does what newDrivers does, with another volley on each host, and what a function prepares before anything
// is started.
func driversOf(t *testing.T, program string, prepare func(*drivers)) *drivers {
	t.Helper()
	if err := netns.Available(); err != nil {
		t.Skip(err)
	}
	network, err := netns.New(1, "d1", "d2", "d3", "e1", "e2", "e3", "e4", "client")
	if err != nil {
		t.Fatal(err)
	}
	d := &drivers{onNetwork: &onNetwork{network, t, t.TempDir(), map[string]*lab.Process{}, map[string]string{},
		map[string]string{}}, running: map[string]*lab.Process{}}
	for _, h := range network.Hosts {
		d.programs[h.Name] = program
	}
	t.Cleanup(network.Close)
	if prepare != nil {
		prepare(d)
	}
	bundle := filepath.Join(d.data("1"), "drivers.bundle")
	d.as("d1", "init", "--address", d.address("1"), "--peers", d.address("2")+","+d.address("3"), "--name", "net",
		"--data-dir", d.data("1"))
	for _, id := range []string{"2", "3"} {
		d.as("d"+id, "init", "--bundle", bundle, "--address", d.address(id), "--data-dir", d.data(id))
	}
	d.startAll()
	d.as("client", "login", d.as("d1", "token", "create", "--role", "admin", "--name", "client"))
	token := d.as("client", "token", "create", "--role", "executor", "--uses", "4")
	for _, name := range []string{"e1", "e2", "e3", "e4"} {
		d.executors[name] = d.launch(name, "executor", "--join", token, "--name", name, "--data-dir",
			filepath.Join(d.dir, name+"-data"))
	}
	return d
}

// addresses returns those of all drivers, as --driver takes them.
func (d *drivers) addresses() string {
	return d.address("1") + "," + d.address("2") + "," + d.address("3")
}

// command returns the arguments by which a driver is started.
func (d *drivers) command(id string) []string {
	return append([]string{"driver", "--data-dir", d.data(id)}, d.flags...)
}

func (d *drivers) address(id string) string { return d.Host("d"+id).IP + ":7077" }

func (d *drivers) data(id string) string { return filepath.Join(d.dir, "driver-"+id) }

func (d *drivers) start(id string) {
	d.t.Helper()
	d.running[id] = d.launch("d"+id, d.command(id)...)
}

// startAll starts all drivers at once: those of a new cluster wait for each other.
func (d *drivers) startAll() {
	d.t.Helper()
	var all sync.WaitGroup
	started := make([]*lab.Process, 3)
	for n := range started {
		all.Go(func() { started[n] = d.launch(fmt.Sprint("d", n+1), d.command(fmt.Sprint(n+1))...) })
	}
	all.Wait()
	for n, p := range started {
		d.running[fmt.Sprint(n+1)] = p
	}
}

// kill ends a driver and whatever it has started.
func (d *drivers) kill(id string) {
	p := d.running[id]
	d.running[id] = nil
	p.Kill()
	<-p.Ended
}

// leader returns the driver that leads, as the client sees it.
func (d *drivers) leader() string {
	d.t.Helper()
	var all []struct{ ID, State string }
	if err := json.Unmarshal([]byte(d.as("client", "drivers", "--json")), &all); err != nil {
		d.t.Fatal(err)
	}
	for _, one := range all {
		if one.State == "leads" {
			return one.ID
		}
	}
	d.t.Fatalf("no driver leads: %+v", all)
	return ""
}

// jobNow is a job as the client sees it.
type jobNow struct {
	State    string `json:"state"`
	Step     int    `json:"step"`
	Restarts int    `json:"restarts"`
	Why      string `json:"why"`
}

// job asks for a job. A question that the driver was asked that is cut off meanwhile is asked again.
func (d *drivers) job(id string) (j jobNow, err error) {
	out, err := d.tryFor(2*time.Second, "client", "job", id, "--json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &j)
	}
	return j, err
}

// await waits until a job is as a function wants it, and returns how long that took.
func (d *drivers) await(id, what string, is func(jobNow) bool) time.Duration {
	d.t.Helper()
	began := time.Now()
	for {
		j, err := d.job(id)
		if err == nil && is(j) {
			return time.Since(began)
		}
		if time.Since(began) > time.Minute {
			d.t.Fatalf("%s is not %s: %+v, %v", id, what, j, err)
		}
	}
}

// steps are the flags of a job that takes a while.
func steps(data string, n int) []string {
	return []string{"--data", data, "--sync", "bsp", "--solver", "gd", "--tol", "0", "--splits", "12",
		"--max-iterations", fmt.Sprint(n)}
}

// submit submits a job and waits until it has committed some steps.
func (d *drivers) submit(flags []string) (id string, step int) {
	d.t.Helper()
	id = d.as("client", append([]string{"submit", "logistic", "--detach"}, flags...)...)
	d.await(id, "at work", func(j jobNow) bool { step = j.Step; return j.Step > 20 })
	return id, step
}

// ends waits for the end of a job, and compares its model with that of a run that nothing has disturbed; verify and
// replay take its log.
func (d *drivers) ends(id, want string) {
	d.t.Helper()
	var last jobNow
	d.await(id, "done", func(j jobNow) bool { last = j; return j.State != "running" && j.State != "waiting" })
	if last.State != "done" {
		d.t.Fatalf("%s: %+v\n%s", id, last, d.as("client", "logs", id))
	}
	out := filepath.Join(d.dir, fmt.Sprint("model-", time.Now().UnixNano()))
	log := out + ".jsonl"
	d.as("client", "job", id, "--out", out, "--event-log", log)
	if !sameFile(d.t, filepath.Join(out, "weights.arrow"), filepath.Join(want, "weights.arrow")) {
		d.t.Errorf("%s: the model has other bytes than that of an undisturbed run", id)
	}
	d.as("client", "verify", log)
	d.as("client", "replay", log)
}

// TestThreeDriversOnANetwork: whichever driver is lost, jobs end with the bytes of a run that nothing disturbs.
func TestThreeDriversOnANetwork(t *testing.T) {
	t.Parallel()
	d := newDrivers(t)
	data := generated(t)
	flags := steps(data, 1500)
	want := filepath.Join(d.dir, "want")
	d.as("client", append([]string{"run", "logistic", "--executors", "4", "--out", want}, flags...)...)
	d.as("client", "submit", "--binary", built(t, "./examples/01-wordcount"), "--",
		"--input", absolutePath(t, "../README.md"), "--output",
		filepath.Join(d.dir, "words"))
	t.Run("the leader is killed", func(t *testing.T) {
		id, step := d.submit(flags)
		runners := d.runnersOf(id)
		leader := d.leader()
		d.kill(leader)
		took := d.await(id, "at work again", func(j jobNow) bool { return j.Step > step+1 && d.onOther(leader) })
		t.Logf("steps are committed again after %v", took.Round(10*time.Millisecond))
		if again := d.runnersOf(id); !slices.Equal(again, runners) {
			t.Errorf("its runners were %v, and are %v", runners, again)
		}
		d.ends(id, want)
		d.start(leader)
	})
	t.Run("the leader is cut off", func(t *testing.T) {
		id, step := d.submit(flags)
		leader := d.leader()
		d.cutOff(leader)
		took := d.await(id, "at work again", func(j jobNow) bool { return j.Step > step+1 })
		t.Logf("steps are committed again after %v", took.Round(10*time.Millisecond))
		d.ends(id, want)
		d.Heal()
		if !strings.Contains(d.running[leader].Log.String(), "does not lead any more") {
			t.Errorf("the driver that was cut off says\n%s", d.running[leader].Log)
		}
	})
	t.Run("two of three are lost", func(t *testing.T) {
		id, _ := d.submit(flags)
		leader := d.leader()
		var lost []string
		for _, other := range []string{"1", "2", "3"} {
			if other != leader {
				d.kill(other)
				lost = append(lost, other)
			}
		}
		d.silent(id)
		for _, other := range lost {
			d.start(other)
		}
		d.ends(id, want)
	})
}

// cutOff cuts a driver off from all other hosts.
func (d *drivers) cutOff(id string) {
	host := d.Host("d" + id)
	d.Partition(host, slices.DeleteFunc(slices.Clone(d.Hosts), func(h *netns.Host) bool { return h == host })...)
}

// silent waits until commands are told that no driver leads.
func (d *drivers) silent(id string) {
	d.t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		out, err := d.try("client", "job", id)
		if err != nil && strings.Contains(err.Error(), "no driver leads") {
			return
		}
		if time.Now().After(end) {
			d.t.Fatalf("with one of three the job is %s, %v", out, err)
		}
	}
}

// onOther reports whether another driver leads than one that was lost.
func (d *drivers) onOther(lost string) bool { return d.leader() != lost }

// runnersOf returns the ids of the processes that run a job on executors.
func (d *drivers) runnersOf(job string) (out []string) {
	d.t.Helper()
	for name := range d.executors {
		out = append(out, childrenOf(d.t, d.executors[name].Process.Pid)...)
	}
	slices.Sort(out)
	if len(out) == 0 {
		d.t.Fatalf("%s has no runners", job)
	}
	return out
}

// childrenOf returns the ids of a process's children.
func childrenOf(t *testing.T, pid int) []string {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range threads {
		raw, _ := os.ReadFile(f) // a thread that has ended has none
		out = append(out, strings.Fields(string(raw))...)
	}
	return out
}

// TestHowLongAFailoverTakes measures it, from the loss of the driver that leads to the next step that is committed.
func TestHowLongAFailoverTakes(t *testing.T) {
	if *failovers == 0 {
		t.Skip("measured by -failovers N")
	}
	d := newDrivers(t)
	flags := steps(generated(t), 1_000_000)
	id, _ := d.submit(flags)
	for _, how := range []string{"killed", "cut off"} {
		var all []time.Duration
		for range *failovers {
			var step int
			d.await(id, "at work", func(j jobNow) bool { step = j.Step; return j.State == "running" && step > 0 })
			leader := d.leader()
			lost := time.Now()
			if how == "killed" {
				d.kill(leader)
			} else {
				d.cutOff(leader)
			}
			d.await(id, "known to another driver", func(j jobNow) bool { step = j.Step; return true })
			d.await(id, "at work again", func(j jobNow) bool { return j.Step > step })
			all = append(all, time.Since(lost))
			if d.Heal(); how == "killed" {
				d.start(leader)
			}
			for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
				if out := d.as("client", "drivers"); !strings.Contains(out, "silent") {
					break
				}
			}
		}
		slices.Sort(all)
		t.Logf("the leader is %s: the next step is committed after %v (median of %d), %v at most", how,
			all[len(all)/2].Round(time.Millisecond), len(all), all[len(all)-1].Round(time.Millisecond))
	}
}
