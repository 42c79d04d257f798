package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley/internal/history/site"
)

func historyCommand() *cobra.Command {
	var addr string
	var logs logFlags
	c := &cobra.Command{
		Use:   "history DIR",
		Short: "Show the runs of a folder's event logs in the browser",
		Long: `History shows the runs whose event logs are in a folder, or in folders in it, as volley
report does: a list of them, the newest first, each by itself, and several compared. It
prints a link for the browser, which works once, and runs until it is stopped. It only
reads, on this machine's loopback address; logs that come later are listed as well.`,
		Example: "  volley history runs",
		Args:    exactArgs(1, "a folder of event logs"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := fillFlags(c); err != nil {
				return err
			}
			log, err := logs.logger(c, "history")
			if err != nil {
				return err
			}
			s, err := site.Serve(args[0], addr, log)
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
