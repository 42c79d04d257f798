package daemon

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/internal/wire"
)

// scriptedDaemon is a driver whose job processes run a shell script, in the
// directory of their job.
func scriptedDaemon(t *testing.T, script string) *Daemon {
	t.Helper()
	return scriptedDaemonOf(t, script, time.Hour)
}

// scriptedDaemonOf is one that takes silence for death after so long.
func scriptedDaemonOf(t *testing.T, script string, suspicion time.Duration) *Daemon {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("VOLLEY_HOME", filepath.Join(dir, "home"))
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := leading(Config{Listen: wire.SocketAddress(filepath.Join(dir, "driver.sock")), HTTP: "127.0.0.1:0",
		DataDir: filepath.Join(dir, "driver"),
		Program: program, Suspicion: suspicion, Drain: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// submitted is a new job of a driver.
func submitted(t *testing.T, d *Daemon) *jobHandle {
	t.Helper()
	reply, err := d.Submit(context.Background(), &wire.SubmitRequest{Job: "logistic"})
	if err != nil {
		t.Fatal(err)
	}
	w, err := d.jobs.find(reply.Id)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// awaitJob waits until something holds of a job, and gives up on it in the end.
func awaitJob(t *testing.T, w *jobHandle, what string, holds func(*wire.JobInfo) bool) *wire.JobInfo {
	t.Helper()
	end := time.NewTimer(bound)
	defer end.Stop()
	for {
		info, changed := w.snapshot()
		if holds(info) {
			return info
		}
		select {
		case <-changed:
		case <-end.C:
			t.Fatalf("no %s: %v", what, info)
		}
	}
}

func over(i *wire.JobInfo) bool { return Over(i.State) }

// connected is a connection of this user, or of a process of the job that has a token.
func connected(t *testing.T, d *Daemon, token string) (context.Context, *grpc.ClientConn) {
	t.Helper()
	conn, err := wire.DialDriver(d.Addr(), wire.Party{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*bound)
	t.Cleanup(func() { cancel(); conn.Close() })
	return ctx, conn
}

// asExecutor joins a driver as an executor does.
func asExecutor(t *testing.T, d *Daemon, name string) wire.Cluster_ServeClient {
	t.Helper()
	ctx, conn := connected(t, d, "")
	s, err := wire.NewClusterClient(conn).Serve(ctx)
	if err == nil {
		err = s.Send(&wire.FromExecutor{Body: &wire.FromExecutor_Hello{Hello: &wire.Hello{Version: version.Oldest,
			Name: name, Incarnation: trust.NewSecret(), Slots: 1}}})
	}
	if err == nil {
		_, err = s.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asProcess connects to a driver as a job's process does.
func asProcess(t *testing.T, d *Daemon, w *jobHandle) wire.Cluster_WorkClient {
	t.Helper()
	awaitJob(t, w, "process", func(i *wire.JobInfo) bool { return i.State == JobRunning })
	w.mu.Lock()
	incarnation := w.incarnation
	w.mu.Unlock()
	ctx, conn := connected(t, d, w.token)
	s, err := wire.NewClusterClient(conn).Work(ctx)
	if err == nil {
		err = s.Send(&wire.FromJob{Body: &wire.FromJob_Hello{Hello: &wire.Hello{Version: version.Oldest,
			Name: w.info.Id, Incarnation: incarnation}}})
	}
	if err == nil {
		_, err = s.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// awaitRelay waits until an executor is brought a message.
func awaitRelay(s wire.Cluster_ServeClient) <-chan error {
	out := make(chan error, 1)
	go func() {
		for {
			m, err := s.Recv()
			if err != nil || m.GetRelay() != nil {
				out <- err
				return
			}
		}
	}()
	return out
}

// leading starts a driver that is alone, and returns it as it leads.
func leading(cfg Config) (*Daemon, error) {
	r, err := Start(context.Background(), cfg)
	if err != nil {
		return nil, err
	}
	return r.present.Load(), nil
}
