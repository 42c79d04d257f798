package daemon

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
)

// ownToken returns the token of a driver's data directory, made on first use.
func ownToken(dir string) (string, error) {
	path := filepath.Join(dir, "token")
	own, err := wire.ReadPrivate(path)
	if err == nil && len(own) >= 32 {
		return own, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	token := newToken()
	return token, writePrivate(path, token)
}

func newToken() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// writePrivate writes a file that only its owner can read, at once or not at
// all.
func writePrivate(path, text string) error {
	if err := disk.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fault.New(fault.NoResources, "keep the token in", path, err)
	}
	tmp := path + ".part"
	disk.Remove(tmp)
	if err := disk.WriteFile(tmp, []byte(text+"\n"), 0o600); err != nil {
		return fault.New(fault.NoResources, "keep the token in", path, err)
	}
	return disk.Rename(tmp, path)
}

// forgetToken removes the token file of the user's commands: executors that
// were not connected see from it that the driver was shut down. A restarted
// driver has the same token, from its data directory.
func (d *Daemon) forgetToken() {
	if token, err := wire.ReadToken(d.Addr()); err == nil && token == d.token {
		os.Remove(wire.TokenFile(d.Addr()))
	}
}

// admit refuses a call without the right token, or of another version. It runs
// before the call's body is read.
func (d *Daemon) admit(ctx context.Context, method string) error {
	md, _ := metadata.FromIncomingContext(ctx)
	theirs := strings.Join(md.Get("volley-version"), "")
	token := wire.CallerToken(ctx)
	allowed := subtle.ConstantTimeCompare([]byte(token), []byte(d.token)) == 1
	switch method {
	case wire.Cluster_Work_FullMethodName, wire.Cluster_End_FullMethodName, wire.Blocks_Fetch_FullMethodName,
		wire.Blocks_Give_FullMethodName:
		allowed = d.jobs.knows(token)
	}
	switch {
	case !allowed:
		return status.Error(codes.Unauthenticated, "the token is missing or not this driver's")
	case theirs != wire.Version:
		return status.Errorf(codes.FailedPrecondition, "the caller speaks %q, this driver %q", theirs, wire.Version)
	}
	return nil
}
