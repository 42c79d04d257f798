package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/internal/synth"
	"github.com/volley-engine/volley/internal/wire"
)

// What those who look at a job's page cost it: the same job on two executor processes with none and with fifty, in
// turns, so that both meet the same machine.
const (
	viewersRounds = 5
	viewersMany   = 50
)

// viewed is what jobs have taken.
type viewed struct {
	steps       []float64 // seconds of each step
	driver, all []float64 // seconds of processors of the driver, and of all of the cluster's processes, a job
	rate        []float64 // steps a second
	parts       int       // that viewers have had
}

// viewers measures jobs of quick steps, and of longer ones.
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
	for _, of := range []struct {
		rows  int64
		steps string
	}{{2_000, "6000"}, {2_000_000, "150"}} {
		data := filepath.Join(dir, fmt.Sprint("viewers-", of.rows, ".arrow"))
		rows := synth.Logistic{Rows: of.rows, Features: 20, Eps: 0.1}
		if err := synth.Write(ctx, rows, "arrow", data, 2); err != nil {
			return err
		}
		ways := map[int]*viewed{0: {}, viewersMany: {}}
		for range viewersRounds {
			for _, n := range []int{0, viewersMany} {
				if err := ways[n].job(ctx, c, token, n, "--data", data, "--splits", "16", "--tol", "0", "--sync", "bsp",
					"--max-iterations", of.steps); err != nil {
					return err
				}
			}
		}
		ways[0].compare(ways[viewersMany])
	}
	return nil
}

// compare says what viewers have cost.
func (v *viewed) compare(with *viewed) {
	mid := func(x []float64) float64 { return quantile(x, 0.5) }
	fmt.Printf("%d viewers of a job of %.0f steps a second: %+.2f %% of a step, at the median of %d (limit 1 %%); the "+
		"driver's processor time is %+.2f %% of all of the cluster's; %d parts sent to each in %d jobs\n",
		viewersMany, mid(v.rate), 100*(mid(with.steps)/mid(v.steps)-1), len(with.steps),
		100*(mid(with.driver)-mid(v.driver))/mid(v.all), with.parts/viewersMany, viewersRounds)
}

// job runs a job that a number of viewers look at.
func (v *viewed) job(ctx context.Context, c *lab.Cluster, token string, viewers int, flags ...string) error {
	driver, all := c.Spent()
	began := time.Now()
	id, err := c.Detach(flags...)
	if err != nil {
		return err
	}
	var looking sync.WaitGroup
	parts := make([]int, viewers)
	for k := range viewers {
		looking.Go(func() { parts[k] = look(ctx, "http://"+c.Driver.Ready["http"]+"/jobs/"+id+"/live", token) })
	}
	client, end, err := c.Client()
	if err != nil {
		return err
	}
	defer end()
	err = lab.Await("the end of "+id, func() (bool, error) {
		reply, err := client.Jobs(ctx, &wire.JobsRequest{Id: id})
		return err == nil && reply.Jobs[0].EndedUnixNs != 0, err
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	after, whole := c.Spent()
	looking.Wait()
	for _, n := range parts {
		v.parts += n
	}
	steps, err := lab.ReadSteps(c.Log(id))
	if err != nil {
		return err
	}
	v.steps = append(v.steps, lab.Seconds(steps)...)
	v.rate = append(v.rate, float64(len(steps))/took.Seconds())
	v.driver, v.all = append(v.driver, after-driver), append(v.all, whole-all)
	return nil
}

// look takes what a page sends until it ends, and returns how many parts that was.
func look(ctx context.Context, url, token string) (parts int) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 0
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "event: part") {
			parts++
		}
	}
	return parts
}
