package volley

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
)

// ExitLost is the exit code of a job's process that has lost the cluster's driver: it is
// started again, and nothing that the program did is to blame.
const ExitLost = wire.ExitLost

// endWait bounds how long a job's process waits for the driver to take in its end.
const endWait = 20 * time.Second

// sayEnd tells the cluster's driver how this process has ended, what it has made, and why
// it failed: a process that ends without it has not done its job. It returns the exit
// code, which is another where the driver is gone.
func sayEnd(code int, failed error) int {
	if process.Role != wire.JobRole {
		return code
	}
	req := &wire.EndRequest{Job: process.Job, Incarnation: process.Incarnation, Code: uint32(code)}
	if failed != nil {
		req.Why = strings.ToValidUTF8(failed.Error(), "\uFFFD")
	}
	if lostDriver(failed) {
		return ExitLost
	}
	err := sendEnd(req)
	if err == nil {
		return code
	}
	fmt.Fprintf(os.Stderr, "volley: the end could not be told: %v\n", err)
	if lostBy(err) {
		return ExitLost
	}
	return max(code, ExitFailed)
}

// lostBy reports whether a call failed because the driver is not there, and not because of
// what was said to it.
func lostBy(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return errors.Is(err, io.EOF) || fault.KindOf(err) == fault.Timeout // it does not read
}

// lostDriver reports whether a process has failed because its driver was not there.
func lostDriver(err error) bool {
	var f *fault.Error
	return errors.As(err, &f) && f.Kind == fault.FetchFailed && (f.Op == "reach the driver at" || f.Op == "join the driver at")
}

func sendEnd(req *wire.EndRequest) (err error) {
	if req.Code == 0 {
		if req.Files, err = madeFiles(process.JobDir); err != nil {
			req.Code, req.Why = ExitFailed, err.Error()
		}
	}
	conn, err := wire.Dial(process.Driver, process.Token)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), endWait)
	defer cancel()
	_, err = wire.NewClusterClient(conn).End(ctx, req)
	return err
}

// madeFiles lists what a job has made, its event log included, with sizes and digests.
func madeFiles(dir string) (files []*wire.MadeFile, err error) {
	for _, part := range []string{"out", driver.EventsName} {
		err = filepath.WalkDir(filepath.Join(dir, part), func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			f, err := madeFile(dir, path)
			files = append(files, f)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

func madeFile(dir, path string) (*wire.MadeFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	name, _ := filepath.Rel(dir, path)
	if !utf8.ValidString(name) {
		return nil, fault.Newf(fault.BadInput, "list", fmt.Sprintf("%q", name), "the name of a file that the job has made is not UTF-8")
	}
	return &wire.MadeFile{Path: name, Size: uint64(n), Sha256: sum.Sum(nil)}, err
}
