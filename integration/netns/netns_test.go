package netns

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestHelper is what runs on hosts: a server that answers each connection, or a caller that says how long an answer
// took.
func TestHelper(t *testing.T) {
	switch at, listen, _ := strings.Cut(os.Getenv("NETNS_HELPER"), " "); at {
	case "":
		t.Skip("other tests start it")
	case "serve":
		l, err := net.Listen("tcp", listen)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("serving")
		for {
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			_, _ = c.Write([]byte("."))
			c.Close()
		}
	case "call":
		began := time.Now()
		c, err := net.DialTimeout("tcp", listen, 3*time.Second)
		if err == nil {
			_ = c.SetReadDeadline(time.Now().Add(3 * time.Second))
			_, err = c.Read(make([]byte, 1))
		}
		if err != nil {
			fmt.Println("took failed")
			return
		}
		fmt.Println("took", time.Since(began).Nanoseconds())
	}
}

// helper runs the helper on a host.
func helper(t *testing.T, h *Host, what string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, args := h.On(self, "-test.run", "^TestHelper$", "-test.v")
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "NETNS_HELPER="+what)
	return cmd
}

// serve runs a server on a host until the test ends.
func serve(t *testing.T, on *Host) {
	t.Helper()
	server := helper(t, on, "serve "+on.IP+":7000")
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "serving"; {
	}
}

// call returns how long an answer takes from one host to another; false where none comes.
func call(t *testing.T, from, to *Host) (time.Duration, bool) {
	t.Helper()
	out, err := helper(t, from, "call "+to.IP+":7000").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(out), "took ")
	var ns int64
	if n, _ := fmt.Sscan(rest, &ns); n == 0 {
		return 0, false
	}
	return time.Duration(ns), true
}

// TestLinks: packets come late, not at all, or not in one direction, as they are told to, and as soon as they can else.
func TestLinks(t *testing.T) {
	if err := Available(); err != nil {
		t.Skip(err)
	}
	n, err := New(1, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	a, b := n.Host("a"), n.Host("b")
	serve(t, b)
	if _, ok := call(t, a, b); !ok {
		t.Fatal("two hosts do not reach each other")
	}
	n.Every(Link{Delay: 100 * time.Millisecond})
	if took, ok := call(t, a, b); !ok || took < 300*time.Millisecond { // there, back, and there is data
		t.Errorf("with 100 ms each way an answer takes %v, %v", took, ok)
	}
	n.Every(Link{})
	for name, cut := range map[string]func(){
		"a to b":    func() { n.Set(a, b, Link{Cut: true}) },
		"b to a":    func() { n.Set(b, a, Link{Cut: true}) },
		"both":      func() { n.Partition(a, b) },
		"all lost":  func() { n.Set(a, b, Link{Loss: 1}) },
		"very late": func() { n.Set(a, b, Link{Delay: time.Minute}) },
	} {
		cut()
		if took, ok := call(t, a, b); ok {
			t.Errorf("%s: an answer after %v", name, took)
		}
		n.Heal()
	}
	if _, ok := call(t, a, b); !ok {
		t.Error("after all is healed they do not reach each other")
	}
}

// TestWiredHostsReachEachOther, and their networks are gone with Close.
func TestWiredHostsReachEachOther(t *testing.T) {
	if err := Available(); err != nil {
		t.Skip(err)
	}
	n, err := Wired(125e6, "a", "b")
	for _, missing := range []string{"Unknown device type", "not supported", "kind is unknown", "not permitted"} {
		if err != nil && strings.Contains(err.Error(), missing) {
			t.Skip("this kernel: ", err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	serve(t, n.Host("b"))
	if _, ok := call(t, n.Host("a"), n.Host("b")); !ok {
		t.Error("there is no answer")
	}
	n.Close()
	out, err := exec.Command("ip", "netns", "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range []string{n.hub, n.Hosts[0].ns, n.Hosts[1].ns} {
		if strings.Contains(string(out), ns) {
			t.Errorf("%s is left", ns)
		}
	}
}
