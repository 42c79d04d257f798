package parquet

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/memory"
	"github.com/volley-engine/volley/internal/raw"
	"github.com/volley-engine/volley/storage/input/rows"
)

// Parquet and Arrow files are decoded in a child process: the decoders allocate
// what a header claims, loop on some malformed pages and panic in goroutines of
// their own. The child has a limit on memory, is killed when it makes no
// progress, and its end is an error that names the file. It is this same
// program, started again with decodeEnv set. What it decodes arrives in shared
// memory (window), or after the head of a reply.
const decodeEnv = "VOLLEY_DECODE"

// decodeOrder is a request to the child.
type decodeOrder struct {
	Path     string   `json:"path"`
	Kind     Kind     `json:"kind"`
	Describe []string `json:"describe,omitempty"` // only describe these files
	Groups   []int    `json:"groups"`             // row groups of Parquet; none is all
	Plan     *Plan    `json:"plan"`
	Columns  []string `json:"columns,omitempty"` // of Parquet, to be sent as FlatColumns; in a description, the columns in question
	Records  bool     `json:"records"`           // send Arrow records unchanged
	Schema   bool     `json:"schema,omitempty"`  // send an Arrow stream without records first
	Head     bool     `json:"head,omitempty"`    // and nothing else
	Keys     []key    `json:"keys,omitempty"`    // columns that records get beside their own
	Only     []string `json:"only,omitempty"`    // columns of Parquet that records are to have; none is all
	Memory   int64    `json:"memory"`
	Soft     int64    `json:"soft,omitempty"` // soft memory limit
}

// decodeReply is the head of one message of the child: an error, a description, or
// the layout of the body, which is in the next slot of the window, or follows.
type decodeReply struct {
	Err      *decodeError   `json:"err,omitempty"`
	Describe *columnsInFile `json:"describe,omitempty"`
	Chunk    *decodedChunk  `json:"chunk,omitempty"`
	Columns  []sentBatch    `json:"columns,omitempty"`
	Pages    *groupPages    `json:"pages,omitempty"`  // of a row group, instead of its columns
	Arrow    int            `json:"arrow,omitempty"`  // bytes of an Arrow stream
	Window   int            `json:"window,omitempty"` // bytes of the body in the window
	Inline   int            `json:"inline,omitempty"` // bytes of the body that follow
	Done     bool           `json:"done,omitempty"`   // the order is complete
	raw      []byte         // the body
}

// decodeError is an error of the child.
type decodeError struct {
	Kind    fault.Kind `json:"kind"`
	Op      string     `json:"op"`
	Subject string     `json:"subject"`
	Hint    string     `json:"hint,omitempty"`
	Text    string     `json:"text"`
}

// errorOf returns an error in the form of a reply.
func errorOf(path string, err error) *decodeError {
	var f *fault.Error
	if !errors.As(err, &f) {
		f = fault.New(fault.BadInput, "read", path, err)
	}
	return &decodeError{f.Kind, f.Op, f.Subject, f.Hint, fmt.Sprint(f.Err)}
}

func (e *decodeError) fault() error {
	return fault.New(e.Kind, e.Op, e.Subject, errors.New(e.Text)).WithHint(e.Hint)
}

type decodedChunk struct {
	Width int      `json:"width"`
	Texts []string `json:"texts,omitempty"`
	Lens  [5]int   `json:"lens"` // labels, values, offsets, indices, weights
}

// memoryFor returns what a child may allocate for a file.
func memoryFor(size int64) int64 { return 768<<20 + 2*size }

// decode makes a child decode a file and passes its replies on; their bodies are
// valid during the call only.
func decode(ctx context.Context, order decodeOrder, yield func(*decodeReply) error) error {
	order.Soft = memory.OfChild()
	for {
		child, used, err := decoders.take()
		if err != nil {
			return err
		}
		replies, err := child.decode(ctx, order, yield)
		if err == nil || !used || replies > 0 || ctx.Err() != nil {
			return err
		} // it may have been killed while idle: only the end of a new one is attributable
	}
}

