package pack

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/plan"
)

// receiving is a split that peers send, and where it goes to.
type receiving struct {
	t    *testing.T
	s    *Held
	dir  string
	data []byte
	meta *Meta
}

func newReceiving(t *testing.T) *receiving {
	r := &receiving{t: t, dir: t.TempDir(), data: make([]byte, 1<<20)}
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(r.data)
	r.meta = &Meta{Splits: []SplitMeta{{Bytes: int64(len(r.data)), SHA256: plan.DigestOf(r.data)}}}
	var err error
	if r.s, err = NewHeld(r.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.s.Close() })
	return r
}

// receive is Receive of the split, which must not fail without a reason of fill's.
func (r *receiving) receive(fill func(w io.Writer) error) (plan.Digest, error) {
	return r.s.Receive(SplitKey{}, r.meta, fill)
}

// send writes a range of the split.
func (r *receiving) send(w io.Writer, from, to int) error {
	_, err := w.Write(r.data[from:to])
	return err
}

// held checks that what is handed out is the split, to the byte.
func (r *receiving) held(when string) {
	r.t.Helper()
	var out bytes.Buffer
	if err := r.s.Send(SplitKey{}, &out); err != nil {
		r.t.Errorf("%s: %v", when, err)
	} else if !bytes.Equal(out.Bytes(), r.data) {
		r.t.Errorf("%s, the split that is held is not the one that was announced", when)
	}
}

// patience is how long a receive may keep another one waiting that it does not let
// begin: it is as good for it to wait.
const patience = time.Second

// second begins a receive beside one that is under way, and waits until it has written
// something, is over, or is not let in.
func (r *receiving) second(rest <-chan error) *secondReceive {
	in, s := make(chan struct{}), &secondReceive{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		_, s.err = r.receive(func(w io.Writer) error {
			err := r.send(w, 0, len(r.data)/8)
			close(in)
			if failed := <-rest; failed != nil || err != nil {
				return errors.Join(failed, err)
			}
			return r.send(w, len(r.data)/8, len(r.data))
		})
	}()
	select {
	case <-in:
	case <-s.done:
	case <-time.After(patience):
	}
	return s
}

// secondReceive is a receive beside another; err is there once it is done.
type secondReceive struct {
	done chan struct{}
	err  error
}

// wait is how the receive ends.
func (s *secondReceive) wait() error {
	select {
	case <-s.done:
		return s.err
	case <-time.After(10 * time.Second):
		return errors.New("it does not end")
	}
}

// TestTwoReceivesOfOneSplit: one that begins while another is under way, and is slower,
// takes nothing away from it.
func TestTwoReceivesOfOneSplit(t *testing.T) {
	r := newReceiving(t)
	rest := make(chan error, 1)
	var second *secondReceive
	got, err := r.receive(func(w io.Writer) error {
		if err := r.send(w, 0, len(r.data)/2); err != nil {
			return err
		}
		second = r.second(rest)
		return r.send(w, len(r.data)/2, len(r.data))
	})
	if err != nil || got != r.meta.Splits[0].SHA256 {
		t.Errorf("the first ends with %v and %v", got.Short(), err)
	}
	r.held("while the second is under way")
	rest <- nil
	if err := second.wait(); err != nil {
		t.Errorf("the second: %v", err)
	}
	r.held("once both have ended")
}

// TestAReceiveThatFailsBesideAnother leaves the other's bytes alone.
func TestAReceiveThatFailsBesideAnother(t *testing.T) {
	r := newReceiving(t)
	rest := make(chan error, 1)
	rest <- errors.New("the peer is gone")
	var second *secondReceive
	_, err := r.receive(func(w io.Writer) error {
		if err := r.send(w, 0, len(r.data)/2); err != nil {
			return err
		}
		second = r.second(rest)
		return r.send(w, len(r.data)/2, len(r.data))
	})
	if err != nil {
		t.Errorf("the one that does not fail ends with %v", err)
	}
	_ = second.wait() // it may have had no need to ask the peer that is gone
	r.held("after both")
}

// TestWhatIsHeldIsWhatWasHashed: the hash is that of the file, not of the stream that
// was to become it.
func TestWhatIsHeldIsWhatWasHashed(t *testing.T) {
	r := newReceiving(t)
	harmed := 0
	got, err := r.receive(func(w io.Writer) error {
		if err := r.send(w, 0, len(r.data)); err != nil {
			return err
		}
		files, _ := filepath.Glob(filepath.Join(r.dir, "*"))
		for _, path := range files {
			harmed++
			if err := flip(path); err != nil {
				return err
			}
		}
		return nil
	})
	if harmed == 0 {
		t.Skip("a file that is being received has no name")
	}
	if r.s.Path(SplitKey{}) != "" {
		t.Errorf("a split whose file is damaged is held: its hash is said to be %s: %v", got.Short(), err)
	}
}

// flip turns a bit of a file's first byte round.
func flip(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], 0); err != nil {
		return err
	}
	b[0] ^= 1
	_, err = f.WriteAt(b[:], 0)
	return err
}

// TestAReceiveLeavesNoFileBehind but the one that is held, whatever becomes of it.
func TestAReceiveLeavesNoFileBehind(t *testing.T) {
	for name, harm := range map[string]func(r *receiving, w io.Writer) error{
		"the peer is gone": func(r *receiving, w io.Writer) error { return errors.New("the peer is gone") },
		"cut short":        func(r *receiving, w io.Writer) error { return nil },
		"too long": func(r *receiving,
			w io.Writer) error {
			return errors.Join(r.send(w, 0, len(r.data)), r.send(w, 0, 9))
		},
		"another one": func(r *receiving, w io.Writer) error {
			return errors.Join(r.send(w, 1, len(r.data)/2), r.send(w, len(r.data)/2, len(r.data)), r.send(w, 0, 1))
		},
	} {
		r := newReceiving(t)
		_, _ = r.receive(func(w io.Writer) error {
			if err := r.send(w, 0, len(r.data)/2); err != nil {
				return err
			}
			return harm(r, w)
		})
		if files, _ := filepath.Glob(filepath.Join(r.dir, "*")); len(files) > 0 || r.s.Path(SplitKey{}) != "" {
			t.Errorf("%s: %q are left", name, files)
		}
	}
}
