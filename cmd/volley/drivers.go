package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley"
	driverd "github.com/volley-engine/volley/driver/daemon"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// driverView is a driver as it is shown.
type driverView struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	State   string `json:"state"`
	Version string `json:"version,omitempty"`
	Why     string `json:"why,omitempty"`
}

func driversCommand() *cobra.Command {
	c := clientCommand("drivers", "List the drivers of a cluster, take one out, keep a snapshot",
		`Drivers lists the drivers of a cluster: which leads, and which do not answer. A
cluster of three goes on while two do, one of five while three do.`, exactArgs(0, "no arguments"),
		func(ctx context.Context, client wire.ClusterClient, addr string, _ []string, asJSON bool) error {
			reply, err := client.Drivers(ctx, &wire.DriversRequest{})
			if err != nil {
				return wire.CallError("list the drivers of", addr, err)
			}
			views := []driverView{}
			for _, d := range reply.Drivers {
				views = append(views, driverView{d.Id, d.Address, d.State, d.Version, d.Why})
			}
			if asJSON {
				return printJSON(views)
			}
			return table("ID\tADDRESS\tSTATE\tVERSION\tWHY", func(row func(...any)) {
				for _, v := range views {
					row(v.ID, v.Address, v.State, v.Version, v.Why)
				}
			})
		})
	c.AddCommand(driversRemoveCommand(), driversSnapshotCommand(), driversRestoreCommand())
	return c
}

func driversRemoveCommand() *cobra.Command {
	return clientCommand("rm ID", "Take a driver out of the cluster",
		`Rm takes a driver out: the others do not wait for it any more. It still has the
keys of the cluster's authority: volley certs rotate, and then retire, end these.
Another takes its place by volley token create --role driver, and volley init --join.`,
		exactArgs(1, "the id of a driver"),
		func(ctx context.Context, client wire.ClusterClient, addr string, args []string, _ bool) error {
			_, err := client.RemoveDriver(ctx, &wire.RemoveDriverRequest{Id: args[0]})
			return wire.CallError("remove driver "+args[0]+" at", addr, err)
		})
}

func driversSnapshotCommand() *cobra.Command {
	var out string
	c := clientCommand("snapshot", "Keep what the journal has: jobs, tokens and certificates",
		`Snapshot writes what the drivers' journal has to a file, of which volley drivers
restore makes a driver where all were lost. Files of jobs are not in it.`, exactArgs(0, "no arguments beside flags"),
		func(ctx context.Context, client wire.ClusterClient, addr string, _ []string, _ bool) error {
			if out == "" {
				return fault.Newf(fault.Usage, "keep", "a snapshot", "say where: --out FILE")
			}
			stream, err := client.Snapshot(ctx, &wire.SnapshotRequest{})
			if err != nil {
				return wire.CallError("keep a snapshot of", addr, err)
			}
			var raw []byte
			for {
				part, err := stream.Recv()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					return wire.CallError("keep a snapshot of", addr, err)
				}
				raw = append(raw, part.Data...)
			}
			if _, err := os.Stat(out); err == nil {
				return fault.Newf(fault.Usage, "write", out, "it is there already")
			}
			return trust.WritePrivate(out, raw)
		})
	c.Flags().StringVar(&out, "out", "", "file to write")
	return c
}

func driversRestoreCommand() *cobra.Command {
	var dataDir, config string
	c := &cobra.Command{Use: "restore FILE", Short: "Make a driver's journal of a snapshot, where all were lost",
		Long: `Restore makes the journal of a driver that has none of a file that volley drivers
snapshot has written. That driver is the only one of its cluster then: others join
it by tokens, with data directories of their own that are new. Jobs that had not
ended begin anew, or from the checkpoints that are in its data directory.`,
		Args: exactArgs(1, "the file of a snapshot"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := fillFlags(c); err != nil {
				return err
			}
			dir := cmp.Or(dataDir, filepath.Join(volley.DefaultDataDir(), "driver"))
			jobs, err := driverd.Restore(dir, args[0])
			if err != nil {
				return err
			}
			return printJSON(map[string]any{"jobs": jobs, "journal": filepath.Join(dir, "journal")})
		}}
	c.Flags().StringVar(&dataDir, "data-dir", "",
		"the driver's data directory (default: $XDG_CACHE_HOME/volley/driver)")
	c.Flags().StringVar(&config, "config", "", "YAML file with values for flags")
	return c
}

// readyWithin bounds how long a driver may take to say that it is ready.
const readyWithin = 5 * time.Second

func readyCommand() *cobra.Command {
	var dataDir, config string
	c := &cobra.Command{
		Use:   "ready",
		Short: "Say whether the driver of this machine is ready: for probes",
		Long: `Ready asks the driver of a data directory, with the driver's own certificate, whether it
takes part in its cluster: it leads, or follows one that does. It exits with 1 where it
does not, and says why. A driver that serves its own user over a socket is ready while
it answers.`,
		Example: "  volley ready --data-dir /var/lib/volley/driver",
		Args:    exactArgs(0, "no arguments beside flags"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := fillFlags(c); err != nil {
				return err
			}
			if dataDir == "" {
				dataDir = filepath.Join(volley.DefaultDataDir(), "driver")
			}
			ctx, cancel := context.WithTimeout(c.Context(), readyWithin)
			defer cancel()
			says, err := driverd.Standing(ctx, dataDir)
			if err != nil {
				return err
			}
			return printJSON(says)
		},
	}
	c.Flags().StringVar(&dataDir, "data-dir", "", "the driver's data directory (default: "+
		"$XDG_CACHE_HOME/volley/driver)")
	c.Flags().StringVar(&config, "config", "", "YAML file with values for flags")
	return c
}
