package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/internal/synth"
	"github.com/volley-engine/volley/internal/wire"
)

// What those who look at a job's page cost it: of one job on two executor processes, stretches without viewers and with
// fifty, in turns, each beside those around it: a machine's speed drifts by more than viewers cost. Stretches without
// any, beside those around them, say what that leaves. Readers are a process of their own, of the lowest
// priority: browsers are on other machines than the cluster.
const (
	viewersTurns   = 30
	viewersStretch = 4 * time.Second
	viewersOpen    = 2 * time.Second // in which a page that is opened reads what its log has already
	viewersMany    = 50
)

// stretch is a part of a job's time.
type stretch struct {
	from, to    int64   // bytes of the event log
	driver, all float64 // seconds of processors of the driver, and of all of the cluster's processes
	step        float64 // mean seconds of a step
	steps       int
	parts       int // that viewers were sent
}

// viewers measures a job of steps as they are on a small machine, and one of the quickest.
func viewers(ctx context.Context, dir string, _ int64) error {
	program, err := lab.Build(dir)
	if err != nil {
		return err
	}
	c, err := lab.Start(program, filepath.Join(dir, "viewers"), "--http", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer c.Close()
	for _, name := range []string{"a", "b"} {
		if err := c.Join(name, name, "--slots", "1"); err != nil {
			return err
		}
	}
	token, err := c.Token("read")
	if err != nil {
		return err
	}
	for _, rows := range []int64{2_000_000, 2_000} {
		data := filepath.Join(dir, fmt.Sprint("viewers-", rows, ".arrow"))
		if err := synth.Write(ctx, synth.Logistic{Rows: rows, Features: 20, Eps: 0.1}, "arrow", data, 2); err != nil {
			return err
		}
		id, err := c.Detach("--data", data, "--splits", "16", "--tol", "0", "--sync", "bsp", "--max-iterations",
			"10000000")
		if err != nil {
			return err
		}
		if err := viewed(ctx, c, id, token); err != nil {
			return err
		}
	}
	return nil
}

// viewed measures the stretches of a job, which it cancels.
func viewed(ctx context.Context, c *lab.Cluster, id, token string) error {
	url := "http://" + c.Driver.Ready["http"] + "/jobs/" + id + "/live"
	if _, err := stretched(ctx, c, id, url, token, 0); err != nil { // the job begins
		return err
	}
	var alone, opening, with []stretch
	for k := range 2*viewersTurns + 1 {
		n := viewersMany * (k % 2)
		all, err := stretched(ctx, c, id, url, token, n)
		if err != nil {
			return err
		}
		if n == 0 {
			alone = append(alone, all...)
		} else {
			opening, with = append(opening, all[0]), append(with, all[1])
		}
	}
	if err := ended(c, id); err != nil {
		return err
	}
	steps, at, err := lab.ReadStepsAt(c.Log(id))
	if err != nil {
		return err
	}
	for _, way := range [][]stretch{alone, opening, with} {
		for i := range way {
			if err := way[i].takes(steps, at); err != nil {
				return err
			}
		}
	}
	fmt.Printf("a job of %.0f steps a second, %d turns of %v:\n", float64(alone[0].steps)/viewersStretch.Seconds(),
		viewersTurns, viewersStretch)
	compare("none, beside the turns around it without", alone[1:viewersTurns], alone[:viewersTurns-1], alone[2:])
	compare(fmt.Sprintf("%d viewers, %d parts to each in a turn (limit 1 %%)", viewersMany,
		with[0].parts/viewersMany), with, alone, alone[1:])
	compare(fmt.Sprintf("the %v in which they open it, after about %d steps", viewersOpen,
		steps[len(steps)-1].Step/2), opening, alone, alone[1:])
	return nil
}

// ended cancels a job, and waits until it has ended.
func ended(c *lab.Cluster, id string) error {
	if err := c.Cancel(id); err != nil {
		return err
	}
	client, end, err := c.Client()
	if err != nil {
		return err
	}
	defer end()
	return lab.Await("the end of "+id, func() (bool, error) {
		reply, err := client.Jobs(context.Background(), &wire.JobsRequest{Id: id})
		return err == nil && reply.Jobs[0].EndedUnixNs != 0, err
	})
}

// stretched returns a stretch of a job without viewers, or two with some: the one in which they open its page, and the
// one in which they look at it.
func stretched(ctx context.Context, c *lab.Cluster, id, url, token string, viewers int) ([]stretch, error) {
	if viewers == 0 {
		alone, err := during(c, id, viewersStretch, func() error { return nil })
		return []stretch{alone}, err
	}
	var end func() (int, error)
	opening, err := during(c, id, viewersOpen, func() (err error) {
		end, err = lookers(ctx, url, token, viewers)
		return err
	})
	if err != nil {
		return nil, err
	}
	with, err := during(c, id, viewersStretch, func() error { return nil })
	var failed error
	with.parts, failed = end()
	return []stretch{opening, with}, errors.Join(err, failed)
}

// during returns the stretch of a job in which something is done, and that lasts a while after.
func during(c *lab.Cluster, id string, lasts time.Duration, do func() error) (s stretch, err error) {
	driver, all := c.Spent()
	if s.from, err = size(c.Log(id)); err != nil {
		return s, err
	}
	if err := do(); err != nil {
		return s, err
	}
	time.Sleep(lasts)
	s.driver, s.all = c.Spent()
	s.driver, s.all = s.driver-driver, s.all-all
	s.to, err = size(c.Log(id))
	return s, err
}

// size returns how many bytes a file has; none where there is none yet.
func size(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// takes finds what a step of the stretch took.
func (s *stretch) takes(steps []driver.LogStep, ends []int64) error {
	var sum int64
	for i, at := range ends {
		if at > s.from && at <= s.to {
			p := steps[i].Phases
			s.steps, sum = s.steps+1, sum+p.Send+p.Compute+p.Collect+p.Update
		}
	}
	if s.steps == 0 {
		return errors.New("a stretch has no step")
	}
	s.step = time.Duration(sum).Seconds() / float64(s.steps)
	return nil
}

// compare prints by how much stretches differ from those before and after them.
func compare(name string, with, before, after []stretch) {
	var step, driver []float64
	for k, s := range with {
		b, a := before[k], after[k]
		step = append(step, 100*(2*s.step/(b.step+a.step)-1))
		driver = append(driver, 100*(s.driver/s.all-(b.driver+a.driver)/(b.all+a.all)))
	}
	s, es := mean(step)
	d, ed := mean(driver)
	fmt.Printf("  %s: %+.2f ± %.2f %% of a step; the driver's processor time %+.2f ± %.2f %% of the cluster's\n", name,
		s, es, d, ed)
}

// mean returns the mean of values, and its standard error.
func mean(x []float64) (mean, err float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		err += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(err / float64(len(x)*(len(x)-1)))
}

// lookers starts a process of n readers of a page, waits until all of them see it, and returns what ends the
// process and tells how many parts they were sent.
func lookers(ctx context.Context, url, token string, n int) (func() (int, error), error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "nice", "-n", "19", self, "-look", url, "-readers", strconv.Itoa(n))
	cmd.Env, cmd.Stderr = append(os.Environ(), "TOKEN="+token), os.Stderr
	said, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(said)
	if !lines.Scan() { // all see it
		return nil, errors.Join(fmt.Errorf("the readers of %s do not see it", url), cmd.Wait())
	}
	return func() (int, error) {
		_ = cmd.Process.Signal(os.Interrupt)
		lines.Scan()
		parts, err := strconv.Atoi(lines.Text())
		return parts, errors.Join(err, cmd.Wait())
	}, nil
}

// look reads a live page as a number of readers, prints a line when all of them have had a part of it, and when it is
// interrupted how many parts they were sent.
func look(ctx context.Context, url string, readers int) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	var all, first sync.WaitGroup
	parts, errs := make([]int, readers), make([]error, readers)
	first.Add(readers)
	for k := range readers {
		all.Go(func() {
			seen := sync.OnceFunc(first.Done)
			parts[k], errs[k] = lookOnce(ctx, url, seen)
			seen()
		})
	}
	first.Wait()
	fmt.Println("looking")
	all.Wait()
	sum := 0
	for _, n := range parts {
		sum += n
	}
	fmt.Println(sum)
	return errors.Join(errs...)
}

// lookOnce returns how many parts one reader of a live page is sent.
func lookOnce(ctx context.Context, url string, seen func()) (parts int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", url, res.Status)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "event: part") {
			parts++
			seen()
		}
	}
	if ctx.Err() != nil {
		return parts, nil // it was interrupted
	}
	return parts, lines.Err()
}
