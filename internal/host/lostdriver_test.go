package host_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/driver/daemon"
	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/rdd"
)

// cutLives is how many processes of the job lose their driver: more than are started
// again for a job's own failures.
const cutLives = 8

func init() {
	if p := wire.ThisProcess(); p.Role == wire.JobRole { // a driver of these tests has started this
		os.Exit(volley.ExitCode(context.Background(), liveAndLose(p)))
	}
}

// liveAndLose is a job whose first processes lose their connection to the driver, each
// at another moment. It waits for executors, of which there are none.
func liveAndLose(p wire.Process) error {
	lives := filepath.Join(p.JobDir, "lives")
	raw, _ := os.ReadFile(lives)
	if err := os.WriteFile(lives, append(raw, '.'), 0o600); err != nil {
		return err
	}
	if len(raw) < cutLives {
		addr, err := cutOff(p.JobDir, p.Driver, time.Duration(len(raw)%4)*20*time.Millisecond)
		if err != nil {
			return err
		}
		p.Driver = addr
		for _, v := range p.Environ("") {
			if name, value, _ := strings.Cut(v, "="); strings.Contains(value, addr) {
				os.Setenv(name, value)
			}
		}
	}
	cfg := volley.Config{DataDir: filepath.Join(p.JobDir, "cache"), Checkpoints: filepath.Join(p.JobDir, "checkpoints"),
		Resume: true}
	_, err := volley.Run(context.Background(), cfg, "waits", struct{}{},
		func(g *rdd.Graph, _ struct{}) rdd.Action[int64] { return rdd.Count(rdd.Range(g, 0, 10, 2)) },
		func(ctx context.Context, s *rdd.Session, _ struct{}, n rdd.Action[int64]) (string, error) {
			_, err := n.Run(ctx, s)
			return "end", err
		})
	return err
}

// cutOff is a way to an address on which all connections end a while after the first
// answer.
func cutOff(dir, addr string, after time.Duration) (string, error) {
	l, err := wire.Listen(wire.SocketAddress(filepath.Join(dir, "cut.sock")))
	if err != nil {
		return "", err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go carryAndCut(c, addr, after, l)
		}
	}()
	return l.Addr().String(), nil
}

func carryAndCut(c net.Conn, addr string, after time.Duration, l net.Listener) {
	defer c.Close()
	d, err := wire.Connect(context.Background(), addr)
	if err != nil {
		return
	}
	go func() { _, _ = io.Copy(d, c) }()
	first := make([]byte, 1)
	if _, err := io.ReadFull(d, first); err == nil {
		_, _ = c.Write(first)
		time.AfterFunc(after, func() { l.Close(); d.Close(); c.Close() })
	}
	_, _ = io.Copy(c, d)
}

// jobsOf asks a driver for its jobs.
func jobsOf(t *testing.T, c wire.ClusterClient, id string) *wire.JobInfo {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	reply, err := c.Jobs(ctx, &wire.JobsRequest{Id: id})
	if err != nil {
		t.Fatal(err)
	}
	return reply.Jobs[0]
}

