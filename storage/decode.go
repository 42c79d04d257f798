package storage

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/volley-engine/volley/internal/fault"
)

// Parquet and Arrow files are decoded in a child process: the decoders
// allocate what a header claims, loop on some malformed pages and panic in
// goroutines of their own. The child has a limit on memory, is killed when it
// makes no progress, and its end is an error that names the file. It is this
// same program, started again with decodeEnv set.
const decodeEnv = "VOLLEY_DECODE"

// decodeOrder is what the child is asked to do.
type decodeOrder struct {
	Path     string      `json:"path"`
	Format   Format      `json:"format"`
	Describe bool        `json:"describe"` // only say what is in the file
	Groups   []int       `json:"groups"`   // row groups of Parquet; none is all
	Plan     *columnPlan `json:"plan"`
	Records  bool        `json:"records"` // hand on Arrow records as they are
	Memory   int64       `json:"memory"`
}

// decodeReply is the head of one message of the child: an error, a
// description, or a chunk whose slices follow.
type decodeReply struct {
	Err      string         `json:"err,omitempty"`
	Describe *columnsInFile `json:"describe,omitempty"`
	Chunk    *decodedChunk  `json:"chunk,omitempty"`
	Raw      int            `json:"raw,omitempty"` // bytes of an Arrow stream that follow
	raw      []byte
}

type decodedChunk struct {
	Width int      `json:"width"`
	Texts []string `json:"texts,omitempty"`
	Lens  [5]int   `json:"lens"` // labels, values, offsets, indices, weights
}

// memoryFor is what a child may allocate for a file.
func memoryFor(size int64) int64 { return 768<<20 + 2*size }

// decode runs a child over a file and hands its replies on.
func decode(ctx context.Context, order decodeOrder, yield func(*decodeReply, *Chunk) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	self, err := os.Executable()
	if err != nil {
		return fault.New(fault.Internal, "start", "the decoder", err)
	}
	raw, err := json.Marshal(order)
	if err != nil {
		return fault.New(fault.Internal, "start", "the decoder", err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), decodeEnv+"=1", "GOTRACEBACK=none", fmt.Sprintf("GOMEMLIMIT=%d", order.Memory/2))
	cmd.Stdin = bytes.NewReader(raw)
	var complaint bytes.Buffer
	cmd.Stderr = &limitedWriter{w: &complaint, left: 4096}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fault.New(fault.Internal, "start", "the decoder", err)
	}
	if err := cmd.Start(); err != nil {
		return fault.New(fault.NoResources, "start", "the decoder", err)
	}
	w := &decodeWatch{pid: cmd.Process.Pid, stop: cancel}
	watched, done := context.WithCancel(ctx)
	defer done()
	go w.watch(watched)
	err = readReplies(bufio.NewReaderSize(out, 1<<20), order, func(r *decodeReply, c *Chunk) error {
		w.idle.Store(true) // it waits for us
		defer w.idle.Store(false)
		w.replies.Add(1)
		return yield(r, c)
	})
	if err != nil {
		cancel(err)
	}
	return decodeOutcome(ctx, order.Path, err, cmd.Wait(), complaint.String())
}

// decodeOutcome says what the child's end means.
func decodeOutcome(ctx context.Context, path string, err, exit error, complaint string) error {
	var own *fault.Error
	switch {
	case errors.As(err, &own):
		return err
	case errors.Is(context.Cause(ctx), errSpins):
		return fault.New(fault.BadInput, "read", path, errSpins)
	case errors.Is(context.Cause(ctx), errStalled):
		return fault.New(fault.Timeout, "read", path, errStalled)
	case err == nil && exit == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return err
	}
	if killed(exit) {
		return fault.New(fault.NoResources, "read", path, fmt.Errorf("its decoder was killed: %w", exit)).
			WithHint("the system kills for want of memory: give the executor more, or run fewer at a time")
	}
	line, _, _ := strings.Cut(strings.TrimSpace(complaint), "\n")
	if line == "" {
		line = fmt.Sprint(errors.Join(err, exit))
	}
	return fault.Newf(fault.BadInput, "read", path, "the file is malformed: %s", line)
}

// killed reports whether a child was ended from outside.
func killed(exit error) bool {
	var e *exec.ExitError
	if !errors.As(exit, &e) {
		return false
	}
	status, ok := e.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

type limitedWriter struct {
	w    io.Writer
	left int
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	if _, err := l.w.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// readReplies reads the child's messages until it closes its output.
func readReplies(r *bufio.Reader, order decodeOrder, yield func(*decodeReply, *Chunk) error) error {
	for {
		var size [4]byte
		if _, err := io.ReadFull(r, size[:]); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		head := make([]byte, binary.LittleEndian.Uint32(size[:]))
		if _, err := io.ReadFull(r, head); err != nil {
			return err
		}
		reply := &decodeReply{}
		if err := json.Unmarshal(head, reply); err != nil {
			return err
		}
		if reply.Err != "" {
			return fault.Newf(fault.BadInput, "read", order.Path, "%s", reply.Err)
		}
		c, err := reply.body(r)
		if err == nil {
			err = yield(reply, c)
		}
		if err != nil {
			return err
		}
	}
}

// body reads the slices that follow a chunk's head.
func (d *decodeReply) body(r io.Reader) (*Chunk, error) {
	if d.Raw > 0 {
		d.raw = make([]byte, d.Raw)
		_, err := io.ReadFull(r, d.raw)
		return nil, err
	}
	if d.Chunk == nil {
		return nil, nil
	}
	c := &Chunk{Width: d.Chunk.Width, Texts: d.Chunk.Texts, Labels: make([]float64, d.Chunk.Lens[0]), Values: make([]float64, d.Chunk.Lens[1])}
	if d.Chunk.Lens[2] > 0 {
		c.Offsets, c.Indices = make([]int64, d.Chunk.Lens[2]), make([]int32, d.Chunk.Lens[3])
	}
	if d.Chunk.Lens[4] > 0 {
		c.Weights = make([]float64, d.Chunk.Lens[4])
	}
	for _, p := range c.parts() {
		if _, err := io.ReadFull(r, p); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// parts are the slices of a chunk as they follow its head.
func (c *Chunk) parts() [][]byte {
	return [][]byte{asBytes(c.Labels), asBytes(c.Values), asBytes(c.Offsets), asBytes(c.Indices), asBytes(c.Weights)}
}

// writeReply is the child's side of readReplies.
func writeReply(w io.Writer, d *decodeReply, c *Chunk) error {
	if c != nil {
		d.Chunk = &decodedChunk{Width: c.Width, Texts: c.Texts, Lens: [5]int{len(c.Labels), len(c.Values), len(c.Offsets), len(c.Indices), len(c.Weights)}}
	}
	head, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if _, err := w.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(head)))); err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	if c == nil {
		_, err := w.Write(d.raw)
		return err
	}
	for _, p := range c.parts() {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}
