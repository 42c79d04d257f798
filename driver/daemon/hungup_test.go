package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/internal/wire"
)

// hangingUp is the driver's end of a connection whose other end says what it has to say and
// hangs up: nothing can be sent to it from the second message on, though it is still read from.
type hangingUp struct {
	grpc.ServerStream
	ctx      context.Context
	sent     int
	welcomed chan struct{}
	gone     chan struct{} // closed by the first message that finds nobody
	said     []*wire.FromJob
}

func (h *hangingUp) Context() context.Context { return h.ctx }

func (h *hangingUp) Send(*wire.ForJob) error {
	if h.sent++; h.sent == 1 {
		close(h.welcomed)
		return nil
	}
	close(h.gone) // nothing is sent after a failure
	return status.Error(codes.Unavailable, "transport is closing")
}

func (h *hangingUp) Recv() (*wire.FromJob, error) {
	if len(h.said) == 0 {
		return nil, status.Error(codes.Canceled, "it has hung up")
	}
	m := h.said[0]
	if h.said = h.said[1:]; m.GetHello() == nil {
		<-h.gone
	}
	return m, nil
}

// TestAProcessThatHangsUpIsNotKilled: what cannot be sent to it any more is no sign that it does
// not read, and what it said last is taken in. Before, a job whose process was about to say
// that it is done was killed and done again.
func TestAProcessThatHangsUpIsNotKilled(t *testing.T) {
	d, dir := scripted(t, "read x < LEFT/end; echo $$ > LEFT/ended")
	if err := syscall.Mkfifo(filepath.Join(dir, "end"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := submitted(t, d)
	awaitJob(t, w, "process", func(i *wire.JobInfo) bool { return i.State == JobRunning })
	w.mu.Lock()
	pid, incarnation := w.process.Pid, w.incarnation
	w.mu.Unlock()
	ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs("authorization", "Bearer "+w.token))
	ctx = peer.NewContext(ctx, &peer.Peer{Addr: d.door.Addr(), AuthInfo: wire.SameUser{}})
	h := &hangingUp{ctx: ctx, welcomed: make(chan struct{}), gone: make(chan struct{}), said: []*wire.FromJob{
		{Body: &wire.FromJob_Hello{Hello: &wire.Hello{Version: version.Oldest, Name: w.info.Id,
			Incarnation: incarnation}}},
		{Body: &wire.FromJob_Commit{Commit: &wire.Commit{Step: 7}}},
	}}
	served := make(chan error, 1)
	go func() { served <- d.Work(h) }()
	<-h.welcomed
	w.tell(&wire.ForJob{Body: &wire.ForJob_Left{Left: &wire.CloseJob{Job: "e"}}})
	<-served
	if i, _ := w.snapshot(); i.Step != 7 {
		t.Errorf("the last step is %d, want 7", i.Step)
	}
	end, err := os.OpenFile(filepath.Join(dir, "end"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	_, _ = end.WriteString("\n")
	awaitJob(t, w, "end of the process", func(i *wire.JobInfo) bool { return i.Restarts > 0 })
	if ended, _ := os.ReadFile(filepath.Join(dir, "ended")); strings.TrimSpace(string(ended)) != fmt.Sprint(pid) {
		t.Error("the process was killed")
	}
}
