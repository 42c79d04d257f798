package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	executord "github.com/volley-engine/volley/executor/daemon"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// member decides which driver an executor works for, and gives it its name and certificate: what it has in its data
// directory, or what a token gets it.
func member(c *cobra.Command, cfg *executord.Config, join string) error {
	dir := filepath.Join(cfg.DataDir, "trust")
	if cfg.Name == "" {
		host, _ := os.Hostname()
		cfg.Name = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	if !trust.HasIdentity(dir) {
		if join == "" {
			return nil
		}
		if err := joinAs(c, cfg.Name, dir, join); err != nil {
			return err
		}
	}
	if _, socket := wire.SocketPath(cfg.Driver); socket {
		return nil
	}
	id, err := trust.OpenIdentity(dir)
	if err != nil {
		return err
	}
	if time.Now().After(id.Expires()) {
		return fault.Newf(fault.Unauthorized, "use the certificate in", dir, "it has expired, on %s",
			id.Expires().Format(time.DateTime)).WithHint("remove it, and join with a new token")
	}
	if c.Flags().Changed("name") && cfg.Name != id.Name().ID {
		return fault.Newf(fault.Usage, "use", "--name", "the certificate in %s is executor %s's", dir, id.Name().ID).
			WithHint("leave it out, or take another --data-dir")
	}
	cfg.Name, cfg.Party = id.Name().ID, wire.Party{ID: id}
	if cfg.Driver == "" {
		all := driversOf(dir)
		if len(all) == 0 {
			return fault.Newf(fault.Usage, "find the driver", dir, "it does not say where that is").
				WithHint("say it: --driver HOST:PORT")
		}
		cfg.Driver = all[0]
	}
	return nil
}

// joinAs gets an executor's first certificate.
func joinAs(c *cobra.Command, name, dir, join string) error {
	t, err := trust.ParseToken(join)
	if err != nil {
		return err
	}
	if t.Role != trust.Executor {
		return fault.Newf(fault.Usage, "use", "--join", "the token makes its bearer %s, no executor", t.Role)
	}
	b, err := wire.Join(c.Context(), t, name)
	if err != nil {
		return err
	}
	return keepIdentity(dir, b, t.Drivers)
}