// decode passes the replies of a child on, and returns their number.
func (d *decoder) decode(ctx context.Context, order decodeOrder,
	yield func(*decodeReply) error) (replies int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alive := context.AfterFunc(ctx, d.kill)
	w := &decodeWatch{pid: d.cmd.Process.Pid, stop: cancel}
	watched, done := context.WithCancel(ctx)
	defer done()
	go w.watch(watched)
	path := order.Path
	var own error // the receiver's error
	err = d.carryOut(order, func(r *decodeReply) error {
		w.idle.Store(true) // it waits for us
		defer w.idle.Store(false)
		if n := w.replies.Add(1); len(order.Describe) > 0 {
			path = order.Describe[min(int(n), len(order.Describe)-1)] // which comes next
		}
		own = yield(r)
		return own
	})
	if err == nil && alive() {
		decoders.give(d)
		return w.replies.Load(), nil
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) { // else it ends by itself, with an error
		d.kill()
	}
	complaint, exit := d.end()
	if own != nil {
		return w.replies.Load(), own
	}
	return w.replies.Load(), decodeOutcome(ctx, path, err, exit, complaint)
}

// decodeOutcome returns the error that the child's end stands for.
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
			WithHint("the system kills processes when memory runs out: give the executor more, or run fewer at a time")
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

// reply reads a message.
func (d *decoder) reply() (*decodeReply, error) {
	head, err := readSized(d.out)
	if err != nil {
		return nil, err
	}
	r := &decodeReply{}
	if err := json.Unmarshal(head, r); err != nil {
		return nil, err
	}
	switch {
	case r.Window > slotBytes || r.Window > 0 && d.window.window == nil:
		return nil, errShortBody
	case r.Window > 0:
		r.raw = d.window.next()[:r.Window]
	case r.Inline > 0:
		d.inline = slices.Grow(d.inline[:0], r.Inline)[:r.Inline]
		_, err = io.ReadFull(d.out, d.inline)
		r.raw = d.inline
	}
	return r, err
}

// readSized reads bytes behind their number.
func readSized(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	raw := make([]byte, binary.LittleEndian.Uint32(size[:]))
	_, err := io.ReadFull(r, raw)
	return raw, err
}

// chunk returns the rows that a reply has; nil without any.
func (r *decodeReply) chunk() (*rows.Chunk, error) {
	if r.Chunk == nil {
		return nil, nil
	}
	c, lens, raw := &rows.Chunk{Width: r.Chunk.Width, Texts: r.Chunk.Texts}, r.Chunk.Lens, r.raw
	err := cmp.Or(takePart(&c.Labels, &raw, lens[0]), takePart(&c.Values, &raw, lens[1]))
	if lens[2] > 0 {
		err = cmp.Or(err, takePart(&c.Offsets, &raw, lens[2]), takePart(&c.Indices, &raw, lens[3]))
	}
	if lens[4] > 0 {
		err = cmp.Or(err, takePart(&c.Weights, &raw, lens[4]))
	}
	return c, err
}

// takePart copies n values off a body.
func takePart[T any](to *[]T, raw *[]byte, n int) error {
	part, err := partOf[T](raw, n)
	if err == nil {
		*to = append([]T{}, part...)
	}
	return err
}

// chunkParts returns the slices of a chunk in the order that a reply has them.
func chunkParts(c *rows.Chunk) [][]byte {
	return [][]byte{raw.Bytes(c.Labels), raw.Bytes(c.Values), raw.Bytes(c.Offsets), raw.Bytes(c.Indices),
		raw.Bytes(c.Weights)}
}

// columns yields the batches of columns in a reply.
func (r *decodeReply) columns(cols []*FlatColumn, yield func(rows int, cols []*FlatColumn) error) error {
	raw := r.raw
	for _, b := range r.Columns {
		if len(b.Columns) != len(cols) {
			return errShortBody
		}
		for i, c := range cols {
			if err := c.receive(b.Columns[i], &raw); err != nil {
				return err
			}
		}
		if err := yield(b.Rows, cols); err != nil {
			return err
		}
	}
	return nil
}
