package objects

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// stalled is how long a connection to a store may make no progress, and patience how long what fails is tried again, in
// nanoseconds; tests change them.
var stalled, patience atomic.Int64

func init() {
	stalled.Store(int64(time.Minute))
	patience.Store(int64(2 * time.Minute))
}

// transport is that of all connections to stores: none of them waits forever.
var transport = sync.OnceValue(func() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	hurry(t)
	return t
})

// hurry has the connections of a transport give up where they make no progress.
func hurry(t *http.Transport) {
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return patient{c}, nil
	}
	t.MaxIdleConnsPerHost, t.MaxIdleConns = 64, 256
	t.DisableCompression = true // an object's bytes as they are
}

// patient is a connection that gives up where it makes no progress. A Read may wait for as long as writes go on: that
// of an answer begins with the request.
type patient struct{ net.Conn }

func (c patient) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(time.Duration(stalled.Load()))); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c patient) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(time.Duration(stalled.Load()))); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
