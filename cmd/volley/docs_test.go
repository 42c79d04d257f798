package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley"
)

// TestReferenceIsCurrent holds docs/cli.md against the commands. With
// UPDATE=1 it is written anew.
func TestReferenceIsCurrent(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "cli.md")
	want := reference()
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/cli.md is not what the commands say: run UPDATE=1 go test ./cmd/volley (%v)", err)
	}
}

var ofThisMachine = regexp.MustCompile(`cores, \d+ here`)

func reference() []byte {
	var b bytes.Buffer
	b.WriteString("# Command line reference\n\nMade from the commands' own help by `UPDATE=1 go test ./cmd/volley`.\n\n" +
		"Exit codes: 0 ok; 1 the job failed, unreadable or malformed data included; 2 a flag that is unknown, " +
		"missing, malformed or\n" +
		"contradictory; 3 the result has not converged, where --must-converge is set; 130 interrupted. Every flag of " +
		"a command can also be given as an environment variable (`--sync-ratio` as\n" +
		"`VOLLEY_SYNC_RATIO`) or in the YAML file of `--config`; the command line wins over the environment, the " +
		"environment over the file.\n")
	describe(&b, rootCommand())
	text := strings.ReplaceAll(b.String(), volley.DefaultDataDir(), "$XDG_CACHE_HOME/volley")
	text = ofThisMachine.ReplaceAllString(text, "cores")
	return []byte(regexp.MustCompile(`(workers int .*\(default: cores\)) \(default \d+\)`).ReplaceAllString(text, "$1"))
}

func describe(b *bytes.Buffer, c *cobra.Command) {
	if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
		return
	}
	if c.Runnable() {
		fmt.Fprintf(b, "\n## %s\n\n", strings.TrimSuffix(c.UseLine(), " [flags]"))
		text := c.Long
		if text == "" {
			text = c.Short + "."
		}
		fmt.Fprintf(b, "%s\n", text)
		if c.Example != "" {
			fmt.Fprintf(b, "\n```\n%s\n```\n", c.Example)
		}
		if flags := c.LocalFlags().FlagUsages(); flags != "" {
			fmt.Fprintf(b, "\n```\n%s```\n", flags)
		}
	}
	for _, sub := range c.Commands() {
		describe(b, sub)
	}
}
