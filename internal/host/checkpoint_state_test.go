package host_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/rdd"
)

// checkpointFiles are those of a directory, oldest first.
func checkpointFiles(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, "checkpoint-*"))
	return files
}

// loopFrom runs a loop of n turns, or what is left of them.
func loopFrom[T any](t *testing.T, cfg volley.Config, n int, turn func(*T)) (turns int, err error) {
	_, err = volley.Run(context.Background(), cfg, "loop", struct{}{}, func(*rdd.Graph, struct{}) int { return 0 },
		func(ctx context.Context, s *rdd.Session, _ struct{}, _ int) (string, error) {
			var state T
			for range rdd.Iterations(ctx, s, &state, n) {
				turns++
				turn(&state)
			}
			return "end", s.Err()
		})
	return turns, err
}

// TestACheckpointOfAnotherVersionIsRefusedByName, not as one that is damaged.
func TestACheckpointOfAnotherVersionIsRefusedByName(t *testing.T) {
	cfg := testConfig(t)
	cfg.Checkpoints = t.TempDir()
	if _, err := loopFrom(t, cfg, 1, func(n *int) { *n = 7 }); err != nil {
		t.Fatal(err)
	}
	file := checkpointFiles(cfg.Checkpoints)[0]
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	body := bytes.Replace(raw[:bytes.IndexByte(raw, '\n')+1], []byte(`{"version":`), []byte(`{"version":1`), 1)
	if err := os.WriteFile(file, fmt.Appendf(body, "%s\n", plan.DigestOf(body)), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Resume = true
	turns, err := loopFrom(t, cfg, 2, func(n *int) {})
	if err == nil || turns > 0 || !strings.Contains(err.Error(), "version") ||
		!strings.Contains(err.Error(), "checkpoint-") {
		t.Errorf("%d turns, %v", turns, err)
	}
}

// TestADamagedCheckpointIsNotOneOfTwo: beside the last, one that is whole is kept, and the damaged one between them.
func TestADamagedCheckpointIsNotOneOfTwo(t *testing.T) {
	cfg := testConfig(t)
	cfg.Checkpoints, cfg.CheckpointEach = t.TempDir(), 1
	_, err := loopFrom(t, cfg, 6, func(n *int) {
		*n++
		all := checkpointFiles(cfg.Checkpoints)
		switch {
		case *n == 5: // four are written, and two of them are kept
			last := all[max(0, len(all)-1)]
			raw, err := os.ReadFile(last)
			if err == nil {
				err = os.WriteFile(last, append([]byte{raw[0] ^ 1}, raw[1:]...), 0o600)
			}
			if err != nil || len(all) != 2 {
				t.Errorf("%d checkpoints, %v", len(all), err)
			}
		case *n == 6 && len(all) != 3:
			t.Errorf("%d checkpoints are kept: the one before the damaged one is not among them", len(all))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if all := checkpointFiles(cfg.Checkpoints); len(all) != 2 || filepath.Base(all[1]) != "checkpoint-000000006" {
		t.Errorf("%v are kept in the end", all)
	}
}

// TestAStateOfAnotherShapeIsNotTakenForIt: fields that have changed places come back
// by their names, or the checkpoint is refused by the type's.
func TestAStateOfAnotherShapeIsNotTakenForIt(t *testing.T) {
	type before struct {
		Least, Sum float64
		Count      int64
	}
	type progress struct {
		Sum   float64
		Count int64
		Least float64
	}
	cfg := testConfig(t)
	cfg.Checkpoints = t.TempDir()
	if _, err := loopFrom(t, cfg, 1, func(p *before) { *p = before{Least: 1, Sum: 2, Count: 3} }); err != nil {
		t.Fatal(err)
	}
	cfg.Resume = true
	turns, err := loopFrom(t, cfg, 2, func(p *progress) {
		if *p != (progress{Sum: 2, Count: 3, Least: 1}) {
			t.Errorf("it goes on as %+v", *p)
		}
	})
	if err == nil && turns != 1 || err != nil && !strings.Contains(err.Error(), "progress") {
		t.Errorf("%d turns, %v", turns, err)
	}
}

// TestALoopThatFailedIsNoSuccess, though the program does not ask for Err.
func TestALoopThatFailedIsNoSuccess(t *testing.T) {
	turns := 0
	_, err := volley.Run(context.Background(), testConfig(t), "unasked", struct{}{},
		func(*rdd.Graph, struct{}) int { return 0 },
		func(ctx context.Context, s *rdd.Session, _ struct{}, _ int) (string, error) {
			var state func()
			for range rdd.Iterations(ctx, s, &state, 3) {
				turns++
			}
			return "end", nil
		})
	if err == nil {
		t.Errorf("a state that no checkpoint can hold ended the loop after %d turns of 3, and the run is a success",
			turns)
	}
}
