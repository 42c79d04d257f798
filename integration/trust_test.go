package integration

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/integration/lab"
)

// secured is a cluster over TLS, on this machine.
type secured struct {
	t       *testing.T
	dir     string
	address string
	http    string
	admin   string // VOLLEY_HOME of who has made it
	flags   []string
	driver  *lab.Process
}

// newSecured makes a cluster by its commands, and starts its driver.
func newSecured(t *testing.T, flags ...string) *secured {
	s := &secured{t: t, dir: t.TempDir(), address: freePort(t), http: freePort(t), flags: flags}
	s.admin = filepath.Join(s.dir, "admin")
	s.as(s.admin, "init", "--address", s.address, "--name", "test", "--data-dir", filepath.Join(s.dir, "driver"))
	s.startDriver()
	t.Cleanup(func() {
		s.driver.Kill()
		<-s.driver.Ended
	})
	return s
}

func (s *secured) startDriver() {
	var err error
	s.driver, err = lab.Launch(binary, append([]string{"driver", "--data-dir", filepath.Join(s.dir, "driver"), "--http",
		s.http, "--suspicion", suspicion.String()}, s.flags...)...)
	if err != nil {
		s.t.Fatal(err)
	}
}

// freePort is an address that nobody serves.
func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// try runs a command as somebody.
func (s *secured) try(home string, args ...string) (out, errs string, code int) {
	return command(s.t, []string{"VOLLEY_HOME=" + home}, args...)
}

// as runs a command as somebody, which succeeds.
func (s *secured) as(home string, args ...string) string {
	s.t.Helper()
	out, errs, code := s.try(home, args...)
	if code != 0 {
		s.t.Fatalf("%v: exit %d: %s", args, code, errs)
	}
	return strings.TrimSpace(out)
}

