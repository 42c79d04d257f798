package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/volley-engine/volley/internal/fault"
)

// envName returns the environment variable of a flag: --sync-ratio is
// VOLLEY_SYNC_RATIO.
func envName(flag string) string {
	return "VOLLEY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fillFlags sets the flags that the command line does not: from the
// environment, else from the configuration file.
func fillFlags(c *cobra.Command) error {
	file, path, err := readConfig(c)
	if err != nil {
		return err
	}
	var failed error
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || failed != nil || f.Name == "config" || f.Name == "help" {
			return
		}
		if v, ok := os.LookupEnv(envName(f.Name)); ok {
			failed = setFlag(c, f.Name, v, envName(f.Name))
		} else if v, ok := file[f.Name]; ok {
			failed = setFlag(c, f.Name, v, path)
		}
		delete(file, f.Name)
	})
	if failed != nil {
		return failed
	}
	for name := range file {
		if c.Flags().Lookup(name) == nil {
			return fault.Newf(fault.Usage, "read", path, "%q is not an option of %s", name, c.CommandPath())
		}
	}
	return nil
}

func setFlag(c *cobra.Command, name, value, from string) error {
	if err := c.Flags().Set(name, value); err != nil {
		return fault.Newf(fault.Usage, "read", from, "--%s: %v", name, err)
	}
	return nil
}

// readConfig reads the YAML file of --config (or VOLLEY_CONFIG): one option a
// line, lists for those that take several values.
func readConfig(c *cobra.Command) (map[string]string, string, error) {
	path, _ := c.Flags().GetString("config")
	if path == "" {
		path = os.Getenv("VOLLEY_CONFIG")
	}
	if path == "" {
		return nil, "", nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, path, fault.New(fault.Usage, "read --config", path, err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(raw, &values); err != nil {
		return nil, path, fault.New(fault.Usage, "read --config", path, err)
	}
	out := map[string]string{}
	for name, v := range values {
		out[name] = configText(v)
	}
	return out, path, nil
}

func configText(v any) string {
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprint(v)
	}
	parts := make([]string, len(list))
	for i, p := range list {
		parts[i] = fmt.Sprint(p)
	}
	return strings.Join(parts, ",")
}

// usage returns a usage error about a flag.
func usage(c *cobra.Command, flag, format string, args ...any) error {
	return fault.Newf(fault.Usage, c.CommandPath(), "--"+flag, format,
		args...).WithHint("see " + c.CommandPath() + " --help")
}
