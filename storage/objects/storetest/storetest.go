// Package storetest starts servers of objects for tests: of S3's protocol, and of Google Cloud Storage's.
//
// It owns the environment that has this process, and its children, use them. It must not be imported but by tests.
package storetest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// Bucket is the one that the servers have.
const Bucket = "volley-test"

// minio is the variable that names the program of a MinIO server, which is used in place of one in memory.
const minio = "VOLLEY_TEST_MINIO"

// servers are those of this process, which end with it.
var servers = sync.OnceValue(start)

// Roots returns names under which a test has no objects yet, one in each kind of store.
func Roots(t testing.TB) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("servers of objects are left out of a short run")
	}
	if err := servers(); err != nil {
		t.Fatal(err)
	}
	dir := fmt.Sprintf("%d-%d", os.Getpid(), count.Add(1))
	return []string{"s3://" + Bucket + "/" + dir, "gs://" + Bucket + "/" + dir}
}

// S3 returns a name under which a test has no objects yet.
func S3(t testing.TB) string {
	t.Helper()
	return Roots(t)[0]
}

var count atomic.Int64

// input is that of the servers' program, which ends with it, and so with this process.
//
//lint:ignore U1000 while it is not collected the servers are not ended
var input io.WriteCloser

// start builds and starts the servers, and sets the environment.
func start() error {
	_, here, _, _ := runtime.Caller(0)
	dir, err := os.MkdirTemp("", "stores-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // a program that runs needs its file no more
	program := filepath.Join(dir, "stores")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = filepath.Join(filepath.Dir(here), "..", "..", "..", "integration", "stores")
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the servers of objects: %w: %s", err, said)
	}
	run := exec.Command(program, "-minio", os.Getenv(minio), Bucket)
	run.Stderr = os.Stderr
	if input, err = run.StdinPipe(); err != nil {
		return err
	}
	out, err := run.StdoutPipe()
	if err != nil {
		return err
	}
	if err := run.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("start the servers of objects: %w", err)
	}
	var at struct{ S3, GCS string }
	if err := json.Unmarshal(line, &at); err != nil {
		return err
	}
	return use(at.S3, at.GCS)
}

// use has this process, and its children, use servers.
func use(s3, gcs string) error {
	set := map[string]string{"AWS_ENDPOINT_URL": s3, "STORAGE_EMULATOR_HOST": gcs, "AWS_REGION": "us-east-1",
		"AWS_ACCESS_KEY_ID": "volley", "AWS_SECRET_ACCESS_KEY": "volley-secret"}
	for name, value := range set {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// Orders returns all orders in which n steps of one, 0, and m of another, 1, can be taken.
func Orders(n, m int) (all [][]int) {
	if n == 0 && m == 0 {
		return [][]int{nil}
	}
	if n > 0 {
		for _, rest := range Orders(n-1, m) {
			all = append(all, append([]int{0}, rest...))
		}
	}
	if m > 0 {
		for _, rest := range Orders(n, m-1) {
			all = append(all, append([]int{1}, rest...))
		}
	}
	return all
}
