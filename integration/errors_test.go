package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestErrors provokes the errors of ordinary mistakes, each with the text that the user reads: testdata/errors is to be
// read as someone who is annoyed (go test ./integration -run TestErrors -rewrite).
//
//	file NAME        the file with the text that follows
//	volley           a line of arguments; what it prints on stderr, and its exit code, which is not 0
//	works            a command that ends with 0
func TestErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	datadriven.Walk(t, "testdata/errors", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "file":
				name := filepath.Join(dir, d.CmdArgs[0].Key)
				if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
					d.Fatalf(t, "%v", err)
				}
				if err := os.WriteFile(name, []byte(d.Input+"\n"), 0o600); err != nil {
					d.Fatalf(t, "%v", err)
				}
				return ""
			case "volley", "works":
				said, code := inDir(t, dir, words(d.Input)...)
				if (code == 0) != (d.Cmd == "works") {
					d.Fatalf(t, "exit %d: %s", code, said)
				}
				if d.Cmd == "works" {
					return ""
				}
				return fmt.Sprintf("exit %d\n%s", code, said)
			}
			d.Fatalf(t, "there is no command %s", d.Cmd)
			return ""
		})
	})
}

// inDir runs the program in a directory, and returns what it said on stderr, times and the directory masked.
func inDir(t *testing.T, dir string, args ...string) (said string, code int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		code = cmd.ProcessState.ExitCode()
	}
	if ctx.Err() != nil {
		t.Fatalf("volley %s does not end", strings.Join(args, " "))
	}
	said = strings.ReplaceAll(errs.String(), dir, "DIR")
	said = strings.ReplaceAll(said, os.Getenv("VOLLEY_HOME"), "HOME")
	return passing.ReplaceAllString(said, ""), code
}

// passing are lines that are not of the mistake: progress, and what is tried again.
var passing = regexp.MustCompile(`(?m)^(loading: |iteration |\d{4}-\d\d-\d\dT).*\n`)

// words splits a line at blanks that are not between apostrophes.
func words(line string) (out []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}
