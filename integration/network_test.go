package integration

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/integration/netns"
)

// onNetwork is a cluster whose processes have hosts of their own.
type onNetwork struct {
	*netns.Network
	t         *testing.T
	dir       string
	executors map[string]*lab.Process
	programs  map[string]string // by host, where it is not the one that is tested
	env       map[string]string // by host, a variable of the environment
}

// program returns the volley of a host.
func (n *onNetwork) program(host string) string { return cmp.Or(n.programs[host], binary) }

// newOnNetwork starts a driver and executors on a network, by the commands of docs/operations.md. The client is an
// admin. What its link is like is said before anything is started.
func newOnNetwork(t *testing.T, every netns.Link, executors ...string) *onNetwork {
	t.Helper()
	if err := netns.Available(); err != nil {
		t.Skip(err)
	}
	network, err := netns.New(1, append([]string{"driver", "client"}, executors...)...)
	if err != nil {
		t.Fatal(err)
	}
	n := &onNetwork{network, t, t.TempDir(), map[string]*lab.Process{}, nil, nil}
	t.Cleanup(network.Close)
	network.Every(every)
	n.as("driver", "init", "--address", n.Host("driver").IP+":7077", "--name", "net", "--data-dir",
		filepath.Join(n.dir, "driver-data"))
	n.launch("driver", "driver", "--data-dir", filepath.Join(n.dir, "driver-data"))
	n.as("client", "login", n.as("driver", "token", "create", "--role", "admin", "--name", "client"))
	for _, name := range executors {
		token := n.as("client", "token", "create", "--role", "executor")
		n.executors[name] = n.launch(name, "executor", "--join", token, "--name", name, "--data-dir",
			filepath.Join(n.dir, name+"-data"))
	}
	return n
}

// launch starts a daemon on a host.
func (n *onNetwork) launch(host string, args ...string) *lab.Process {
	n.t.Helper()
	program, rest := n.on(host, args)
	p, err := lab.Launch(program, rest...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { p.Kill(); <-p.Ended })
	return p
}

// on returns the command that runs a host's volley on it.
func (n *onNetwork) on(host string, args []string) (program string, rest []string) {
	env := []string{"VOLLEY_HOME=" + n.home(host)}
	if more := n.env[host]; more != "" {
		env = append(env, more)
	}
	return n.Host(host).On("env", append(append(env, n.program(host)), args...)...)
}

func (n *onNetwork) home(host string) string { return filepath.Join(n.dir, host+"-home") }

// try runs a command on a host.
func (n *onNetwork) try(host string, args ...string) (string, error) {
	return n.tryFor(time.Minute, host, args...)
}

// tryFor runs a command on a host that may take a while, and no longer.
func (n *onNetwork) tryFor(most time.Duration, host string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	program, rest := n.on(host, args)
	cmd := exec.CommandContext(ctx, program, rest...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%v on %s: %w: %s%s", args, host, err, out.String(), errs.String())
	}
	return strings.TrimSpace(out.String()), nil
}

// as runs a command on a host that succeeds.
func (n *onNetwork) as(host string, args ...string) string {
	n.t.Helper()
	out, err := n.try(host, args...)
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}

// gives runs a job and compares its model with that of a run in one process.
func (n *onNetwork) gives(want string, flags ...string) {
	n.t.Helper()
	out := filepath.Join(n.dir, "model-"+fmt.Sprint(time.Now().UnixNano()))
	n.as("client", append([]string{"submit", "logistic", "--out", out}, flags...)...)
	if !sameFile(n.t, filepath.Join(out, "weights.arrow"), filepath.Join(want, "weights.arrow")) {
		n.t.Error("over the network the model has other bytes")
	}
}

// TestAClusterOnANetwork: a bundled job and a user's program, each process on a host of its own; and what a network may
// do meanwhile, with the bytes of a run that nothing disturbs.
func TestAClusterOnANetwork(t *testing.T) {
	t.Parallel()
	n := newOnNetwork(t, netns.Link{}, "e1", "e2", "e3")
	flags := []string{"--data", generated(t), "--sync", "bsp", "--max-iterations", "8", "--tol", "0", "--splits", "12"}
	want := filepath.Join(n.dir, "want")
	n.as("client", append([]string{"run", "logistic", "--executors", "3", "--out", want}, flags...)...)
	n.gives(want, flags...)
	n.as("client", "submit", "--binary", built(t, "./examples/01-wordcount"), "--",
		"--input", absolutePath(t, "../README.md"), "--output",
		filepath.Join(n.dir, "words"))
	t.Run("two executors that do not reach each other", func(t *testing.T) {
		n.Partition(n.Host("e1"), n.Host("e2"))
		defer n.Heal()
		n.gives(want, flags...)
	})
	t.Run("one that hears the driver, and is not heard", func(t *testing.T) {
		n.Set(n.Host("e1"), n.Host("driver"), netns.Link{Cut: true})
		n.gives(want, flags...)
		n.Heal()
		n.back("e1")
		n.gives(want, flags...)
	})
	t.Run("a strange client", func(t *testing.T) {
		if _, err := n.try("e3", "jobs", "--driver", n.Host("driver").IP+":7077"); err == nil ||
			!strings.Contains(err.Error(), "no certificate") {
			t.Error(err)
		}
	})
}

// back waits until an executor is alive again.
func (n *onNetwork) back(name string) {
	n.t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		list := n.as("client", "executors")
		for _, line := range strings.Split(list, "\n") {
			if f := strings.Fields(line); len(f) > 1 && f[0] == name && f[1] == "alive" {
				return
			}
		}
		if time.Now().After(end) {
			n.t.Fatalf("%s does not come back:\n%s\n%s", name, list, n.executors[name].Log)
		}
	}
}

// TestOnABadNetwork: links that are late by 100 ms each way, and lose one packet in twenty.
func TestOnABadNetwork(t *testing.T) {
	t.Parallel()
	n := newOnNetwork(t, netns.Link{Delay: 100 * time.Millisecond, Loss: 0.05}, "e1", "e2")
	flags := []string{"--data", generated(t), "--sync", "bsp", "--max-iterations", "3", "--tol", "0", "--splits", "4"}
	want := filepath.Join(n.dir, "want")
	n.as("client", append([]string{"run", "logistic", "--executors", "2", "--out", want}, flags...)...)
	n.gives(want, flags...)
}
