package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	if _, socket := wire.SocketPath(cfg.Driver); socket {
		if join != "" {
			return usage(c, "join", "at a socket there is nothing to join")
		}
		return named(cfg)
	}
	dir, err := identityDir(c, cfg)
	if err != nil {
		return err
	}
	if join != "" {
		if err := joinAs(c, cfg.Name, dir, join); err != nil {
			return err
		}
	}
	if !trust.HasIdentity(dir) {
		return nil
	}
	id, err := trust.OpenIdentity(dir)
	if err != nil {
		return err
	}
	if time.Now().After(id.Expires()) {
		return fault.Newf(fault.Unauthorized, "use the certificate in", dir, "it has expired, on %s",
			id.Expires().Format(time.DateTime)).WithHint("join again: --join TOKEN")
	}
	cfg.Name, cfg.Party = id.Name().ID, wire.Party{ID: id}
	if cfg.Driver == "" {
		all := driversOf(dir)
		if len(all) == 0 {
			return fault.Newf(fault.Usage, "find the driver", dir, "it does not say where that is").
				WithHint("say it: --driver HOST:PORT")
		}
		cfg.Driver = strings.Join(all, ",")
	}
	return nil
}

// named gives an executor a name if it has none.
func named(cfg *executord.Config) error {
	if cfg.Name != "" {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return fault.New(fault.NoResources, "find", "this machine's name", err).WithHint("say --name")
	}
	cfg.Name = fmt.Sprintf("%s-%d", host, os.Getpid())
	return nil
}

// identityDir returns where an executor keeps its certificate: executors may share a data directory, and have one each
// by their names. One that has no name takes the only one that is there.
func identityDir(c *cobra.Command, cfg *executord.Config) (string, error) {
	all := filepath.Join(cfg.DataDir, "trust")
	if cfg.Name == "" {
		have, _ := os.ReadDir(all) // none is none
		if len(have) > 1 {
			return "", usage(c, "name", "%s has the certificates of %d executors: say which this is", all, len(have))
		}
		if len(have) == 1 {
			cfg.Name = have[0].Name()
		}
	}
	if err := named(cfg); err != nil {
		return "", err
	}
	if !trust.Valid(cfg.Name) {
		return "", usage(c, "name", "%q is no name: letters, digits, '.', '_' and '-', at most 128", cfg.Name)
	}
	return filepath.Join(all, cfg.Name), nil
}

// joinAs gets an executor a certificate by a token. One that it has got by that token stays: a service is started again
// with what it was started with. Another token makes another certificate, in the place of one that was revoked.
func joinAs(c *cobra.Command, name, dir, join string) error {
	t, err := trust.ParseToken(join)
	if err != nil {
		return err
	}
	if t.Role != trust.Executor {
		return fault.Newf(fault.Usage, "use", "--join", "the token makes its bearer %s, no executor", t.Role)
	}
	if trust.HasIdentity(dir) {
		id, err := trust.OpenIdentity(dir)
		if err != nil {
			return err
		}
		if id.Name().Cluster != t.Cluster {
			return fault.Newf(fault.Usage, "use", "--join", "the token is of the cluster %s, the certificate in %s "+
				"of %s",
				t.Cluster, dir, id.Name().Cluster).WithHint("remove that directory, or take another --data-dir")
		}
		used, _ := os.ReadFile(filepath.Join(dir, usedFile)) // none is another
		if time.Now().Before(id.Expires()) && strings.TrimSpace(string(used)) == trust.HashOf(t.Secret) {
			return nil
		}
	}
	b, err := wire.Join(c.Context(), t, name)
	if err != nil {
		return err
	}
	if err := trust.WritePrivate(filepath.Join(dir, usedFile), []byte(trust.HashOf(t.Secret)+"\n")); err != nil {
		return err
	}
	return keepIdentity(dir, b, t.Drivers)
}

// usedFile has the hash of the token that a certificate was got by.
const usedFile = "token"
