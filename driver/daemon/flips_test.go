package daemon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// damages is how many files of a driver TestADamagedDriver damages.
var damages = flag.Int("flips", 8, "damage that many files of one driver of three")

// TestADamagedDriver: whatever file of one driver of three is damaged or cut while it is down, it says so and does not
// start, or it has what the others have once it has.
func TestADamagedDriver(t *testing.T) {
	t.Parallel()
	c := newThree(t, `mkdir -p out checkpoints; echo model > out/model; echo '{"a":1}'; echo said >&2; exec sleep 600`)
	id := c.finishedJob()
	rng := rand.New(rand.NewPCG(1, 2))
	for k := range *damages {
		n := rng.IntN(3)
		until(t, "a driver lacks something", func() bool { return c.same() })
		c.stop(n)
		file := c.damage(n, rng)
		r, err := c.tryStart(n)
		if err != nil {
			if !strings.Contains(err.Error(), filepath.Dir(file.path)) {
				t.Errorf("%d: %s: refused without its name: %v", k, file.what, err)
			}
			file.restore(t)
			c.start(n)
			continue
		}
		c.all[n] = r
		if strings.Contains(file.path, auditName) {
			if raw, err := os.ReadFile(r.audit.path); err != nil || !strings.Contains(string(raw), auditName+".") {
				t.Errorf("%d: %s: it is not named: %s", k, file.what, raw)
			}
		}
		if outside := c.reads(n, id); outside != "" {
			if !strings.Contains(outside, file.path) {
				t.Errorf("%d: %s: it is outside: %s", k, file.what, outside)
			}
			c.stop(n)
			file.restore(t)
			c.start(n)
		}
		if t.Failed() {
			t.Fatalf("%d: %s", k, file.what)
		}
	}
}

// finishedJob returns a job that is done.
func (c *threeDrivers) finishedJob() string {
	c.t.Helper()
	n := c.leader()
	client := c.client()
	reply, err := client.Submit(context.Background(), &wire.SubmitRequest{Job: "logistic"})
	if err != nil {
		c.t.Fatal(err)
	}
	d := c.all[n].present.Load()
	w, err := d.jobs.find(reply.Id)
	if err != nil {
		c.t.Fatal(err)
	}
	awaitLog(c.t, w, "said")
	sum := sha256.Sum256([]byte("model\n"))
	made := []MadeFile{{Path: "out/model", Size: 6, SHA256: plan.DigestFromBytes(sum[:])}}
	d.jobs.step(LifeEvent{Process: &ProcessEvent{Job: reply.Id, Said: &ProcessSaid{Incarnation: reply.Id + ".1",
		Files: made}}})
	w.signal(1, os.Kill)
	c.jobIs(client, reply.Id, JobDone)
	for k := range c.all {
		until(c.t, "a driver lacks the model", func() bool {
			return hasFile(filepath.Join(c.data(k), "jobs", reply.Id, "out", "model"))
		})
	}
	return reply.Id
}

// same reports whether all drivers have the same journal, and a leader.
func (c *threeDrivers) same() bool {
	var first []byte
	leads := false
	for _, r := range c.all {
		if r == nil || !r.journal.votes.Load() || !r.isVoter() {
			return false
		}
		raw, err := json.Marshal(r.journal.State())
		if err != nil || first != nil && !bytes.Equal(first, raw) {
			return false
		}
		first, leads = raw, leads || r.present.Load() != nil
	}
	return leads
}

// damaged is a file that was damaged.
type damaged struct {
	path, what string
	before     []byte
}

func (f damaged) restore(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(f.path, f.before, 0o600); err != nil {
		t.Fatal(err)
	}
}

// damage flips a bit of a driver's file, or cuts it.
func (c *threeDrivers) damage(n int, rng *rand.Rand) damaged {
	c.t.Helper()
	var files []string
	err := filepath.WalkDir(c.data(n), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && strings.Contains(e.Name(), "journal.damaged") {
			return filepath.SkipDir
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Size() > 0 {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	f := damaged{path: files[rng.IntN(len(files))]}
	if f.before, err = os.ReadFile(f.path); err != nil {
		c.t.Fatal(err)
	}
	raw := bytes.Clone(f.before)
	at := rng.IntN(len(raw))
	if rng.IntN(3) == 0 {
		raw, f.what = raw[:at], fmt.Sprintf("%s cut at %d of %d", f.path, at, len(raw))
	} else {
		bit := byte(1) << rng.IntN(8)
		raw[at] ^= bit
		f.what = fmt.Sprintf("%s, byte %d of %d ^ %#x", f.path, at, len(raw), bit)
	}
	if err := os.WriteFile(f.path, raw, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return f
}

func (c *threeDrivers) tryStart(n int) (*Replica, error) {
	cfg := c.cfg
	cfg.DataDir = c.data(n)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return Start(ctx, cfg)
}

// reads has a driver lead and compares what it says of a job with what the job has made; or returns why the driver is
// none of the cluster's.
func (c *threeDrivers) reads(n int, id string) (outside string) {
	c.t.Helper()
	r := c.all[n]
	for end := time.Now().Add(bound); !c.same(); <-time.After(20 * time.Millisecond) {
		if why := r.outside.Load(); why != nil && !strings.Contains(*why, "brought from the others") &&
			!hasFile(r.trustFile(incompleteFile)) {
			return *why
		}
		if time.Now().After(end) {
			c.t.Fatalf("driver %d is not what the others are: %+v", n+1, r.standing())
		}
	}
	to := raft.Server{ID: raft.ServerID(r.self.ID), Address: raft.ServerAddress(r.self.Address)}
	until(c.t, "it does not lead", func() bool {
		if r.present.Load() != nil {
			return true
		}
		if l := c.all[c.leader()]; l != r {
			_ = l.journal.raft.LeadershipTransferToServer(to.ID, to.Address).Error() // it is asked again
			<-time.After(LeasesOver() + 200*time.Millisecond)
		}
		return r.present.Load() != nil
	})
	client := c.client()
	if info := c.jobIs(client, id, JobDone); info.Result != `{"a":1}` {
		c.t.Errorf("the result is %q: %s", info.Result, info.Why)
	}
	if got := downloaded(c.t, client, id)["out/model"]; got != "model\n" {
		c.t.Errorf("the model is %q", got)
	}
	if got := watched(c.t, client, id); got != "said\n" {
		c.t.Errorf("the log is %q", got)
	}
	return ""
}
