package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/programs"
	"github.com/volley-engine/volley/internal/wire"
)

// programFlags are the flags for submitting a user's program.
type programFlags struct {
	submitFlags
	engine volley.EngineFlags
	binary string
}

// register makes a command take programs.
func (p *programFlags) register(c *cobra.Command) {
	fs := c.Flags()
	p.engine.Register(fs)
	p.submitFlags.register(fs)
	fs.StringVar(&p.binary, "binary", "", "program to submit, built before, instead of a package")
}

// submitProgram builds a package, unless it is built, and submits it.
func (p *programFlags) submitProgram(c *cobra.Command, args []string) error {
	if err := fillFlags(c); err != nil {
		return err
	}
	target, own, err := p.target(c, args)
	if err != nil {
		return err
	}
	if err := p.validateProgram(c); err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return fault.New(fault.NoResources, "find", "the working directory", err)
	}
	path, done := p.binary, func() {}
	if path == "" {
		if path, done, err = build(c.Context(), target); err != nil {
			return err
		}
	}
	defer done()
	to, err := findDriver(p.driver)
	if err != nil {
		return err
	}
	client, hangUp, err := to.dial()
	if err != nil {
		return err
	}
	defer hangUp()
	if err := p.known(c, client, to.addr); err != nil {
		return err
	}
	digest, err := upload(c.Context(), client, to.addr, path)
	done()
	if err != nil {
		return err
	}
	program := &wire.UserProgram{Digest: digest, Args: own, Dir: dir}
	if err := wire.SignProgram(to.by, program); err != nil {
		return err
	}
	reply, err := client.Submit(c.Context(),
		&wire.SubmitRequest{Job: programName(target), Args: jobArgs(c), Pool: p.pool, Weight: p.weight,
			Priority: p.urgent, TimeoutNs: int64(p.limit), Restarts: p.mostRestarts(), Program: program})
	if err != nil {
		return wire.CallError("submit to", to.addr, err)
	}
	if p.detach {
		fmt.Println(reply.Id)
		return nil
	}
	wait, _ := c.Flags().GetDuration("max-wait")
	w := &watcher{client: client, addr: to.addr, id: reply.Id, maxWait: wait, log: os.Stdout}
	info, err := w.follow(c.Context())
	if c.Context().Err() != nil {
		return leaveOrCancel(client, p.driver, reply.Id)
	}
	if err != nil {
		return err
	}
	if err := outcomeOf(info); err != nil {
		return err
	}
	return w.bring(c.Context(), "", false, p.engine.EventLog())
}

// target splits the arguments into the package or binary and the program's own
// flags, which follow --.
func (p *programFlags) target(c *cobra.Command, args []string) (target string, own []string, err error) {
	if at := c.ArgsLenAtDash(); at >= 0 {
		args, own = args[:at], args[at:]
	}
	switch {
	case p.binary != "" && len(args) == 0:
		return p.binary, own, nil
	case p.binary == "" && len(args) == 1 && isPackage(args[0]):
		return args[0], own, nil
	}
	return "", nil, fault.Newf(fault.Usage, "submit", strings.Join(args, " "),
		"want the name of a bundled job, the path of a Go package, or --binary").
		WithHint("jobs: logistic; a path begins with . or /; a program's own flags stand after --")
}

// isPackage reports whether an argument is the path of a package, not the name of
// a job.
func isPackage(arg string) bool {
	return strings.HasPrefix(arg, ".") || filepath.IsAbs(arg) || strings.HasSuffix(arg, ".go")
}

func programName(target string) string {
	abs, err := filepath.Abs(target)
	if err != nil {
		abs = target
	}
	return strings.TrimSuffix(filepath.Base(abs), ".go")
}

// validateProgram checks the flags before anything is built.
func (p *programFlags) validateProgram(c *cobra.Command) error {
	if err := p.submitFlags.validate(c, asked{}); err != nil {
		return err
	}
	if p.detach && p.engine.EventLog() != "" {
		return usage(c, "detach", "a detached job cannot download --event-log: ask for it later with volley job ID "+
			"--event-log FILE")
	}
	_, err := p.engine.Config()
	return err
}

// upload sends a program, unless the driver has it.
func upload(ctx context.Context, client wire.ClusterClient, addr, path string) (digest string, err error) {
	about, err := client.Program(ctx, &wire.ProgramRequest{})
	if err != nil {
		return "", wire.CallError("ask", addr, err)
	}
	if digest, err = programs.Digest(path, about.Arch); err != nil {
		return "", err
	}
	if about, err = client.Program(ctx, &wire.ProgramRequest{Digest: digest}); err != nil || about.Known {
		return digest, wire.CallError("ask", addr, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fault.New(fault.Usage, "submit", path, err)
	}
	defer f.Close()
	stream, err := client.Upload(ctx)
	if err != nil {
		return "", wire.CallError("hand a program to", addr, err)
	}
	part := &wire.ProgramPart{Digest: digest, Data: make([]byte, 1<<20)}
	for {
		n, rerr := io.ReadFull(f, part.Data)
		if n > 0 && stream.Send(&wire.ProgramPart{Digest: part.Digest,
			Data: append([]byte(nil), part.Data[:n]...)}) != nil {
			break // CloseAndRecv returns why
		}
		if rerr != nil {
			break
		}
	}
	_, err = stream.CloseAndRecv()
	return digest, wire.CallError("hand a program to", addr, err)
}
