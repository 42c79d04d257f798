package copies

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/wire"
)

// world is a store of another driver, and the directory of this one.
type world struct {
	t      *testing.T
	here   string
	there  string
	term   uint64 // that the other knows of
	client wire.FilesClient
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, here: t.TempDir(), there: t.TempDir(), term: 3}
	at := wire.SocketAddress(filepath.Join(t.TempDir(), "files.sock"))
	l, err := wire.Listen(at)
	if err != nil {
		t.Fatal(err)
	}
	admit := func(context.Context, string) error { return nil }
	server := wire.Party{}.NewServer(wire.Gate{Admit: admit})
	wire.RegisterFilesServer(server, &Store{Root: w.there, Within: []string{"jobs"}, Skip: []string{"cache"},
		Takes: func(term uint64) bool { return term >= w.term }})
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	conn, err := wire.Dial(at, wire.Party{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	w.client = wire.NewFilesClient(conn)
	return w
}

func (w *world) write(path, text string) {
	w.t.Helper()
	file := filepath.Join(w.here, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) grow(path, text string) {
	w.t.Helper()
	f, err := os.OpenFile(filepath.Join(w.here, path), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
		f.Close()
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) copied(path, want string) {
	w.t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.there, path))
	if err != nil || string(raw) != want {
		w.t.Errorf("the copy of %s is %q (%v), want %q", path, raw, err, want)
	}
}

const log, state = "jobs/j/events.jsonl", "jobs/j/checkpoints/checkpoint-1"

var both = []File{{Path: log, Grows: true}, {Path: state}}

func none(string) bool { return false }

// TestCopiesFollow: what grows is sent from where the copy ends, what is replaced as a whole, and what is gone is
// dropped where it may be. A peer that is asked anew is sent nothing that it has.
func TestCopiesFollow(t *testing.T) {
	w := newWorld(t)
	w.write(log, "one\n")
	w.write(state, "1")
	p := NewPeer(w.client, w.here, "jobs/j", 3)
	sync := func(drop func(string) bool) {
		t.Helper()
		if err := p.Sync(context.Background(), both, drop); err != nil {
			t.Fatal(err)
		}
	}
	sync(none)
	w.copied(log, "one\n")
	w.copied(state, "1")
	if err := os.WriteFile(filepath.Join(w.there, log), []byte("ONE\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.grow(log, "two\n")
	sync(none)
	w.copied(log, "ONE\ntwo\n") // only its end was sent
	p.Forget()
	sync(none)
	w.copied(log, "one\ntwo\n") // the copy was another
	if err := os.Remove(filepath.Join(w.here, state)); err != nil {
		t.Fatal(err)
	}
	both := both[:1]
	if err := p.Sync(context.Background(), both, func(path string) bool { return path == state }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(w.there, state)); err == nil {
		t.Error("what is gone has a copy")
	}
	w.copied(log, "one\ntwo\n")
}

// TestALogThatWasCutIsCopiedAnew, whatever the copy has after the cut.
func TestALogThatWasCutIsCopiedAnew(t *testing.T) {
	w := newWorld(t)
	w.write(log, "one\ntwo\nthree\n")
	if err := NewPeer(w.client, w.here, "jobs/j", 3).Sync(context.Background(), both, none); err != nil {
		t.Fatal(err)
	}
	w.write(log, "one\nTWO\n")
	if err := NewPeer(w.client, w.here, "jobs/j", 3).Sync(context.Background(), both, none); err != nil {
		t.Fatal(err)
	}
	w.copied(log, "one\nTWO\n")
}

// TestWhoDoesNotLeadChangesNothing: a driver that led in an earlier term is refused.
func TestWhoDoesNotLeadChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.write(log, "one\n")
	w.term = 4
	err := NewPeer(w.client, w.here, "jobs/j", 3).Sync(context.Background(), both, none)
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("in term 4 a driver of term 3: %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.there, log)); err == nil {
		t.Error("its files are there")
	}
}

// TestPathsThatLeadElsewhere are refused, for reading and for writing.
func TestPathsThatLeadElsewhere(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"", "..", "../x", "jobs/../../x", "/etc/passwd", "trust/tls.key", "jobs//x",
		"jobs/./x"} {
		_, err := w.client.Have(context.Background(), &wire.HaveRequest{Dir: path})
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("Have %q: %v", path, err)
		}
		stream, err := w.client.Keep(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.Send(&wire.FileChange{Path: path, Begin: true, Data: []byte("x"), Term: 3}) // the reply says why not
		if _, err := stream.CloseAndRecv(); err == nil {
			t.Errorf("Keep %q is taken", path)
		}
		if err := Bring(context.Background(), w.client, w.here, path); err == nil {
			t.Errorf("Bring %q is answered", path)
		}
	}
}

// TestCachesAreNotShared: they are made again where they are needed.
func TestCachesAreNotShared(t *testing.T) {
	w := newWorld(t)
	for _, dir := range []string{"cache", "out"} {
		if err := os.MkdirAll(filepath.Join(w.there, "jobs/j", dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.there, "jobs/j", dir, "f"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reply, err := w.client.Have(context.Background(), &wire.HaveRequest{Dir: "jobs"})
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(reply.Files); strings.Contains(text, "cache") || !strings.Contains(text, "jobs/j/out/f") {
		t.Errorf("it has %s", text)
	}
}
