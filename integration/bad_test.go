package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestBadUseIsRefusedBeforeDataIsRead(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"run", "logistic"}, 2, "--data"},
		{[]string{"run", "nothing"}, 2, "logistic"},
		{[]string{"run", "logistic", "--data", "x", "--sync-ratio", "1.5"}, 2, "--sync-ratio"},
		{[]string{"run", "logistic", "--data", "x", "--sync-ratio", "0"}, 2, "--sync-ratio"},
		{[]string{"run", "logistic", "--data", "x", "--nonsense"}, 2, "--nonsense"},
		{[]string{"run", "logistic", "--data", "x", "--sync", "maybe"}, 2, "--sync"},
		{[]string{"run", "logistic", "--data", "x", "--clock", "virtual"}, 2, "--clock"},
		{[]string{"run", "logistic", "--data", "x", "--pace", "static:1,2,3", "--executors", "2"}, 2, "--pace"},
		{[]string{"run", "logistic", "--data", "x", "--batch-fraction", "0.5", "--sync", "absp"}, 2,
			"--batch-fraction"},
		{[]string{"run", "logistic", "--data", "x", "--memory", "lots"}, 2, "--memory"},
		{[]string{"run", "logistic", "--data", "/no/such/file"}, 1, "/no/such/file"},
		{[]string{"evaluate", "/no/model", "--data", "x"}, 1, "/no/model"},
		{[]string{"verify", "/no/log"}, 1, "/no/log"},
		{[]string{"predict"}, 2, "model"},
	} {
		_, errs, code := volley(t, c.args...)
		if code != c.code || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, %q; want %d and one line with %q", c.args, code, errs, c.code, c.want)
		}
	}
}

func TestBadDataNamesItsPlace(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":        {"", "empty"},
		"one class":    {"1 1:1\n1 1:2\n", "every row has the label 1"},
		"three labels": {"1 1:1\n2 1:2\n3 1:1\n", "3 distinct labels"},
		"NaN":          {"1 1:1\n0 1:nan\n", "line 2"},
		"ragged":       {"1,2\n0,2,3\n", "line 2"},
		"label":        {"1 1:1\nx 1:1\n", "line 2"},
		"order":        {"1 1:1\n0 3:1 2:1\n", "line 2"},
		"cut gzip":     {"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xffKT0T", "cut short"},
	} {
		dir := t.TempDir()
		path, model := filepath.Join(dir, "bad.data"), filepath.Join(dir, "model")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, errs, code := volley(t, "run", "logistic", "--data", path, "--out", model)
		if code != 1 || !strings.Contains(errs, c.want) || !strings.Contains(errs, "volley: ") {
			t.Errorf("%s: exit %d, %q", name, code, errs)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("%s: left %v behind", name, entries)
		}
	}
}

func TestNoPermission(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("1 1:1\n0 1:2\n"), 0); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := volley(t, "run", "logistic", "--data", path); code != 1 ||
		!strings.Contains(errs, "permission denied") {
		t.Errorf("exit %d, %q", code, errs)
	}
}

// start begins a long run and waits until its loop has taken a step.
func start(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "run.log")
	cmd := exec.Command(binary, append([]string{"run", "logistic", "--data", generated(t), "--tol", "0",
		"--max-iterations", "1000000",
		"--pace", "static:1,1", "--pace-rate", "20000", "--event-log", log}, args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	deadline := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if raw, _ := os.ReadFile(log); bytes.Contains(raw, []byte(`"step"`)) {
			return cmd, &errs
		}
		if time.Now().After(deadline) {
			t.Fatalf("no step within 30 s\n%s", errs.String())
		}
	}
	return nil, nil
}

// ends waits for the process and returns its exit code.
func ends(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("it does not end within 5 s")
	}
	return cmd.ProcessState.ExitCode()
}

func TestInterruptStopsAtAStepAndKeepsACheckpoint(t *testing.T) {
	dir := t.TempDir()
	model, ck := filepath.Join(dir, "model"), filepath.Join(dir, "ck")
	cmd, errs := start(t, "--out", model, "--checkpoint-dir", ck, "--checkpoint-every", "1000")
	cmd.Process.Signal(syscall.SIGINT)
	if code := ends(t, cmd); code != 130 {
		t.Errorf("exit %d\n%s", code, errs.String())
	}
	if _, err := os.Stat(model); err == nil {
		t.Error("a half model is left")
	}
	if files, _ := filepath.Glob(filepath.Join(ck, "checkpoint-*")); len(files) == 0 {
		t.Error("no checkpoint is kept")
	}
}

func TestInterruptingTwiceStopsAtOnce(t *testing.T) {
	cmd, _ := start(t)
	cmd.Process.Signal(syscall.SIGINT)
	cmd.Process.Signal(syscall.SIGINT)
	if code := ends(t, cmd); code != 130 {
		t.Errorf("exit %d", code)
	}
}

func TestAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	began := time.Now()
	_, errs, code := volley(t, "run", "logistic", "--data", generated(t), "--data-dir", filepath.Join(dir, "cache"))
	if code != 1 || !strings.Contains(errs, "disk is full") {
		t.Errorf("exit %d, %q", code, errs)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestMoreSplitsThanRowsAndThanAnyoneNeeds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "few.csv")
	if err := os.WriteFile(path, []byte(strings.Repeat("1,2\n0,3\n", 20)), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "--data", path, "--splits", "40", "--assign", "random", "--max-iterations", "3") // some splits are empty
	run(t, "--data", generated(t), "--splits", "3000", "--executors", "1", "--max-iterations", "2")
}

func TestResumeRefusesWhatIsNotItsOwn(t *testing.T) {
	data, ck := generated(t), filepath.Join(t.TempDir(), "ck")
	flags := []string{"--data", data, "--checkpoint-dir", ck, "--checkpoint-every", "2", "--max-iterations", "4",
		"--tol", "0"}
	run(t, append(flags, "--reg", "0.1")...)
	for name, more := range map[string][]string{
		"another penalty":  {"--reg", "0.2", "--resume"},
		"other data":       {"--reg", "0.1", "--resume", "--data", generated(t)},
		"without --resume": {"--reg", "0.1"},
	} {
		if _, errs, code := volley(t, append(append([]string{"run", "logistic"}, flags...), more...)...); code == 0 ||
			!strings.Contains(errs, ck) {
			t.Errorf("%s: exit %d, %q", name, code, errs)
		}
	}
}
