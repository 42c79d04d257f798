package parquet

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/memory"
)

// decoder is a child process that decodes files, one order after the other.
type decoder struct {
	cmd    *exec.Cmd
	out    *bufio.Reader
	window windowReader
	inline []byte   // room for bodies that are not in the window
	said   *os.File // to its standard error
}

// startDecoder starts a child.
func startDecoder() (*decoder, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fault.New(fault.Internal, "start", "the decoder", err)
	}
	d := &decoder{cmd: exec.Command(self)}
	d.cmd.Env = append(os.Environ(), decodeEnv+"=1", "GOTRACEBACK=none")
	if err := d.start(); err != nil {
		d.close()
		return nil, fault.New(fault.NoResources, "start", "the decoder", err)
	}
	return d, nil
}

func (d *decoder) start() error {
	said, err := sharedFile(0) // a file, not a pipe: it need not be read while the child waits
	if err != nil {
		return err
	}
	d.said, d.cmd.Stderr = said, said
	w, f, err := newWindow()
	if err != nil {
		return err
	}
	defer f.Close() // the child has its own
	d.window.window, d.cmd.ExtraFiles = w, []*os.File{f}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if d.window.taken, err = d.cmd.StdinPipe(); err != nil {
		return err
	}
	d.out = bufio.NewReaderSize(out, 64<<10)
	if err := d.cmd.Start(); err != nil {
		return err
	}
	memory.Started()
	return nil
}

// carryOut gives the child an order and reads its replies until it is done.
func (d *decoder) carryOut(order decodeOrder, yield func(*decodeReply) error) error {
	raw, err := json.Marshal(order)
	if err != nil {
		return fault.New(fault.Internal, "start", "the decoder", err)
	}
	// Reading reports its end, if it cannot be written.
	_, _ = d.window.taken.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(raw))), raw...))
	for {
		r, err := d.reply()
		switch {
		case err != nil:
			return err
		case r.Err != nil:
			return r.Err.fault()
		case r.Done:
			return nil
		}
		if err := yield(r); err != nil {
			return err
		}
		if r.Window > 0 {
			d.window.release()
		}
	}
}

// kill ends the child.
func (d *decoder) kill() { _ = d.cmd.Process.Kill() }

// end waits for the end of the child, and returns its exit status and its error
// output.
func (d *decoder) end() (complaint string, exit error) {
	defer d.close()
	exit = d.cmd.Wait()
	memory.Ended()
	said := make([]byte, complaintMost)
	n, _ := d.said.ReadAt(said, 0)
	return string(said[:n]), exit
}

// complaintMost is how much is read of a child's standard error.
const complaintMost = 4096

func (d *decoder) close() {
	d.window.close()
	if d.said != nil {
		d.said.Close()
	}
}

// decoderPool holds idle children. A program of this size takes some milliseconds
// to start, and most files are read in many parts.
type decoderPool struct {
	mu   sync.Mutex
	idle []idleDecoder
}

type idleDecoder struct {
	*decoder
	bored *time.Timer
}

var decoders decoderPool

// decoderIdle is how long a child waits for another order.
const decoderIdle = time.Second

// take returns an idle child; used is false where it is new.
func (p *decoderPool) take() (d *decoder, used bool, err error) {
	p.mu.Lock()
	last := len(p.idle) - 1
	if last < 0 {
		p.mu.Unlock()
		d, err = startDecoder()
		return d, false, err
	}
	defer p.mu.Unlock()
	p.idle[last].bored.Stop()
	d, p.idle = p.idle[last].decoder, p.idle[:last]
	return d, true, nil
}

// give returns a child to the pool.
func (p *decoderPool) give(d *decoder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, idleDecoder{d, time.AfterFunc(decoderIdle, func() { p.retire(d) })})
}

// retire ends a child that has waited for long enough.
func (p *decoderPool) retire(d *decoder) {
	p.mu.Lock()
	at := slices.IndexFunc(p.idle, func(i idleDecoder) bool { return i.decoder == d })
	if at >= 0 {
		p.idle = slices.Delete(p.idle, at, at+1)
	}
	p.mu.Unlock()
	if at >= 0 {
		d.kill()
		_, _ = d.end() // it was killed
	}
}
