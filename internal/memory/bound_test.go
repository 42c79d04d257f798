package memory

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// acting says as what this program runs instead of its tests.
const acting = "VOLLEY_MEMORY_TEST"

func TestMain(m *testing.M) {
	switch as, n, _ := strings.Cut(os.Getenv(acting), ":"); as {
	case "":
		os.Exit(m.Run())
	case "hog":
		hog(n)
	case "parent":
		parent(n)
	case "daemon":
		daemon()
	}
}

// hog takes a number of MiB and keeps them until its standard input ends.
func hog(mib string) {
	n, _ := strconv.Atoi(mib)
	b := make([]byte, n<<20)
	for i := range b {
		b[i] = 1
	}
	fmt.Println("has it")
	_, _ = os.Stdin.Read(make([]byte, 1))
	fmt.Println(b[len(b)-1])
}

// parent starts three hogs, in a session of their own if it is told so, and waits for them.
func parent(mib string) {
	mib, apart := strings.CutSuffix(mib, "apart")
	var all []*exec.Cmd
	for range 3 {
		c := again("hog:" + mib)
		c.Stdout = os.Stdout
		_, _ = c.StdinPipe() // never ends
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: apart}
		if err := c.Start(); err != nil {
			fmt.Println(err)
		}
		all = append(all, c)
	}
	for _, c := range all {
		_ = c.Wait()
	}
}

func again(as string) *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), acting+"="+as)
	return c
}

// TestChildrenAreWatched: where no control group holds them, each is below the limit, and all are beyond.
func TestChildrenAreWatched(t *testing.T) {
	t.Parallel()
	if raced {
		t.Skip("skipped: the race detector takes more than the limit")
	}
	const most = 512 << 20
	for _, c := range []struct {
		mib  string
		over bool
	}{{"240", true}, {"40", false}} {
		cmd := again("parent:" + c.mib)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		b, err := (*Groups)(nil).Start(cmd, "job-1", most)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 3 {
			if !lines.Scan() || lines.Text() != "has it" {
				break // it is over already
			}
		}
		if !c.over { // until it has been looked at
			<-time.After(2 * watchEvery)
			b.Kill()
		}
		_ = cmd.Wait()
		if over := b.Ended(); over != c.over {
			t.Errorf("3 × %s MiB of %d: exceeded %v, want %v", c.mib, most>>20, over, c.over)
		}
	}
}

// daemon does what a daemon does, in a group of its own, and prints what it saw.
func daemon() {
	g, err := divided()
	if err != nil {
		fmt.Println("no group:", err)
		return
	}
	for _, c := range []string{"hog:300", "parent:100", "parent:100apart", "hog:20"} {
		cmd := again(c)
		in, _ := cmd.StdinPipe()
		out, _ := cmd.StdoutPipe()
		b, err := g.Start(cmd, "job-1", 200<<20)
		if err != nil {
			fmt.Println(err)
			continue
		}
		if c == "hog:20" {
			bufio.NewScanner(out).Scan()
			in.Close()
		}
		err = cmd.Wait()
		fmt.Printf("%s: %v, exceeded %v\n", c, err, b.Ended())
		if left, _ := filepath.Glob(g.file("job-1.*")); len(left) > 0 {
			fmt.Println("left:", left)
		}
	}
}

// TestControlGroups: a process with its children that takes more than it may is ended whole, also where they have left
// its process group, and by the kernel.
func TestControlGroups(t *testing.T) {
	have, err := os.ReadFile(filepath.Join(groupsRoot, controllers))
	if raced {
		t.Skip("skipped: the race detector takes more than the limit")
	}
	if err != nil || !strings.Contains(string(have), "memory") || os.Getuid() != 0 {
		t.Skip("skipped: no memory controller of control groups (version 2) that this user may divide")
	}
	if err := os.WriteFile(filepath.Join(groupsRoot, subtree), []byte("+memory"), 0); err != nil {
		t.Skip("skipped: the root group cannot be divided: ", err)
	}
	dir := filepath.Join(groupsRoot, fmt.Sprintf("volley-test-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, d := range []string{filepath.Join(dir, "daemon"), dir} {
			if err := os.Remove(d); err != nil {
				t.Error(err)
			}
		}
	}()
	if err := unix.Setxattr(dir, "trusted.delegate", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := again("daemon")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	got, err := cmd.CombinedOutput()
	want := "hog:300: signal: killed, exceeded true\nparent:100: signal: killed, exceeded true\n" +
		"parent:100apart: signal: killed, exceeded true\nhog:20: <nil>, exceeded false\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestWhichGroupsAreOurs: only one that was delegated, and has no other process, is divided.
func TestWhichGroupsAreOurs(t *testing.T) {
	t.Parallel()
	self := strconv.Itoa(os.Getpid())
	for _, c := range []struct{ name, path, controllers, procs, most, want string }{
		{"a container's", "/", "cpu memory", self, "max", ""},
		{"not delegated", "/system.slice/volley.service", "memory", self, "max", "not delegated"},
		{"without memory", "/", "cpu pids", self, "max", "no memory controller"},
		{"with others", "/", "memory", self + "\n1", "max", "other processes"},
		{"the system's root", "/", "memory", self, "", "root group"},
		{"of version 1", "", "", "", "", "version 2"},
	} {
		root, line := t.TempDir(), ""
		if c.path != "" {
			line = "1:name=systemd:/\n0::" + c.path + "\n"
		}
		dir := filepath.Join(root, c.path)
		files := map[string]string{filepath.Join(root, "self"): line, filepath.Join(dir, controllers): c.controllers,
			filepath.Join(dir, procs): c.procs + "\n", filepath.Join(dir, subtree): ""}
		if c.most != "" {
			files[filepath.Join(dir, most)] = c.most
		}
		for path, text := range files {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		// In a directory that is no control group the leaf has no file to write to: what is ours ends there.
		_, err := divide(root, filepath.Join(root, "self"))
		switch {
		case c.want == "" && (err == nil || !strings.Contains(err.Error(), procs)):
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "daemon")); err == nil {
			t.Errorf("%s: a leaf was left", c.name)
		}
	}
}
