package lab

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/wire"
)

// Cluster is a driver and executors in processes of their own.
type Cluster struct {
	Program   string
	Dir       string
	Addr      string // of the driver
	Driver    *Process
	Executors map[string]*Process
	flags     []string   // of the driver
	quiet     []string   // of all daemons
	others    []*Process // drivers beside the first
	token     string     // by which executors join, over TLS
}

// Build makes the program.
func Build(dir string) (program string, err error) {
	program = filepath.Join(dir, "volley")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s", "-o", program, "./cmd/volley")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
}

// Home has programs that this process starts keep what they know of clusters under a directory, and not at the user's.
func Home(dir string) error { return os.Setenv("VOLLEY_HOME", dir) }

// New describes a cluster that keeps everything under a directory; its driver is not started yet.
func New(program, dir string, flags ...string) *Cluster {
	return &Cluster{Program: program, Dir: dir, Addr: wire.SocketAddress(filepath.Join(dir, "driver.sock")),
		Executors: map[string]*Process{}, flags: flags}
}

// Start starts a driver that keeps everything under a directory and says no more than it must: for measuring.
func Start(program, dir string, flags ...string) (*Cluster, error) {
	if err := Home(filepath.Join(dir, "home")); err != nil {
		return nil, err
	}
	c := New(program, dir, flags...)
	c.quiet = []string{"--log-level", "error"}
	return c, c.StartDriver()
}

// StartDriver starts the driver, for the first time or again.
func (c *Cluster) StartDriver() (err error) {
	args := []string{"driver", "--listen", c.Addr, "--data-dir", filepath.Join(c.Dir, "driver")}
	if c.Driver, err = Launch(c.Program, slices.Concat(args, c.quiet, c.flags)...); err == nil {
		c.Addr = c.Driver.Ready["listening"]
	}
	return err
}

// Join starts an executor; those of one data directory share packs.
func (c *Cluster) Join(name, dataDir string, flags ...string) error {
	args := []string{"executor", "--driver", c.Addr, "--name", name, "--data-dir", filepath.Join(c.Dir, dataDir)}
	if c.token != "" {
		args[1], args[2] = "--join", c.token
	}
	p, err := Launch(c.Program, slices.Concat(args, c.quiet, flags)...)
	if err == nil {
		c.Executors[name] = p
	}
	return err
}

// Signal sends a signal to an executor and to its runners.
func (c *Cluster) Signal(name string, s syscall.Signal) {
	pid := c.Executors[name].Process.Pid
	for _, child := range Children(pid) {
		_ = syscall.Kill(child, s)
	}
	_ = syscall.Kill(pid, s)
}

// Children returns the processes that a process has started.
func Children(pid int) []int {
	var out []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, s := range stats {
		raw, _ := os.ReadFile(s)
		_, after, _ := strings.Cut(string(raw), ") ")
		if f := strings.Fields(after); len(f) > 1 && f[1] == strconv.Itoa(pid) {
			p, _ := strconv.Atoi(filepath.Base(filepath.Dir(s)))
			out = append(out, p)
		}
	}
	return out
}

// Anonymous returns how many bytes of memory a process and all that it started have
// that are no file's.
func Anonymous(pid int) (bytes int64) {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(raw), "RssAnon:")
	_, _ = fmt.Sscan(rest, &bytes)
	bytes <<= 10
	for _, child := range Children(pid) {
		bytes += Anonymous(child)
	}
	return bytes
}

// Close ends the driver, with which everything else ends, and returns what does not within a while.
func (c *Cluster) Close() (err error) {
	for _, d := range append(c.others, c.Driver) {
		_ = d.Process.Signal(syscall.SIGTERM)
	}
	for _, d := range c.others { // executors end with the last
		err = errors.Join(err, d.await("a driver"))
	}
	for name, e := range c.Executors {
		_ = e.Process.Signal(syscall.SIGCONT)
		err = errors.Join(err, e.await("executor "+name))
	}
	return errors.Join(err, c.Driver.await("the driver"))
}

