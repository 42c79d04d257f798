// Command push measures what tables push between two executor processes beside a plain copy over TCP of as many bytes,
// both ways: on one machine, where memory and processors are the limit, and, as root, on a network of namespaces, where
// it is the network. It asserts nothing.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/integration/netns"
	"github.com/volley-engine/volley/internal/plan"
)

func main() {
	rounds := flag.Int("rounds", 3, "how often each is measured")
	flag.Parse()
	dir, err := os.MkdirTemp("", "volley-push-*")
	if err == nil {
		err = both(dir, *rounds)
		os.RemoveAll(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// linkRate is how many bytes a second each host sends at the most.
const linkRate = 125e6

func both(dir string, rounds int) error {
	volley, err := lab.Build(dir)
	if err != nil {
		return err
	}
	program := filepath.Join(dir, "program")
	build := exec.Command("go", "build", "-o", program, "./integration/bench/push/program")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	here := &site{dir: filepath.Join(dir, "one"), volley: volley, program: program}
	if err := measure("one machine", rounds, here); err != nil {
		return err
	}
	if err := netns.Available(); err != nil {
		fmt.Println("a network:", err)
		return nil
	}
	network, err := netns.Wired(linkRate, "d", "a", "b")
	if err != nil {
		fmt.Println("a network:", err)
		return nil
	}
	defer network.Close()
	return measure(fmt.Sprintf("a network of %d Mbit/s", int(8*linkRate/1e6)), rounds,
		&site{dir: filepath.Join(dir, "net"), volley: volley, program: program, network: network})
}

// measure prints how tables push beside a plain copy of as many bytes, in turns.
func measure(where string, rounds int, s *site) error {
	if err := s.start(); err != nil {
		return err
	}
	defer s.stop()
	var pushed, copied []float64
	for range rounds {
		bytes, seconds, err := s.push()
		if err != nil {
			return err
		}
		pushed = append(pushed, float64(bytes)/seconds)
		if seconds, err = s.copy(bytes / 2); err != nil {
			return err
		}
		copied = append(copied, float64(bytes)/seconds)
	}
	slices.Sort(pushed)
	slices.Sort(copied)
	p, c := pushed[rounds/2], copied[rounds/2]
	fmt.Printf("%s: tables push %.3f GB/s between two executors, both ways together, a plain copy over TCP has %.3f: "+
		"%.2f of it (limit 0.8)\n", where, p/1e9, c/1e9, p/c)
	return nil
}

// site is a cluster of two executors, on one machine or on hosts of a network.
type site struct {
	dir, volley, program string
	network              *netns.Network // nil is one machine
	daemons              []*lab.Process
	jobs                 int
	side                 int // of the rows that the other executor has
}

// command returns one that runs on a host.
func (s *site) command(host, program string, args ...string) (string, []string) {
	env := append([]string{"VOLLEY_HOME=" + filepath.Join(s.dir, host+"-home"), program}, args...)
	if s.network == nil {
		env[0] = "VOLLEY_HOME=" + filepath.Join(s.dir, "home")
		return "env", env
	}
	return s.network.Host(host).On("env", env...)
}

func (s *site) volleyOn(host string, args ...string) (string, error) {
	program, rest := s.command(host, s.volley, args...)
	cmd := exec.Command(program, rest...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

func (s *site) launch(host string, args ...string) error {
	program, rest := s.command(host, s.volley, append(args, "--log-level", "error")...)
	p, err := lab.Launch(program, rest...)
	if err == nil {
		s.daemons = append(s.daemons, p)
	}
	return err
}

// start starts a driver and two executors, over TLS where they are on a network.
func (s *site) start() error {
	data := filepath.Join(s.dir, "driver")
	if s.network != nil {
		at := s.network.Host("d").IP + ":7077"
		if _, err := s.volleyOn("d", "init", "--address", at, "--name", "push", "--data-dir", data); err != nil {
			return err
		}
	}
	if err := s.launch("d", "driver", "--data-dir", data); err != nil {
		return err
	}
	for _, host := range []string{"a", "b"} {
		args := []string{"executor", "--name", host, "--data-dir", filepath.Join(s.dir, host), "--slots", "1"}
		if s.network != nil {
			token, err := s.volleyOn("d", "token", "create", "--role", "executor")
			if err != nil {
				return err
			}
			args = append(args, "--join", token)
		}
		if err := s.launch(host, args...); err != nil {
			return err
		}
	}
	return nil
}

func (s *site) stop() {
	for _, p := range slices.Backward(s.daemons) {
		p.Kill()
	}
}

// push runs the program so that all updates go to the other executor, and returns how many bytes these had, and how
// long that took.
func (s *site) push() (bytes int64, seconds float64, err error) {
	for range 2 {
		if bytes, seconds, err = s.pushOn(); err != nil || bytes >= rows*columns*clocks*8 {
			return bytes, seconds, err
		}
		s.side = 1 - s.side // executors have the numbers that they have joined by
	}
	return 0, 0, errors.New("updates stay with the executor that makes them, whichever rows they are of")
}

// What the program adds to: a table of rows × columns, all of it once in a clock.
const rows, columns, clocks = 2048, 1024, 64

func (s *site) pushOn() (bytes int64, seconds float64, err error) {
	out, err := s.volleyOn("d", "submit", "--binary", s.program, "--", "--rows", fmt.Sprint(rows), "--columns",
		fmt.Sprint(columns), "--clocks", fmt.Sprint(clocks), "--side", fmt.Sprint(s.side))
	if err != nil {
		return 0, 0, err
	}
	s.jobs++
	at := strings.Index(out, "took ")
	if at < 0 {
		return 0, 0, fmt.Errorf("the program has printed %q", out)
	}
	if seconds, err = strconv.ParseFloat(strings.Fields(out[at:])[1], 64); err != nil {
		return 0, 0, err
	}
	bytes, err = sent(filepath.Join(s.dir, "driver", "jobs", fmt.Sprintf("job-%06d", s.jobs), driver.EventsName))
	return bytes, seconds, err
}

// sent returns how many bytes of updates a log says that tables have sent.
func sent(log string) (bytes int64, err error) {
	f, err := os.Open(log)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	told, lines := false, bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), `{"event":"tables"`) {
			continue
		}
		var l driver.LogTables
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return 0, err
		}
		told = true
		bytes = l.Tables[0].Sent[plan.SentUpdates]
	}
	if !told && lines.Err() == nil {
		return 0, errors.New("the log says nothing of what tables have sent")
	}
	return bytes, lines.Err()
}

// copy copies as many bytes over plain TCP each way between the hosts of the executors.
func (s *site) copy(bytes int64) (seconds float64, err error) {
	const port = ":7099"
	to := "127.0.0.1" + port
	if s.network != nil {
		to = s.network.Host("a").IP + port
	}
	program, rest := s.command("a", s.program, "copy", port, fmt.Sprint(bytes))
	listener := exec.Command(program, rest...)
	ready, err := listener.StdoutPipe()
	if err == nil {
		err = listener.Start()
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = listener.Wait() }()
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		return 0, err
	}
	program, rest = s.command("b", s.program, "copy", to, fmt.Sprint(bytes))
	out, err := exec.Command(program, rest...).Output()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(string(out)), "took "), 64)
}