// join starts an executor that has a token.
func (s *secured) join(name string, flags ...string) *lab.Process {
	s.t.Helper()
	token := s.as(s.admin, "token", "create", "--role", "executor")
	p, err := lab.Launch(binary, append([]string{"executor", "--join", token, "--name", name, "--data-dir",
		filepath.Join(s.dir, name)}, flags...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { p.Kill(); <-p.Ended })
	return p
}

// person is the VOLLEY_HOME of somebody who has logged in.
func (s *secured) person(role, name string) string {
	s.t.Helper()
	home := filepath.Join(s.dir, name)
	flags := []string{"token", "create", "--role", role, "--name", name}
	if role == "read" {
		flags = append(flags, "--login")
	}
	s.as(home, "login", s.as(s.admin, flags...))
	return home
}

// TestAClusterOverTLS: by its commands alone, with the bytes of a run in one process; a user's program, signed; and
// what becomes of who is let out.
func TestAClusterOverTLS(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	a, b := s.join("a"), s.join("b")
	alice, bob := s.person("submit", "alice"), s.person("read", "bob")
	data := generated(t)
	flags := []string{"--data", data, "--sync", "bsp", "--max-iterations", "5", "--tol", "0"}
	out := filepath.Join(s.dir, "model")
	s.as(alice, append([]string{"submit", "logistic", "--out", out}, flags...)...)
	want := filepath.Join(s.dir, "embedded")
	s.as(alice, append([]string{"run", "logistic", "--executors", "2", "--out", want}, flags...)...)
	if !sameFile(t, filepath.Join(out, "weights.arrow"), filepath.Join(want, "weights.arrow")) {
		t.Error("over TLS the model has other bytes")
	}
	words := filepath.Join(s.dir, "words")
	told := s.as(alice, "submit", "--binary", built(t, "./examples/01-wordcount"), "--", "--input",
		absolutePath(t, "../README.md"), "--output", words)
	if files, err := filepath.Glob(filepath.Join(words, "*")); err != nil || len(files) == 0 {
		t.Errorf("no words are saved: %v: %s", err, told)
	}
	for who, try := range map[string][]string{
		"a reader submits":  {bob, "submit", "logistic", "--data", data},
		"a reader cancels":  {bob, "cancel", "job-000001"},
		"alice drains":      {alice, "executors", "drain", "a"},
		"alice makes token": {alice, "token", "create", "--role", "admin"},
	} {
		if _, errs, code := s.try(try[0], try[1:]...); code == 0 || !strings.Contains(errs, "may not call") {
			t.Errorf("%s: exit %d: %s", who, code, errs)
		}
	}
	var jobs []struct{ ID, State string }
	if err := json.Unmarshal([]byte(s.as(bob, "jobs", "--json")), &jobs); err != nil || len(jobs) != 2 {
		t.Errorf("%v %v", jobs, err)
	}
	s.as(s.admin, "certs", "revoke", "executor/a")
	s.as(s.admin, "certs", "revoke", "submit/alice")
	select {
	case <-a.Ended:
	case <-time.After(20 * time.Second):
		t.Error("an executor whose certificate was revoked goes on")
	}
	if _, errs, code := s.try(alice, "jobs"); code == 0 || !strings.Contains(errs, "revoked") {
		t.Errorf("exit %d: %s", code, errs)
	}
	s.driver.Kill()
	<-s.driver.Ended
	s.startDriver()
	s.as(s.admin, append([]string{"submit", "logistic"}, flags...)...) // b has come back by itself
	select {
	case <-b.Ended:
		t.Errorf("b has ended: %s", b.Log)
	default:
	}
	if _, errs, code := s.try(alice, "jobs"); code == 0 || !strings.Contains(errs, "revoked") {
		t.Errorf("after a restart: exit %d: %s", code, errs)
	}
}

// TestTheAuthorityIsReplaced under executors that go on.
func TestTheAuthorityIsReplaced(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	a := s.join("a")
	s.as(s.admin, "certs", "rotate")
	deadline := time.Now().Add(20 * time.Second)
	for !strings.Contains(s.as(s.admin, "certs", "--json"), "executor/a") || !replaced(t, s, "executor/a") {
		if time.Now().After(deadline) {
			t.Fatalf("executor a does not renew its certificate: %s", a.Log)
		}
	}
	if _, errs, code := s.try(s.admin, "certs", "rotate"); code == 0 || !strings.Contains(errs, "two authorities") {
		t.Errorf("exit %d: %s", code, errs)
	}
	s.as(s.admin, "certs", "retire")
	s.as(s.admin, "certs", "renew") // after which it trusts the new one only
	data := generated(t)
	s.as(s.admin, "submit", "logistic", "--data", data, "--max-iterations", "2")
	b := s.join("b")
	_ = b
	s.as(s.admin, "submit", "logistic", "--data", data, "--max-iterations", "2")
}

// replaced reports whether a member has certificates of two authorities.
func replaced(t *testing.T, s *secured, name string) bool {
	t.Helper()
	var list []struct{ Name, Authority string }
	if err := json.Unmarshal([]byte(s.as(s.admin, "certs", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	by := map[string]bool{}
	for _, c := range list {
		if strings.HasSuffix(c.Name, name) {
			by[c.Authority] = true
		}
	}
	return len(by) == 2
}

func absolutePath(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// sameFile reports whether two files have the same bytes.
func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(x) == string(y)
}

// TestDriversAreMadeOfASecret: a cluster whose bundle is in the environment of each driver, as where secrets are, is
// made once, however often that is asked for, and says when it is ready.
func TestDriversAreMadeOfASecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	home := []string{"VOLLEY_HOME=" + filepath.Join(dir, "home")}
	at := []string{freePort(t), freePort(t), freePort(t)}
	run := func(env []string, args ...string) (string, int) {
		t.Helper()
		out, errs, code := command(t, append(env, home...), args...)
		return out + errs, code
	}
	made := filepath.Join(dir, "made")
	if out, code := run(nil, "init", "--address", at[0], "--peers", at[1]+","+at[2], "--name", "secret", "--data-dir",
		made); code != 0 {
		t.Fatal(out)
	}
	bundle, err := os.ReadFile(filepath.Join(made, "drivers.bundle"))
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"BUNDLE=" + string(bundle)}
	data := func(n int) string { return filepath.Join(dir, "driver", string(rune('1'+n))) }
	for n := range at {
		for _, want := range []string{`"cluster":"secret"`, `"made":"before"`} {
			out, code := run(env, "init", "--once", "--bundle", "env:BUNDLE", "--address", at[n], "--data-dir", data(n))
			if code != 0 || !strings.Contains(strings.ReplaceAll(out, " ", ""), want) {
				t.Fatalf("%d: %s", code, out)
			}
		}
	}
	if out, code := run(nil, "init", "--bundle", "env:BUNDLE", "--address", at[0], "--data-dir", made+"2"); code == 0 ||
		!strings.Contains(out, "the environment has no BUNDLE") {
		t.Errorf("%d: %s", code, out)
	}
	if out, code := run(nil, "ready", "--data-dir", data(0)); code == 0 {
		t.Errorf("ready before it is started: %s", out)
	}
	started := make([]*lab.Process, len(at))
	for n := range at {
		if started[n], err = lab.Begin(binary, "driver", "--data-dir", data(n)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(started[n].Kill)
	}
	ready := func(n int, want bool) {
		t.Helper()
		var out string
		if err := lab.Await("that a driver is, or is not, ready", func() (bool, error) {
			var code int
			out, code = run(nil, "ready", "--data-dir", data(n))
			return (code == 0) == want, nil
		}); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for n := range at {
		ready(n, true)
	}
	started[0].Kill()
	started[1].Kill()
	ready(2, false)
}
