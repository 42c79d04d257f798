package flight

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// stalls is how long a stream may be without any progress.
const stalls = time.Minute

// looks is how often a stream is looked at while it may be without progress.
const looks = 12

// watched carries work out, and gives it up once it has not moved for a while, as the other end does not read or does
// not send, or once it may not go on. Its stream ends with the call, and work that is given up finds it closed; over is
// called when the work has ended.
func watched(ctx context.Context, patience time.Duration, over func(), may func(context.Context) error,
	work func(ctx context.Context, moved func()) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var moves atomic.Int64
	done := make(chan error, 1)
	go func() {
		defer over() // which may be after the call has ended
		done <- work(ctx, func() { moves.Add(1) })
	}()
	look := time.NewTicker(patience / looks)
	defer look.Stop()
	seen, still := int64(0), 0
	for {
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-look.C:
		}
		if err := may(ctx); err != nil {
			return err
		}
		if now := moves.Load(); now != seen {
			seen, still = now, 0
		} else if still++; still >= looks {
			return status.Errorf(codes.DeadlineExceeded, "the other end has taken or sent nothing for %v", patience)
		}
	}
}
