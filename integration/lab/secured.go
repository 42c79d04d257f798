package lab

import (
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
)

// StartSecured starts a cluster over TLS on this machine, of one, three or five drivers that say no more than they
// must: for measuring. Its user is an admin of it.
func StartSecured(program, dir string, drivers int) (*Cluster, error) {
	if err := Home(filepath.Join(dir, "home")); err != nil {
		return nil, err
	}
	c := New(program, dir)
	c.quiet = []string{"--log-level", "error"}
	at := make([]string, drivers)
	for n := range at {
		var err error
		if at[n], err = freeAddress(); err != nil {
			return nil, err
		}
	}
	c.Addr = at[0]
	first := filepath.Join(dir, "driver")
	made := []string{"init", "--address", at[0], "--name", "lab", "--data-dir", first}
	if drivers > 1 {
		made = append(made, "--peers", strings.Join(at[1:], ","))
	}
	if _, err := c.run(made...); err != nil {
		return nil, err
	}
	var begun []*Process
	for n := range at {
		data := first
		if n > 0 {
			data = filepath.Join(dir, fmt.Sprint("driver", n+1))
			if _, err := c.run("init", "--bundle", filepath.Join(first, "drivers.bundle"), "--address", at[n],
				"--data-dir", data); err != nil {
				return nil, err
			}
		}
		p, err := Begin(program, slices.Concat([]string{"driver", "--data-dir", data}, c.quiet)...)
		if err != nil {
			return nil, err
		}
		begun = append(begun, p)
	}
	c.Driver, c.others = begun[0], begun[1:]
	return c, c.awaitLeader()
}

// freeAddress returns an address of this machine that is not served.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// awaitLeader waits until a driver leads, and makes a token for executors then.
func (c *Cluster) awaitLeader() error {
	err := Await("a driver that leads", func() (bool, error) {
		out, err := c.run("token", "create", "--role", "executor", "--uses", "100")
		c.token = strings.TrimSpace(out)
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, c.Driver.Log)
	}
	return nil
}

// PerIteration submits a logistic job and returns how long an iteration of it has taken, all in all, in seconds.
func (c *Cluster) PerIteration(flags ...string) (float64, error) {
	out, err := c.run(append([]string{"submit", "logistic", "--driver", c.Addr, "--json"}, flags...)...)
	if err != nil {
		return 0, err
	}
	var r struct {
		Seconds float64 `json:"seconds_per_iteration"`
	}
	return r.Seconds, json.Unmarshal([]byte(out), &r)
}
