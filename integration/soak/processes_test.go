package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/rdd"
)

// TestMain is the test, or, where a cluster has started it, the program that the test
// submits.
func TestMain(m *testing.M) {
	if wire.ThisProcess().Role != "" {
		volley.Main("soak", buildPipeline, runPipeline)
	}
	os.Exit(m.Run())
}

// soakArgs say which pipeline a program runs.
type soakArgs struct {
	Seed  uint64
	Dir   string
	Heavy bool
}

func (a soakArgs) draw() *pipeline {
	if a.Heavy {
		return drawHeavy(a.Seed)
	}
	return drawPipeline(a.Seed)
}

func buildPipeline(g *rdd.Graph, a soakArgs) *built { return a.draw().build(g, a.Dir) }

func runPipeline(ctx context.Context, s *rdd.Session, _ soakArgs, b *built) error {
	return b.run(ctx, s)
}

// site is a cluster of processes, which harm is done to.
type site struct {
	*lab.Cluster
	t      *testing.T
	draws  *rand.Rand
	mu     sync.Mutex // guards made, done, peaks
	made   int
	limits map[string]int64 // bytes of memory, by executor
	done   []string
	peaks  map[string]int64
	small  []string // disks of little room
}

// newSite starts a cluster of a seed.
func newSite(t *testing.T, program string, seed uint64) *site {
	t.Helper()
	c, err := lab.Start(program, t.TempDir(), "--suspicion", "1s")
	if err != nil {
		t.Fatal(err)
	}
	x := &site{Cluster: c, t: t, draws: rand.New(rand.NewPCG(seed, 5)), limits: map[string]int64{},
		peaks: map[string]int64{}}
	t.Cleanup(x.close)
	return x
}

func (x *site) close() {
	if err := x.Close(); err != nil {
		x.t.Error(err)
	}
	for _, dir := range x.small {
		_ = syscall.Unmount(dir, syscall.MNT_DETACH)
	}
}

// join has an executor join; one of no links gets all at once.
func (x *site) join(memory int64, links ...string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.made++
	name := fmt.Sprint("e", x.made)
	flags := []string{"--slots", fmt.Sprint(1 + x.draws.IntN(2)), "--memory", fmt.Sprint(memory)}
	if len(links) > 0 {
		flags = append(flags, "--pace", links[x.draws.IntN(len(links))])
	}
	if err := x.Join(name, name, flags...); err != nil {
		x.t.Fatal(err)
	}
	x.limits[name] = memory
}

// cramped has an executor join whose disk has room for the program and little more,
// where such a disk can be made.
func (x *site) cramped() {
	self, err := os.Executable()
	if err != nil {
		x.t.Fatal(err)
	}
	info, err := os.Stat(self)
	if err != nil {
		x.t.Fatal(err)
	}
	dir := filepath.Join(x.Dir, "cramped")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		x.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=", info.Size()+256<<10)); err != nil {
		return
	}
	x.small = append(x.small, dir)
	if err := x.Join("cramped", "cramped", "--memory", "1MiB"); err != nil {
		x.t.Fatal(err)
	}
}

// submit runs a pipeline to its end.
func (x *site) submit(a soakArgs) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, x.Program, "submit", "--driver", x.Addr, "--binary", self, "--max-wait", "1m", "--",
		"--seed", fmt.Sprint(a.Seed), "--dir", a.Dir, fmt.Sprintf("--heavy=%v", a.Heavy))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %.3000s", err, out)
	}
	return nil
}

// trouble does harm until it is told to end.
func (x *site) trouble(ctx context.Context) {
	for {
		t := time.NewTimer(time.Duration(100+x.draws.IntN(900)) * time.Millisecond)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
			x.harm(ctx)
		}
	}
}

// harm kills or stops something.
func (x *site) harm(ctx context.Context) {
	name, what := x.victim(), x.draws.IntN(5)
	x.mu.Lock()
	x.done = append(x.done, fmt.Sprint([]string{"kill ", "stop ", "stop for long ", "kill a runner of ",
		"kill the job's process, not "}[what], name))
	x.mu.Unlock()
	switch what {
	case 0:
		x.join(x.limits[name], siteLinks...)
		x.Signal(name, syscall.SIGKILL)
		delete(x.Executors, name)
	case 1, 2:
		x.Signal(name, syscall.SIGSTOP)
		t := time.NewTimer(time.Duration(what*what) * 400 * time.Millisecond)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		x.Signal(name, syscall.SIGCONT)
	case 3:
		for _, pid := range lab.Children(x.Executors[name].Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	case 4:
		for _, pid := range lab.Children(x.Driver.Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func (x *site) victim() string {
	var all []string
	for name := range x.Executors {
		if name != "cramped" {
			all = append(all, name)
		}
	}
	return all[x.draws.IntN(len(all))]
}

// watch notes how much memory of their own runners have, until it is told to end.
func (x *site) watch(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		x.mu.Lock()
		for name, e := range x.Executors {
			for _, pid := range lab.Children(e.Process.Pid) {
				x.peaks[name] = max(x.peaks[name], lab.Anonymous(pid))
			}
		}
		x.mu.Unlock()
	}
}

// program is the engine's, built once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "volley-soak-*")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-ldflags=-s", "-o", filepath.Join(dir, "volley"),
		"github.com/volley-engine/volley/cmd/volley")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return filepath.Join(dir, "volley"), nil
})

// builtOnce is the engine's program.
func builtOnce(t *testing.T) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// siteLinks are how fast executors can be sent something.
var siteLinks = []string{"link:2MB/s", "link:40MB/s", "link:1GB/s"}

// pipelinesOfASite is how many pipelines a cluster runs before there is another one.
const pipelinesOfASite = 20

// TestPipelinesOnProcesses come to what they should, while executors, runners and job
// processes are killed and stopped.
func TestPipelinesOnProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts clusters of processes")
	}
	from, to := seeds(t, 2, 20)
	for ; from < to; from += pipelinesOfASite {
		x := newSite(t, builtOnce(t), from)
		for _, memory := range []int64{24 << 20, 64 << 20, 512 << 20} {
			x.join(memory, siteLinks...)
		}
		x.cramped()
		for seed := from; seed < min(to, from+pipelinesOfASite); seed++ {
			x.try(soakArgs{Seed: seed, Dir: filepath.Join(x.Dir, fmt.Sprint("files-", seed))}, true)
		}
		t.Logf("seeds from %d: peaks %v", from, x.peaks)
		x.close()
	}
}

// try runs a pipeline while harm is done.
func (x *site) try(a soakArgs, harm bool) {
	x.t.Helper()
	p := a.draw()
	if err := p.write(a.Dir); err != nil {
		x.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { x.watch(ctx) })
	if harm {
		wg.Go(func() { x.trouble(ctx) })
	}
	x.done = nil
	began := time.Now()
	err := x.submit(a)
	cancel()
	wg.Wait()
	if err != nil {
		x.t.Errorf("after %v: %v\n%v  harm: %v\nagain: VOLLEY_SOAK_SEED=%d go test %s./integration/soak -run '%s$'",
			time.Since(began), err, p, x.done, a.Seed, tags, x.t.Name())
	}
}
