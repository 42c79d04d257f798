package main

import (
	"context"
	"fmt"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/history/site"
	"github.com/volley-engine/volley/storage/objects"
)

// mirrored returns a folder of its own that has the event logs below a name of objects, and gets those that come.
func mirrored(ctx context.Context, name string, log hclog.Logger) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "volley-history-*"); err != nil {
		return "", fault.New(fault.NoResources, "copy", name, err)
	}
	m := site.NewMirror(name, dir, log)
	if err := m.Bring(ctx); err != nil {
		os.RemoveAll(dir)
		return "", err
	}
	go m.Keep(ctx)
	return dir, nil
}

func historyCommand() *cobra.Command {
	var addr string
	var logs logFlags
	c := &cobra.Command{
		Use:   "history DIR",
		Short: "Show the runs of a folder's event logs in the browser",
		Long: `History shows the runs whose event logs are in a folder, or in folders in it, as volley
report does: a list of them, the newest first, each by itself, and several compared. It
prints a link for the browser, which works once, and runs until it is stopped. It only
reads, on this machine's loopback address; logs that come later are listed as well. Logs
below a name of objects (s3://BUCKET/PREFIX, gs://) are copied to a folder of their own,
which is removed in the end.`,
		Example: "  volley history runs\n  volley history s3://bucket/runs",
		Args:    exactArgs(1, "a folder of event logs"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := fillFlags(c); err != nil {
				return err
			}
			log, err := logs.logger(c, "history")
			if err != nil {
				return err
			}
			dir := args[0]
			if objects.Is(dir) {
				if dir, err = mirrored(c.Context(), dir, log); err != nil {
					return err
				}
				defer os.RemoveAll(dir)
			}
			s, err := site.Serve(dir, addr, log)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(os.Stdout, s.Link()); err != nil {
				return err
			}
			<-c.Context().Done()
			return ended(s.Close())
		},
	}
	c.Flags().StringVar(&addr, "http", "127.0.0.1:0", "loopback address to show it at; port 0 is any that is free")
	c.Flags().String("config", "", "YAML file with values for flags")
	logs.register(c.Flags())
	return c
}
