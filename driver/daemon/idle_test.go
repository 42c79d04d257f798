package daemon

import (
	"context"
	"flag"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volley-engine/volley/internal/wire"
)

// idleJobs is with how many ended jobs TestADriverWithEndedJobsIdles looks at a driver.
var idleJobs = flag.Int("idle", 0, "measure a driver with that many ended jobs for half a minute")

// TestADriverWithEndedJobsIdles measures what a driver takes that has ended jobs and nothing to do: its directories are
// there, one is looked at, all are listed once.
func TestADriverWithEndedJobsIdles(t *testing.T) {
	if *idleJobs == 0 {
		t.Skip("it is run with -idle 100000")
	}
	dir := t.TempDir()
	withFinished(t, dir, *idleJobs)
	for n := range *idleJobs {
		finishedDirectory(t, dir, jobNumbered(n+1))
	}
	began := time.Now()
	keep := Keep{Count: *idleJobs, Age: -1, Bytes: -1} // the limit is looked at, and reached
	d, err := leading(Config{Listen: wire.SocketAddress(filepath.Join(dir, "driver.sock")), DataDir: dir,
		Program: "/bin/false", Keep: &keep})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	t.Logf("it leads %v after its start", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	reply, err := d.Jobs(context.Background(), &wire.JobsRequest{Brief: true})
	if err != nil || len(reply.Jobs) != *idleJobs {
		t.Fatalf("%d jobs, %v", len(reply.Jobs), err)
	}
	t.Logf("they are listed in %v", time.Since(began).Round(time.Millisecond))
	reply = nil
	for _, phase := range []string{"at first", "then"} {
		const window = 30 * time.Second
		before, at := processTime(t), time.Now()
		<-time.After(window)
		took := processTime(t) - before
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		t.Logf("%s: %.2f %% of a core, %d MiB of heap, %d MiB of the system", phase,
			100*took.Seconds()/time.Since(at).Seconds(), m.HeapAlloc>>20, m.Sys>>20)
	}
}

// processTime is how long this process has used processors.
func processTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
