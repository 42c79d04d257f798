package rdd

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// Pipe sends the rows of each partition, a line each, to the standard input of a
// program, and makes rows of the lines of its output. The program is started as
// it is named, by no shell. It must be there on all executors.
func Pipe(ds Dataset[string], argv ...string) Dataset[string] {
	if len(argv) == 0 {
		ds.g.fail("pipe: no program is given")
	}
	out := derive(ds, "pipe", func(ctx context.Context, part int, yield func([]string) error) error {
		return pipe(ctx, ds, part, argv, yield)
	})
	ds.g.node(out.id).detail = fmt.Sprintf("%q", argv)
	return out
}

// pipeWait is how long the end of a program's error output is waited for: a process that it has left
// behind may hold it open.
const pipeWait = time.Second

func pipe(ctx context.Context, ds Dataset[string], part int, argv []string, yield func([]string) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = pipeWait
	var complaint tail
	cmd.Stderr = &complaint
	in, err := cmd.StdinPipe()
	if err != nil {
		return fault.New(fault.Internal, "pipe to", argv[0], err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fault.New(fault.UserCode, "pipe to", argv[0], err)
	}
	fed := make(chan error, 1)
	go func() { fed <- feed(ctx, ds, part, in) }()
	err = eachOutputLine(out, yield)
	if err != nil {
		cancel()
	}
	ferr, werr := <-fed, cmd.Wait()
	if werr != nil && err == nil && ferr == nil {
		werr = fault.New(fault.UserCode, "pipe to", argv[0],
			fmt.Errorf("%w: %s", werr, strings.TrimSpace(complaint.String())))
	}
	return cmp.Or(err, ferr, werr)
}

// feed writes the rows of a partition to the program. One that stops reading early is no error; a panic of
// the functions that make the rows is one.
func feed(ctx context.Context, ds Dataset[string], part int, in io.WriteCloser) (err error) {
	defer recovered(part, &err)
	defer in.Close()
	w := bufio.NewWriterSize(in, 64<<10)
	err = ds.rows(ctx, part, func(line string) error {
		if _, err := w.WriteString(line); err != nil {
			return errEnough
		}
		if err := w.WriteByte('\n'); err != nil {
			return errEnough
		}
		return nil
	})
	if err == nil {
		_ = w.Flush()
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func eachOutputLine(out io.Reader, yield func([]string) error) error {
	b := row.NewBatcher(yield)
	r := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := r.ReadString('\n')
		if err != nil && err != io.EOF {
			return fault.New(fault.UserCode, "read", "the output of a pipe", err)
		}
		if line != "" {
			if err := b.Add(strings.TrimSuffix(line, "\n")); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return b.Flush()
		}
	}
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

const tailBytes = 2 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if len(t.kept) > tailBytes {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-tailBytes:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.kept) }
