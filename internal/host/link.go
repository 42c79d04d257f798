package host

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/pace"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/storage/pack"
	"github.com/volley-engine/volley/storage/shuffle"
)

// linked returns peers as an executor reaches them over the link that a law gives
// it: what they send arrives no sooner than the shared link allows.
func linked(peers executor.Peers, law *pace.Law, executor int) executor.Peers {
	if law == nil {
		return peers
	}
	return &link{Peers: peers, law: law, executor: executor}
}

type link struct {
	executor.Peers
	law      *pace.Law
	executor int
	mu       sync.Mutex
	free     time.Time // when it has sent the bytes accepted so far
}

// FetchSplit writes the bytes of a split that a peer holds.
func (l *link) FetchSplit(ctx context.Context, from executor.Peer, key pack.SplitKey, w io.Writer) error {
	return l.Peers.FetchSplit(ctx, from, key, linkWriter{l, w})
}

// OpenMapOutput reads partitions of a map task's output that a peer keeps.
func (l *link) OpenMapOutput(ctx context.Context, from executor.Peer, key shuffle.Key,
	span shuffle.Span) (io.ReadCloser, error) {
	r, err := l.Peers.OpenMapOutput(ctx, from, key, span)
	if err != nil {
		return nil, err
	}
	return linkReader{r, l}, nil
}

// take waits until some bytes have passed the link.
func (l *link) take(bytes int) {
	l.mu.Lock()
	if now := time.Now(); l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(l.law.Send(l.executor, 0, int64(bytes), 0))
	at := l.free
	l.mu.Unlock()
	time.Sleep(time.Until(at))
}

type linkWriter struct {
	l *link
	w io.Writer
}

func (w linkWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		part := p[:min(len(p), linkPart)]
		w.l.take(len(part))
		var k int
		k, err = w.w.Write(part)
		n, p = n+k, p[len(part):]
	}
	return n, err
}

// linkPart is how many bytes take their turn on a link at a time.
const linkPart = 64 << 10

type linkReader struct {
	io.ReadCloser
	l *link
}

func (r linkReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p[:min(len(p), linkPart)])
	r.l.take(n)
	return n, err
}

// lawPacer returns the pacer of a slot under a law, nil where slots run at their own speed.
func lawPacer(law *pace.Law, began time.Time, executor, slots int, l *limits) func(slot int) runner.Pacer {
	if !law.Paces() {
		return nil
	}
	return func(slot int) runner.Pacer { return newPacer(law, began, executor, slot, slots, l) }
}
