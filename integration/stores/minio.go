package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// credentials are those that storetest has, too.
var credentials = []string{"MINIO_ROOT_USER=volley", "MINIO_ROOT_PASSWORD=volley-secret", "MINIO_BROWSER=off"}

// freePort returns a port that is free: the program is told it.
func freePort() (uint16, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port), nil
}

// startMinIO starts a MinIO server on a directory of its own, in which each bucket is a directory.
func startMinIO(program string, buckets []string) (url string, end func(), err error) {
	dir, err := os.MkdirTemp("", "minio-*")
	if err != nil {
		return "", nil, err
	}
	port, err := freePort()
	if err != nil {
		return "", nil, err
	}
	for _, name := range buckets {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return "", nil, err
		}
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	cmd := exec.Command(program, "server", "--quiet", "--address", address, dir)
	cmd.Env, cmd.Stderr = append(os.Environ(), credentials...), os.Stderr
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	if err := ready("http://"+address+"/minio/health/live", cmd); err != nil {
		end()
		return "", nil, err
	}
	return "http://" + address, end, nil
}

// startWait bounds how long a server may take to start.
const startWait = time.Minute

// ready waits until a server answers.
func ready(url string, cmd *exec.Cmd) error {
	for end := time.Now().Add(startWait); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if r, err := http.Get(url); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
	return errors.New(cmd.Path + " does not answer")
}