// Client calls the driver.
func (c *Cluster) Client() (wire.ClusterClient, func(), error) {
	conn, err := wire.DialDriver(c.Addr, wire.Party{})
	if err != nil {
		return nil, nil, err
	}
	return wire.NewClusterClient(conn), func() { conn.Close() }, nil
}

// Submit runs a logistic job to its end and returns its event log's steps.
func (c *Cluster) Submit(flags ...string) ([]driver.LogStep, error) {
	log := filepath.Join(c.Dir, "log")
	_, err := c.run(append([]string{"submit", "logistic", "--solver", "nesterov", "--driver", c.Addr, "--event-log",
		log, "--json"}, flags...)...)
	if err != nil {
		return nil, err
	}
	return ReadSteps(log)
}

// Detach submits a logistic job and does not wait for it.
func (c *Cluster) Detach(flags ...string) (id string, err error) {
	out, err := c.run(append([]string{"submit", "logistic", "--solver", "nesterov", "--driver", c.Addr, "--detach"},
		flags...)...)
	return strings.TrimSpace(out), err
}

// Cancel ends a job at the end of its step.
func (c *Cluster) Cancel(id string) error {
	_, err := c.run("cancel", id, "--driver", c.Addr)
	return err
}

// Token returns a new token of a role.
func (c *Cluster) Token(role string) (string, error) {
	out, err := c.run("token", "create", "--role", role, "--driver", c.Addr)
	return strings.TrimSpace(out), err
}

// ticksSecond is in how many parts of a second Linux counts what processes have used.
const ticksSecond = 100

// Spent returns how many seconds of processors the driver has used itself, and all processes of the cluster with those
// that have ended.
func (c *Cluster) Spent() (driver, all float64) {
	driver = spent(c.Driver.Process.Pid, false)
	pids := []int{c.Driver.Process.Pid}
	for _, e := range c.Executors {
		pids = append(pids, e.Process.Pid)
	}
	for len(pids) > 0 {
		all += spent(pids[0], true)
		pids = append(pids[1:], Children(pids[0])...)
	}
	return driver, all
}

// spent returns how many seconds of processors a process has used, with its children that have ended.
func spent(pid int, ended bool) (seconds float64) {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(raw), ") ")
	f := strings.Fields(after)
	until := 13 // utime and stime are fields 14 and 15 of the line, those of children the next two
	if ended {
		until = 15
	}
	for k := 11; k < min(until, len(f)); k++ {
		n, _ := strconv.Atoi(f[k])
		seconds += float64(n) / ticksSecond
	}
	return seconds
}

// Log returns the event log of a job, as it is now.
func (c *Cluster) Log(id string) string {
	return filepath.Join(c.Dir, "driver", "jobs", id, "events.jsonl")
}

func (c *Cluster) run(args ...string) (string, error) {
	cmd := exec.Command(c.Program, args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", args[0], err, said.String())
	}
	return string(out), nil
}

// ReadSteps returns the step lines of an event log.
func ReadSteps(log string) ([]driver.LogStep, error) {
	steps, _, err := ReadStepsAt(log)
	return steps, err
}

// ReadStepsAt returns the step lines of an event log, and at which byte of it each ends.
func ReadStepsAt(log string) (steps []driver.LogStep, ends []int64, err error) {
	f, err := os.Open(log)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	at := int64(0)
	for lines.Scan() {
		line := lines.Bytes()
		at += int64(len(line)) + 1
		if !bytes.Contains(line[:min(20, len(line))], []byte(`"step"`)) {
			continue
		}
		var s driver.LogStep
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, nil, err
		}
		steps, ends = append(steps, s), append(ends, at)
	}
	return steps, ends, lines.Err()
}

// Seconds returns how long each step took.
func Seconds(steps []driver.LogStep) []float64 {
	var out []float64
	for _, s := range steps {
		out = append(out, time.Duration(s.Phases.Compute+s.Phases.Collect).Seconds())
	}
	return out
}

// Await polls until something holds, for a minute at most.
func Await(what string, holds func() (bool, error)) error {
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		ok, err := holds()
		if err != nil || ok {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
	return fmt.Errorf("%s does not come within a minute", what)
}
