package main

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
)

//go:embed starter
var starter embed.FS

// starterFiles are those of a new program, by where they lie in package main.
var starterFiles = map[string]string{"main.go": "main.go.txt", "main_test.go": "main_test.go.txt",
	"Makefile": "Makefile.txt"}

// starterCounts is what the new program's test expects.
const starterCounts = `{"Key":"be","Value":1}
{"Key":"be,","Value":1}
{"Key":"is","Value":1}
{"Key":"not","Value":1}
{"Key":"or","Value":1}
{"Key":"question","Value":1}
{"Key":"that","Value":1}
{"Key":"the","Value":1}
{"Key":"to","Value":2}
`

// newProgram is a program to be written.
type newProgram struct {
	Dir, Name, Module, Version string
	Replace                    string // directory that the engine's module is taken from; empty is the registry's
}

func newCommand() *cobra.Command {
	p := &newProgram{Version: volley.Version}
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a program that uses volley, with its test",
		Long: `New writes a Go module into the directory NAME: a program with a job that moves rows,
a test that runs it on clusters of several sizes, with executors lost on the way, and
a Makefile.`,
		Example: "  volley new words && cd words && go mod tidy && make test run",
		Args:    exactArgs(1, "the name of a directory"),
		RunE:    func(c *cobra.Command, args []string) error { return p.write(c, args[0]) },
	}
	c.Flags().StringVar(&p.Module, "module", "", "path of the Go module (default: example.org/NAME)")
	c.Flags().StringVar(&p.Replace, "replace", "",
		"directory of volley's own source, where the module is not to come from the registry")
	return c
}

// commandName are names that are a command's and a module's.
var commandName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// modulePath are paths of modules.
var modulePath = regexp.MustCompile(`^[a-zA-Z0-9][-a-zA-Z0-9._~/]*$`)

func (p *newProgram) write(c *cobra.Command, dir string) (err error) {
	p.Dir, p.Name = dir, filepath.Base(filepath.Clean(dir))
	if !commandName.MatchString(p.Name) {
		return fault.Newf(fault.Usage, "write", dir, "%q is no name of a program", p.Name).
			WithHint("letters a to z, digits, - and _, a letter first")
	}
	if p.Module == "" {
		p.Module = "example.org/" + p.Name // a name alone might be one of Go's own packages
	}
	if !modulePath.MatchString(p.Module) {
		return usage(c, "module", "%q is no path of a Go module", p.Module)
	}
	if p.Replace != "" {
		if p.Replace, err = filepath.Abs(p.Replace); err != nil {
			return fault.New(fault.BadInput, "find", p.Replace, err)
		}
		if _, err := os.Stat(filepath.Join(p.Replace, "go.mod")); err != nil {
			return usage(c, "replace", "there is no go.mod in %s", p.Replace)
		}
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fault.Newf(fault.Usage, "write", dir, "it exists and is not empty")
	}
	if err := p.files(); err != nil {
		return err
	}
	fmt.Printf("%s is written. Go on with\n\n  cd %s && go mod tidy && make test run\n", dir, dir)
	return nil
}

// files writes the program's files.
func (p *newProgram) files() error {
	for name, from := range starterFiles {
		text, err := starter.ReadFile("starter/" + from)
		if err != nil {
			return err
		}
		if err := p.file(name, string(text)); err != nil {
			return err
		}
	}
	if err := p.file("go.mod", starterModule); err != nil {
		return err
	}
	if err := p.file(".gitignore", "bin/\ncounts/\n"); err != nil {
		return err
	}
	return p.file(filepath.Join("testdata", "counts.jsonl"), starterCounts)
}

const starterModule = `module {{.Module}}

go 1.26.0

require github.com/volley-engine/volley v{{.Version}}
{{if .Replace}}
replace github.com/volley-engine/volley => {{printf "%q" .Replace}}
{{end}}`

func (p *newProgram) file(name, text string) error {
	t, err := template.New(name).Parse(text)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, p); err != nil {
		return err
	}
	path := filepath.Join(p.Dir, name)
	if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
		err = os.WriteFile(path, out.Bytes(), 0o644)
	}
	if err != nil {
		return fault.New(fault.NoResources, "write", path, err)
	}
	return nil
}
