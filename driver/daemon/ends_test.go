package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/internal/wire"
)

// scripted is a driver whose jobs' processes run a script; LEFT in it is a directory for
// what it leaves.
func scripted(t *testing.T, script string, changes ...func(*Config)) (d *Daemon, dir string) {
	t.Helper()
	dir = t.TempDir()
	t.Setenv("VOLLEY_HOME", filepath.Join(dir, "home"))
	path := filepath.Join(dir, "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+strings.ReplaceAll(script, "LEFT", dir)+"\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Listen: wire.SocketAddress(filepath.Join(dir, "driver.sock")), DataDir: filepath.Join(dir, "driver"),
		Program: path}
	for _, change := range changes {
		change(&cfg)
	}
	d, err := leading(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, dir
}

// submittedID is the id of a job that was handed to a driver.
func submittedID(t *testing.T, d *Daemon) string {
	t.Helper()
	reply, err := d.Submit(context.Background(),
		&wire.SubmitRequest{Job: "logistic", Args: []string{"--data", "nothing"}})
	if err != nil {
		t.Fatal(err)
	}
	return reply.Id
}

// endOf waits for a job's end.
func endOf(t *testing.T, d *Daemon, id string) *wire.JobInfo {
	t.Helper()
	w, err := d.jobs.find(id)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.ended:
	case <-time.After(time.Minute):
		t.Fatal("the job does not end")
	}
	info, _ := w.snapshot()
	return info
}

// TestAProcessThatEndsWithoutAWordHasNotDoneItsJob: whatever its exit code, it is started
// again, a few times, and then the job has failed, with the code and the last
// words.
func TestAProcessThatEndsWithoutAWordHasNotDoneItsJob(t *testing.T) {
	for _, code := range []int{0, 1, 3} {
		t.Run(fmt.Sprint("exit ", code), func(t *testing.T) {
			d, dir := scripted(t, fmt.Sprintf("echo x >> LEFT/starts; echo half way through >&2; exit %d", code))
			info := endOf(t, d, submittedID(t, d))
			if info.State != JobFailed {
				t.Errorf("the job is %s", info.State)
			}
			if !strings.Contains(info.Why, fmt.Sprint(code)) || !strings.Contains(info.Why, "half way through") {
				t.Errorf("why: %q", info.Why)
			}
			raw, _ := os.ReadFile(filepath.Join(dir, "starts"))
			if starts := strings.Count(string(raw), "x"); starts != 1+DefaultRestarts ||
				int(info.Restarts) != DefaultRestarts {
				t.Errorf("it was started %d times, and the job says %d restarts", starts, info.Restarts)
			}
		})
	}
}

// TestAResultIsNotAnEnd: what a process prints on stdout does not make it one that has
// done its job.
func TestAResultIsNotAnEnd(t *testing.T) {
	d, _ := scripted(t, `echo '{"objective":0.5}'; exit 0`)
	if info := endOf(t, d, submittedID(t, d)); info.State != JobFailed || info.Result != "" {
		t.Errorf("the job is %s with the result %q", info.State, info.Result)
	}
}

// sent gathers what a driver sends to a client that downloads.
type sent struct {
	wire.Cluster_DownloadServer
	files map[string]string
}

func (s *sent) Context() context.Context { return context.Background() }

func (s *sent) Send(p *wire.FilePart) error {
	s.files[p.Path] += string(p.Data)
	return nil
}

// doneJob is a driver with a job that has ended well and left files.
func doneJob(t *testing.T, files ...string) (d *Daemon, out string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("VOLLEY_HOME", filepath.Join(dir, "home"))
	r, err := OpenRaft(filepath.Join(dir, "journal"), hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(r.Append(context.Background(),
		Record{Kind: JobSubmitted, Job: "job-000001", At: 1, Spec: &JobSpec{Kind: "logistic", Token: "t"}},
		Record{Kind: JobEnded, Job: "job-000001", State: JobDone, At: 2}), r.Close())
	if err != nil {
		t.Fatal(err)
	}
	out = filepath.Join(dir, "jobs", "job-000001", "out")
	for _, name := range files {
		path := filepath.Join(out, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if d, err = leading(Config{Listen: wire.SocketAddress(filepath.Join(dir, "driver.sock")), DataDir: dir,
		Program: "/bin/false"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, out
}

// TestADownloadIsWholeOrAnError: of a file that cannot be read nothing is left out in
// silence.
func TestADownloadIsWholeOrAnError(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"a directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"a link that leads nowhere": func(path string) error {
			return errors.Join(os.Remove(path), os.Symlink(filepath.Join(filepath.Dir(path), "nothing"), path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, out := doneJob(t, "model.json", "weights.arrow")
			if err := damage(filepath.Join(out, "weights.arrow")); err != nil {
				t.Fatal(err)
			}
			to := &sent{files: map[string]string{}}
			if err := d.Download(&wire.DownloadRequest{Id: "job-000001"}, to); err == nil {
				t.Errorf("no error, and %d files: %v", len(to.files), to.files)
			} else if !strings.Contains(err.Error(), "weights.arrow") {
				t.Error(err)
			}
		})
	}
}

// TestADownloadHasEveryFile, those of directories and those without content too.
func TestADownloadHasEveryFile(t *testing.T) {
	d, out := doneJob(t, "model.json", "deeper/part-00000")
	if err := os.WriteFile(filepath.Join(out, "empty"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	to := &sent{files: map[string]string{}}
	if err := d.Download(&wire.DownloadRequest{Id: "job-000001"}, to); err != nil && !errors.Is(err, io.EOF) {
		return // an error is no silence
	}
	for _, name := range []string{"out/model.json", "out/deeper/part-00000", "out/empty"} {
		if _, there := to.files[name]; !there {
			t.Errorf("%s is left out", name)
		}
	}
}
