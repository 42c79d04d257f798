package host

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

// Exit codes of programs and commands.
const (
	ExitFailed      = 1
	ExitUsage       = 2
	ExitInterrupted = 130
)

// endWait bounds how long a job's process waits for the driver to record its end.
const endWait = 20 * time.Second

// SayEnd reports to the cluster's driver how this process has ended, what it has made,
// and why it failed: a process that ends without this report has failed. It returns the
// exit code, which is another where the driver cannot be reached.
func SayEnd(p wire.Process, code int, failed error) int {
	if p.Role != wire.JobRole {
		return code
	}
	req := &wire.EndRequest{Job: p.Job, Incarnation: p.Incarnation, Code: uint32(code)}
	if failed != nil {
		req.Why = strings.ToValidUTF8(failed.Error(), "\uFFFD")
	}
	if fault.Is(failed, fault.DriverLost) {
		return wire.ExitLost
	}
	err := sendEnd(p, req)
	if err == nil {
		return code
	}
	fmt.Fprintf(os.Stderr, "volley: cannot report the end of this job to the driver: %v\n", err)
	if lostBy(err) {
		return wire.ExitLost
	}
	return max(code, ExitFailed)
}

// lostBy reports whether a call failed because the driver cannot be reached, not because
// it refused the call.
func lostBy(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return errors.Is(err, io.EOF) || fault.KindOf(err) == fault.Timeout // it does not read
}

func sendEnd(p wire.Process, req *wire.EndRequest) (err error) {
	if req.Code == 0 {
		if req.Files, err = madeFiles(p.JobDir); err != nil {
			req.Code, req.Why = ExitFailed, err.Error()
		}
		if req.Saved, err = savedBy(p.JobDir); err != nil {
			fmt.Fprintf(os.Stderr, "volley: what this job has saved will not be among the cluster's datasets: "+
				"%v\n", err)
		}
	}
	self, err := partyOf(p)
	if err != nil {
		return err
	}
	conn, err := self.driver()
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), endWait)
	defer cancel()
	_, err = wire.NewClusterClient(conn).End(ctx, req)
	return err
}

// madeFiles lists a job's output files, its event log included, with sizes and digests.
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
		return nil, fault.Newf(fault.BadInput, "list", fmt.Sprintf("%q", name),
			"the name of a file that the job has made is not UTF-8")
	}
	return &wire.MadeFile{Path: name, Size: uint64(n), Sha256: sum.Sum(nil)}, err
}
