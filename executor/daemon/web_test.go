package daemon

import (
	"context"
	"crypto/sha256"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/wire"
)

// TestWhoMayReadOfAnExecutor: whom the driver lets, and, while it does not answer, whom it has let a while ago.
func TestWhoMayReadOfAnExecutor(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var down error
	good := "good"
	r := &readers{now: func() time.Time { return now }, could: map[[sha256.Size]byte]time.Time{},
		ask: func(_ context.Context, req *wire.ReadsRequest) (*wire.ReadsReply, error) {
			return &wire.ReadsReply{May: req.Token == good}, down
		}}
	check := func(what, token string, want int) {
		t.Helper()
		req, err := http.NewRequest("GET", "http://127.0.0.1/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		if code, why := r.refusal(req); code != want || (why == "") != (want == 0) {
			t.Errorf("%s: %d %q, want %d", what, code, why, want)
		}
	}
	down = status.Error(codes.Unavailable, "it is down")
	check("before it was ever let", "good", http.StatusServiceUnavailable)
	down = nil
	check("without anything", "", http.StatusUnauthorized)
	check("with another token", "other", http.StatusUnauthorized)
	check("with a read token", "good", 0)
	down = status.Error(codes.Unavailable, "it is down")
	check("while the driver is down", "good", 0)
	check("another while the driver is down", "other", http.StatusServiceUnavailable)
	now = now.Add(readsFor + time.Second)
	check("long after it was let", "good", http.StatusServiceUnavailable)
	down, good = nil, "good"
	check("again", "good", 0)
	down = status.Error(codes.Unavailable, "it is down")
	req, err := http.NewRequest("GET", "http://127.0.0.1"+alive, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "bearer another")
	if code, why := r.refusal(req); code != 0 {
		t.Errorf("whether it lives is not said while the driver is down: %d %s", code, why)
	}
	down = nil
	if code, _ := r.refusal(req); code != http.StatusUnauthorized {
		t.Errorf("whether it lives is said to anyone: %d", code)
	}
	good = ""
	check("when it was revoked", "good", http.StatusUnauthorized)
	down = status.Error(codes.Unavailable, "it is down")
	check("when it was revoked, and the driver is down", "good", http.StatusServiceUnavailable)
	down = status.Error(codes.Unimplemented, "unknown method Reads")
	check("at a driver of the version before", "good", http.StatusServiceUnavailable)
}
