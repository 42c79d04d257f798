package integration

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/version"
)

// The version before, which spoke volley/5 only: its tag, and the commit that has it.
const (
	beforeTag    = "v0.1.0"
	beforeCommit = "19c9175"
)

// before builds the version before, from its sources: volley, and a program of a user that is linked with it.
func before(t *testing.T) (program, words string) {
	t.Helper()
	at := beforeTag
	if exec.Command("git", "rev-parse", "--verify", "--quiet", at+"^{commit}").Run() != nil {
		at = beforeCommit
	}
	if out, err := exec.Command("git", "cat-file", "-e", at+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("the sources of %s are not in this clone: %s", beforeTag, out)
	}
	dir := t.TempDir()
	run := func(at string, args ...string) {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Env = at, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	tree := filepath.Join(dir, "tree")
	archive := filepath.Join(dir, "tree.tar")
	run("..", "git", "archive", "-o", archive, at)
	run(".", "mkdir", tree)
	run(tree, "tar", "-xf", archive)
	program, words = filepath.Join(dir, "volley"), filepath.Join(dir, "words")
	run(tree, "go", "build", "-trimpath", "-ldflags=-s", "-o", program, "./cmd/volley")
	run(tree, "go", "build", "-trimpath", "-ldflags=-s", "-o", words, "./examples/01-wordcount")
	return program, words
}

// TestARollingUpgradeOnANetwork: executors and then drivers are replaced by this version, one after the other, while a
// job of the version before runs: it ends with the bytes of a run that nothing has disturbed.
func TestARollingUpgradeOnANetwork(t *testing.T) {
	t.Parallel()
	old, words := before(t)
	d := driversOf(t, old, nil)
	flags := steps(generated(t), 6000)
	short := steps(generated(t), 300)
	want, wantShort := filepath.Join(d.dir, "want"), filepath.Join(d.dir, "want-short")
	d.as("client", append([]string{"run", "logistic", "--executors", "4", "--out", want}, flags...)...)
	d.as("client", append([]string{"run", "logistic", "--executors", "4", "--out", wantShort}, short...)...)
	count := func() {
		t.Helper()
		d.as("client", "submit", "--binary", words, "--", "--input", absolutePath(t, "../README.md"), "--output",
			filepath.Join(t.TempDir(), "words"))
	}
	count()
	id, _ := d.submit(flags)
	for _, name := range []string{"e1", "e2", "e3", "e4"} {
		d.upgradeExecutor(name)
	}
	other, _ := d.submit(short) // its process is of the version before, its runners of this one
	d.ends(other, wantShort)
	count()
	if out, err := d.try("client", "job", id, "--json"); err != nil || !strings.Contains(out, `"running"`) {
		t.Fatalf("the job has not run all the time: %s, %v", out, err)
	}
	leader := d.leader()
	for _, other := range []string{"1", "2", "3"} {
		if other != leader {
			d.upgradeDriver(other)
		}
	}
	d.programs["client"] = binary // of this version, at a driver of the one before
	if v := d.version(leader); v != version.Oldest && v != "0.1 ("+version.Oldest+")" {
		t.Errorf("the driver that leads is of %q", v)
	}
	asks := append([]string{"submit", "logistic", "--detach", "--max-restarts", "1"}, short...)
	if out, err := d.try("client", asks...); err == nil || !strings.Contains(err.Error(), "of an earlier version") {
		t.Errorf("what the driver does not know is taken: %s, %v", out, err)
	}
	d.upgradeDriver(leader)
	d.level(version.Newest)
	j, err := d.job(id)
	if err != nil || j.State != "running" {
		t.Fatalf("the job has not run all the time: %+v, %v", j, err)
	}
	d.ends(id, want)
	count() // linked with the version before
	other, _ = d.submit(short)
	d.ends(other, wantShort)
	d.ends(d.as("client", asks...), wantShort)
	d.programs["client"] = old
	d.as("client", "jobs")
}

// upgradeExecutor replaces an executor by one of this version, which takes over its name and its data.
func (d *drivers) upgradeExecutor(name string) {
	d.t.Helper()
	_ = d.executors[name].Process.Signal(syscall.SIGTERM)
	<-d.executors[name].Ended
	d.programs[name] = binary
	d.executors[name] = d.launch(name, "executor", "--driver", d.addresses(),
		"--name", name, "--data-dir", filepath.Join(d.dir, name+"-data"))
	d.back(name)
}

// upgradeDriver replaces a driver by one of this version, and waits until it is one of the three again.
func (d *drivers) upgradeDriver(id string) {
	d.t.Helper()
	_ = d.running[id].Process.Signal(syscall.SIGTERM)
	<-d.running[id].Ended
	d.programs["d"+id] = binary
	d.start(id)
	d.eventually("driver "+id+" is back", func() bool { return strings.Contains(d.version(id), version.Newest) })
}

// version returns the version of a driver, as the client sees it.
func (d *drivers) version(id string) string {
	out, err := d.try("client", "drivers", "--json")
	var all []struct{ ID, State, Version string }
	if err != nil || json.Unmarshal([]byte(out), &all) != nil {
		return ""
	}
	for _, one := range all {
		if one.ID == id {
			return one.Version
		}
	}
	return ""
}

// level waits until the driver that leads has found that all speak a version.
func (d *drivers) level(want string) {
	d.t.Helper()
	d.eventually("the journal is of "+want, func() bool {
		for _, p := range d.running {
			if strings.Contains(p.Log.String(), "all drivers speak a later version of the protocol: version="+want) {
				return true
			}
		}
		return false
	})
}

// eventually waits until something holds.
func (d *drivers) eventually(what string, holds func() bool) {
	d.t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); {
		if time.Now().After(end) {
			d.t.Fatalf("not within a minute: %s", what)
		}
	}
}
