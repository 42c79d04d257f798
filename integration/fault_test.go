package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/volley-engine/volley/integration/lab"
)

// TestARunnerHangs while its executor lives: it is killed and started again,
// and the answer stays.
func TestARunnerHangs(t *testing.T) {
	t.Parallel()
	data := generated(t)
	flags := append(jobFlags(data), "--max-iterations", "60")
	want := undisturbed(t, flags...)
	c := newCluster(t)
	c.join("e1", "--pace", "rate:80000")
	c.join("e2", "--pace", "rate:80000")
	id := c.submit(flags...)
	c.atStep(id, 5)
	for _, p := range lab.Children(c.Executors["e1"].Process.Pid) {
		_ = syscall.Kill(p, syscall.SIGSTOP)
	}
	c.ended(id)
	c.gives(id, want)
	c.verified(id, true)
	if !strings.Contains(c.Executors["e1"].Log.String(), "runner hangs") {
		t.Errorf("nobody noticed:\n%s", c.Executors["e1"].Log)
	}
}

// TestALeaseholderHangs for a while, not for so long that it is lost: others fold
// what it was given, and the bytes are those of bsp.
func TestALeaseholderHangs(t *testing.T) {
	t.Parallel()
	data := generated(t)
	flags := append(jobFlags(data), "--max-iterations", "60")
	want := undisturbed(t, flags...)
	c := newCluster(t)
	for _, name := range []string{"e1", "e2", "e3"} {
		c.join(name, "--pace", "rate:80000")
	}
	id := c.submit(append(flags, "--sync", "steal")...)
	c.atStep(id, 5)
	for _, p := range lab.Children(c.Executors["e1"].Process.Pid) {
		_ = syscall.Kill(p, syscall.SIGSTOP)
	}
	c.atStep(id, 10)
	for _, p := range lab.Children(c.Executors["e1"].Process.Pid) {
		_ = syscall.Kill(p, syscall.SIGCONT)
	}
	c.ended(id)
	c.gives(id, want)
	c.verified(id, true)
}

// TestTheJobProcessHangs: it is killed, and the job goes on like after another
// death.
func TestTheJobProcessHangs(t *testing.T) {
	t.Parallel()
	data := generated(t)
	flags := append(jobFlags(data), "--max-iterations", "60")
	want := undisturbed(t, flags...)
	c := newCluster(t)
	c.join("e1", "--pace", "rate:80000")
	id := c.submit(flags...)
	c.atStep(id, 5)
	for _, p := range lab.Children(c.Driver.Process.Pid) {
		_ = syscall.Kill(p, syscall.SIGSTOP)
	}
	if j := c.ended(id); j.Restarts < 1 {
		t.Errorf("%d restarts", j.Restarts)
	}
	c.gives(id, want)
	c.verified(id, true)
}

