package host

import (
	"context"
	"errors"
	"testing"

	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/rdd"
)

// TestAClusterThatCannotBeMadeIsAnError, and not a panic.
func TestAClusterThatCannotBeMadeIsAnError(t *testing.T) {
	want := errors.New("the plan does not build again")
	program := Program{Name: "once", Args: []byte("{}"), Graph: rdd.NewGraph(),
		Again: func() (executor.Program, error) { return nil, want }}
	_, err := Run(context.Background(), Config{DataDir: t.TempDir(), Executors: 1}, wire.Process{}, program,
		func(context.Context, *rdd.Session) (string, error) { t.Error("the loop runs"); return "", nil })
	if !errors.Is(err, want) {
		t.Errorf("%v", err)
	}
}
