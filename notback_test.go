package volley

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/rdd"
)

// TestAFunctionThatDoesNotReturnHoldsNoProgram: Run returns, by the interrupt or by --task-timeout, while a function of
// the program's is still at it.
func TestAFunctionThatDoesNotReturnHoldsNoProgram(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	for want, flags := range map[string][]string{"canceled": nil, "task-timeout": {"--task-timeout", "1s"}} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			cfg, err := ParseConfig(append(flags, "--executors", "2", "--data-dir", t.TempDir())...)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				ended <- runEndless(ctx, cfg, func() {
					if flags == nil {
						cancel()
					}
					<-over
				})
			}()
			select {
			case err := <-ended:
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("it ends by %v", err)
				}
			case <-time.After(time.Minute):
				t.Error("it goes on")
			}
		})
	}
}

// runEndless counts rows, of which one does something.
func runEndless(ctx context.Context, cfg Config, do func()) error {
	_, err := Run(ctx, cfg, "endless", struct{}{}, func(g *rdd.Graph, _ struct{}) rdd.Action[int64] {
		return rdd.Count(rdd.Filter(rdd.Range(g, 0, 100, 4), func(i int64) bool {
			if i == 50 {
				do()
			}
			return true
		}))
	}, func(ctx context.Context, s *rdd.Session, _ struct{}, p rdd.Action[int64]) (string, error) {
		_, err := p.Run(ctx, s)
		return "", err
	})
	return err
}