// TestAnExecutorThatIsToldToEnd hands its splits over first.
func TestAnExecutorThatIsToldToEnd(t *testing.T) {
	t.Parallel()
	data := generated(t)
	flags := append(jobFlags(data), "--max-iterations", "60")
	want := undisturbed(t, flags...)
	c := newCluster(t)
	c.join("e1", "--pace", "rate:80000")
	c.join("e2", "--pace", "rate:80000")
	id := c.submit(flags...)
	c.atStep(id, 5)
	_ = c.Executors["e1"].Process.Signal(syscall.SIGTERM)
	select {
	case <-c.Executors["e1"].Ended:
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
	delete(c.Executors, "e1")
	if log := c.Driver.Log.String(); !strings.Contains(log, "executor drained") {
		t.Errorf("it did not hand over:\n%s", log)
	}
	c.ended(id)
	c.gives(id, want)
	c.verified(id, true)
}

// TestBlocksGoThroughTheDriver where executors cannot reach each other: one
// that joins gets its splits from the one that has them.
func TestBlocksGoThroughTheDriver(t *testing.T) {
	t.Parallel()
	data := generated(t)
	flags := append(jobFlags(data), "--max-iterations", "60", "--splits", "8")
	want := undisturbed(t, flags...)
	c := newCluster(t)
	c.join("e1", "--pace", "rate:80000", "--unreachable")
	id := c.submit(flags...)
	c.atStep(id, 3)
	c.join("e2", "--pace", "rate:80000", "--unreachable")
	c.ended(id)
	c.gives(id, want)
	if packs, _ := filepath.Glob(filepath.Join(c.Dir, "e2", "packs", "*", "split-*")); len(packs) > 0 {
		t.Errorf("e2 has made the pack itself: %v", packs)
	}
	raw, _ := os.ReadFile(filepath.Join(c.jobDir(id), "events.jsonl"))
	if !strings.Contains(string(raw), `"e2"`) {
		t.Error("e2 has done nothing")
	}
}

// awaitExecutor polls until an executor is in a state.
func awaitExecutor(t *testing.T, c *cluster, name, state string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		out, errs, _ := volley(t, "executors", "--driver", c.Addr, "--json")
		var all []struct{ Name, State string }
		_ = json.Unmarshal([]byte(out), &all)
		for _, e := range all {
			if e.Name == name && e.State == state {
				return
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Fatalf("%s is not %s: %s%s", name, state, out, errs)
		}
	}
}

// flip damages every file of a pattern in one bit.
func flip(t *testing.T, pattern string, at int64) {
	t.Helper()
	files, _ := filepath.Glob(pattern)
	if len(files) == 0 {
		t.Fatalf("no file %s", pattern)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		_ = os.Chmod(f, 0o600)
		w, err := os.OpenFile(f, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteAt([]byte{raw[at] ^ 1}, at); err != nil {
			t.Fatal(err)
		}
		w.Close()
	}
}

// TestAFlippedBitInAPack is found before the pack is used again, and the pack
// rebuilt.
func TestAFlippedBitInAPack(t *testing.T) {
	t.Parallel()
	data := generated(t)
	c := newCluster(t, "e1")
	want := undisturbed(t, jobFlags(data)...)
	c.ended(c.submit(jobFlags(data)...))
	flip(t, filepath.Join(c.Dir, "e1", "packs", "*", "split-*"), 2000)
	id := c.submit(jobFlags(data)...)
	c.ended(id)
	c.gives(id, want)
}

// TestAFlippedBitInAMovedBlock: the copy is refused by its hash, the error
// names it, and the answer stays. (The bit is one that no fold reads: the
// holder's own copy is mapped.)
func TestAFlippedBitInAMovedBlock(t *testing.T) {
	t.Parallel()
	data := generated(t)
	flags := append(jobFlags(data), "--max-iterations", "60", "--splits", "8")
	want := undisturbed(t, flags...)
	c := newCluster(t)
	c.join("e1", "--pace", "rate:80000")
	id := c.submit(flags...)
	c.atStep(id, 3)
	flip(t, filepath.Join(c.Dir, "e1", "packs", "*", "split-*"), 7)
	c.join("e2", "--pace", "rate:80000")
	c.ended(id)
	c.gives(id, want)
	c.verified(id, true)
	raw, _, _ := volley(t, "logs", id, "--driver", c.Addr)
	if !strings.Contains(raw, "has hash") {
		t.Errorf("nobody says that the copy is damaged:\n%s", raw)
	}
}

// TestWeightsShareSlots: of two jobs on the same slots the one with three
// times the weight does about three times the steps. The executors' pace is
// far below the machine's, which has a part in it only while it is busy with
// something else: such a time says nothing, and is followed by another.
func TestWeightsShareSlots(t *testing.T) {
	data := generated(t)
	c := newCluster(t)
	c.join("e1", "--slots", "2", "--pace", "rate:30000")
	c.join("e2", "--slots", "2", "--pace", "rate:30000")
	long := append(jobFlags(data), "--max-iterations", "100000")
	light, heavy := c.submit(append(long, "--weight", "1")...), c.submit(append(long, "--weight", "3")...)
	c.atStep(light, 2)
	c.atStep(heavy, 2)
	var ratios []float64
	for shared := false; !shared && len(ratios) < 4; {
		ratio := c.stepsOf(heavy, light, 12)
		shared = ratio >= 2 && ratio <= 4.5
		ratios = append(ratios, ratio)
	}
	if last := ratios[len(ratios)-1]; last < 2 || last > 4.5 {
		t.Errorf("the heavy job does %.2f times the light one's steps", ratios)
	}
	for _, id := range []string{light, heavy} {
		if _, errs, code := volley(t, "cancel", id, "--driver", c.Addr); code != 0 {
			t.Error(errs)
		}
	}
}

// stepsOf is how many steps a job does for each of another's next few.
func (c *cluster) stepsOf(job, other string, steps int) float64 {
	j0, _ := c.job(job)
	o0, _ := c.job(other)
	c.atStep(other, o0.Step+steps)
	o1, _ := c.job(other)
	j1, _ := c.job(job)
	return float64(j1.Step-j0.Step) / float64(o1.Step-o0.Step)
}

// TestAnExecutorThatSleepsThroughTheEnd of its driver ends when it wakes.
func TestAnExecutorThatSleepsThroughTheEnd(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "e1")
	_ = c.Executors["e1"].Process.Signal(syscall.SIGSTOP)
	awaitExecutor(t, c, "e1", "lost") // so that nobody says goodbye to it
	_ = c.Driver.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.Driver.Ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the driver does not end")
	}
	_ = c.Executors["e1"].Process.Signal(syscall.SIGCONT)
	select {
	case <-c.Executors["e1"].Ended:
	case <-time.After(5 * time.Second):
		t.Error("the executor looks for a driver that has ended")
	}
}
