package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
)

// inspect prints the stacks of a job's processes, or writes their profiles, a file each.
func inspect(ctx context.Context, client wire.ClusterClient, addr, id string, profile time.Duration, dir string) error {
	if info, err := os.Stat(filepath.Clean(dir)); profile > 0 && (err != nil || !info.IsDir()) {
		return fault.Newf(fault.Usage, "use", "--out", "there is no directory %s", dir)
	}
	stream, err := client.Inspect(ctx, &wire.InspectRequest{Id: id, ProfileNs: int64(profile)})
	if err != nil {
		return wire.CallError("inspect "+id+" at", addr, err)
	}
	var failed []error
	for {
		a, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return errors.Join(failed...)
		}
		if err != nil {
			return wire.CallError("inspect "+id+" at", addr, err)
		}
		who := "the job's process"
		if a.Executor != "" {
			who = "the runner on " + a.Executor
		}
		switch {
		case a.Failure != "":
			failed = append(failed, fault.Newf(fault.Timeout, "inspect", who, "%s", a.Failure))
		case profile > 0:
			err = writeProfile(dir, id, a)
		default:
			fmt.Printf("=== %s\n\n%s\n", who, a.Data)
		}
		if err != nil {
			return err
		}
	}
}

// writeProfile keeps a profile, and prints its file's name.
func writeProfile(dir, id string, a *wire.Inspection) error {
	name := id + ".pprof"
	if a.Executor != "" {
		name = id + "-" + filepath.Base(a.Executor) + ".pprof"
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, a.Data, 0o600); err != nil {
		return fault.New(fault.NoResources, "write the profile", path, err)
	}
	fmt.Println(path)
	return nil
}