// waitingDriver is a driver whose jobs' processes are this test's program, and a client.
func waitingDriver(t *testing.T, dir string) wire.ClusterClient {
	t.Helper()
	t.Setenv("VOLLEY_HOME", filepath.Join(dir, "home"))
	d, err := daemon.Start(context.Background(),
		daemon.Config{Listen: wire.SocketAddress(filepath.Join(dir, "driver.sock")), DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	conn, err := wire.DialDriver(d.Addr(), wire.Party{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return wire.NewClusterClient(conn)
}

// TestAJobOutlivesItsLostConnections: that its process has lost the driver, again and
// again, is no failure of the job. (A driver that was stopped for longer than a
// connection bears looks like that from a job's p.)
func TestAJobOutlivesItsLostConnections(t *testing.T) {
	dir := t.TempDir()
	c := waitingDriver(t, dir)
	reply, err := c.Submit(context.Background(), &wire.SubmitRequest{Job: "waits"})
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.After(2 * time.Minute)
	for {
		i := jobsOf(t, c, reply.Id)
		lives, _ := os.ReadFile(filepath.Join(dir, "jobs", reply.Id, "lives"))
		if daemon.Over(i.State) {
			t.Fatalf("after %d processes the job is %s: %s", len(lives), i.State, i.Why)
		}
		if len(lives) > cutLives && strings.Contains(i.Why, "waits for an executor") {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatal(fmt.Sprint("there were ", len(lives), " processes: ", i))
		}
	}
}

func testConfig(t *testing.T) volley.Config {
	return volley.Config{Executors: 3, DataDir: t.TempDir(), OutDir: t.TempDir()}
}

// totals sums up three numbers, each with a shift.
func totals(g *rdd.Graph, _ struct{}) rdd.Step[float64, float64] {
	numbers := rdd.Map(rdd.Range(g, 1, 4, 2), func(n int64) float64 { return float64(n) })
	return rdd.Aggregate(rdd.Pack(numbers, rdd.Splits(3)), rdd.Aggregator[float64, float64, float64]{
		Zero:  func(float64) float64 { return 0 },
		Add:   func(sum, shift, x float64) float64 { return sum + x + shift },
		Merge: func(a, b float64) float64 { return a + b },
	})
}

// runTurns runs a loop of six turns, and returns how many it took.
func runTurns(t *testing.T, cfg volley.Config, after func(turn int)) (turns int, err error) {
	_, err = volley.Run(context.Background(), cfg, "turns", struct{}{}, totals,
		func(ctx context.Context, s *rdd.Session, _ struct{}, total rdd.Step[float64, float64]) (string, error) {
			state := 0.0
			for range rdd.Iterations(ctx, s, &state, 6) {
				sum, err := total.Run(ctx, s, state)
				if err != nil {
					return "", err
				}
				state += sum
				turns++
				after(turns)
			}
			return "end", s.Err()
		})
	return turns, err
}

// TestADiskThatIsFullForAWhile: the run goes on, no checkpoint is made while lines of the
// log wait, and in the end both are whole.
func TestADiskThatIsFullForAWhile(t *testing.T) {
	for _, full := range []string{"checkpoint-", "events.jsonl"} {
		cfg := testConfig(t)
		dir := t.TempDir()
		cfg.Checkpoints, cfg.CheckpointEach, cfg.EventLog = filepath.Join(dir, "checkpoints"), 1,
			filepath.Join(dir, "events.jsonl")
		stop, kept := func() {}, 0
		turns, err := runTurns(t, cfg, func(turn int) {
			switch turn {
			case 2:
				stop = disk.Fill(func(path string) bool { return strings.HasPrefix(filepath.Base(path), full) })
			case 5:
				kept = len(checkpointFiles(cfg.Checkpoints))
				stop()
			}
		})
		stop()
		if err != nil || turns != 6 || kept != 1 {
			t.Errorf("%s: %d turns, %d checkpoints while the disk was full: %v", full, turns, kept, err)
		}
		if files := checkpointFiles(cfg.Checkpoints); len(files) != 2 {
			t.Errorf("%s: the checkpoints are %v", full, files)
		}
		if raw, err := os.ReadFile(cfg.EventLog); err != nil ||
			strings.Count(string(raw), `"event":"evaluation"`) != 6 || !strings.Contains(string(raw), `"footer"`) {
			t.Errorf("%s: the log is %s: %v", full, raw, err)
		}
	}
}

// TestARunWhoseLogIsLostEnds: it would fail in the end in any case, and make no more
// checkpoints until then.
func TestARunWhoseLogIsLostEnds(t *testing.T) {
	cfg := testConfig(t)
	dir := t.TempDir()
	logs := filepath.Join(dir, "logs")
	cfg.Checkpoints, cfg.CheckpointEach, cfg.EventLog = filepath.Join(dir, "checkpoints"), 1,
		filepath.Join(logs, "events.jsonl")
	turns, err := runTurns(t, cfg, func(turn int) {
		if turn == 1 {
			_ = os.Rename(logs, logs+"-away")
		}
	})
	if err == nil || !strings.Contains(err.Error(), "write the event log") || turns != 1 {
		t.Errorf("after %d turns: %v", turns, err)
	}
}
