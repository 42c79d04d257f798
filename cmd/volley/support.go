package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/internal/wire"
)

func supportCommand() *cobra.Command {
	var out, job string
	c := clientCommand("support-bundle", "Collect what is needed to find out what is wrong with a cluster",
		`Support-bundle writes an archive (.tar.gz) of what the driver that leads knows: versions,
drivers, executors, jobs, metrics, its stacks and memory, who did what; and, of the
jobs that have failed last or of --job, the ends of their logs, and the stacks of a job
that runs. Keys, tokens and data are not in it; what jobs have printed is: look before
you pass it on.`, exactArgs(0, "no arguments beside flags"),
		func(ctx context.Context, client wire.ClusterClient, addr string, _ []string, _ bool) error {
			if out == "" {
				out = "volley-support-" + time.Now().UTC().Format("20060102-150405") + ".tar.gz"
			}
			files, err := supportFiles(ctx, client, addr, job)
			if err != nil {
				return err
			}
			if err := writeBundle(out, files); err != nil {
				return err
			}
			fmt.Println(out)
			return nil
		})
	c.Flags().StringVar(&out, "out", "", "file to write (default: volley-support-TIME.tar.gz)")
	c.Flags().StringVar(&job, "job", "", "a job whose logs, and stacks while it runs, are needed")
	return c
}

// supportFiles returns the files of a bundle.
func supportFiles(ctx context.Context, client wire.ClusterClient, addr, job string) (map[string][]byte, error) {
	files := map[string][]byte{}
	own, err := json.MarshalIndent(map[string]string{"version": version.Module, "protocol": version.Newest,
		"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "driver": addr}, "", "  ")
	if err != nil {
		return nil, fault.New(fault.Internal, "encode", "this program's version", err)
	}
	files["client.json"] = own
	stream, err := client.Support(ctx, &wire.SupportRequest{Job: job})
	if err != nil {
		return nil, wire.CallError("collect from", addr, err)
	}
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, wire.CallError("collect from", addr, err)
		}
		files[part.Path] = append(files[part.Path], part.Data...)
	}
	if job != "" {
		files[path.Join("jobs", job, "stacks.txt")] = stacksOf(ctx, client, job)
	}
	return files, nil
}

// stacksOf returns the stacks of a job's processes, or why there are none.
func stacksOf(ctx context.Context, client wire.ClusterClient, job string) []byte {
	var out strings.Builder
	stream, err := client.Inspect(ctx, &wire.InspectRequest{Id: job})
	for err == nil {
		var a *wire.Inspection
		if a, err = stream.Recv(); err == nil {
			fmt.Fprintf(&out, "=== %s %s\n\n%s\n", a.Executor, a.Failure, a.Data)
		}
	}
	if !errors.Is(err, io.EOF) {
		out.WriteString(wire.CallError("inspect", job, err).Error() + "\n")
	}
	return []byte(out.String())
}

// writeBundle writes the files into an archive, in a directory of its name, which only this user can read.
func writeBundle(out string, files map[string][]byte) (err error) {
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fault.New(fault.NoResources, "write", out, err).WithHint("choose another --out")
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(out)
			err = fault.New(fault.NoResources, "write", out, err)
		}
	}()
	zipped := gzip.NewWriter(f)
	w := tar.NewWriter(zipped)
	dir := strings.TrimSuffix(filepath.Base(out), ".tar.gz")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := &tar.Header{Name: path.Join(dir, path.Clean("/"+name)), Mode: 0o600, Size: int64(len(files[name])),
			ModTime: time.Now()}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(files[name]); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), zipped.Close())
}
