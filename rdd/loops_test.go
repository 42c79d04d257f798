package rdd_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/rdd"
)

// errStopped is the error by which a loop's body ends a run.
var errStopped = errors.New("the body has had enough")

// twoLoops is a program that counts in one loop and then in another, and what
// happened to it.
type twoLoops struct {
	failIn, failAt int // loop and turn whose body returns an error; 0 is none
	first, second  int
	begun          [3]int // number of each loop's first turn; 0 where it had none
}

// turn notes a turn and reports whether its body is to fail.
func (p *twoLoops) turn(loop, number int) error {
	if p.begun[loop] == 0 {
		p.begun[loop] = number
	}
	if p.failIn == loop && p.failAt == number {
		return errStopped
	}
	return nil
}

func (p *twoLoops) loops(ctx context.Context, s *rdd.Session) error {
	for it := range rdd.Iterations(ctx, s, &p.first, 3) {
		if err := p.turn(1, it.Number); err != nil {
			return err
		}
		p.first++
	}
	if s.Err() != nil || p.first != 3 {
		return fmt.Errorf("the first loop came to %d: %w", p.first, errors.Join(s.Err(), errUnexpected))
	}
	for it := range rdd.Iterations(ctx, s, &p.second, 6) {
		if err := p.turn(2, it.Number); err != nil {
			return err
		}
		p.second += 100
	}
	return s.Err()
}

var errUnexpected = errors.New("that is not what it comes to")

// run runs the program with the checkpoints of a directory.
func (p *twoLoops) run(t *testing.T, checkpoints string, resume bool) error {
	cfg := testConfig(t)
	cfg.Executors, cfg.Checkpoints, cfg.CheckpointEach, cfg.Resume = 1, checkpoints, 1, resume
	_, err := volley.Run(context.Background(), cfg, "two loops", textArgs{},
		func(g *rdd.Graph, _ textArgs) rdd.Action[int64] {
			return rdd.Count(rdd.Range(g, 0, 3, 1))
		}, func(ctx context.Context, s *rdd.Session, _ textArgs, _ rdd.Action[int64]) (string, error) {
			return "end", p.loops(ctx, s)
		})
	return err
}

// TestEachLoopGoesOnFromItsOwnState: wherever a program with two loops is
// stopped, what it comes to when it is resumed is what it would have come to.
func TestEachLoopGoesOnFromItsOwnState(t *testing.T) {
	for _, at := range []struct{ loop, turn int }{{1, 1}, {1, 3}, {2, 1}, {2, 2}, {2, 5}} {
		t.Run(fmt.Sprintf("loop %d turn %d", at.loop, at.turn), func(t *testing.T) {
			dir := t.TempDir()
			if err := (&twoLoops{failIn: at.loop, failAt: at.turn}).run(t, dir, false); !errors.Is(err, errStopped) {
				t.Fatal(err)
			}
			p := &twoLoops{}
			if err := p.run(t, dir, true); err != nil || p.first != 3 || p.second != 600 {
				t.Errorf("resumed, the loops come to %d and %d, want 3 and 600: %v", p.first, p.second, err)
			}
			if p.begun[at.loop] != at.turn {
				t.Errorf("loop %d goes on with turn %d, want %d", at.loop, p.begun[at.loop], at.turn)
			}
		})
	}
}

// TestALoopThatHasEndedIsNotRunAgain: a program that is resumed in its second loop has
// its first loop's last state, and none of its turns.
func TestALoopThatHasEndedIsNotRunAgain(t *testing.T) {
	dir := t.TempDir()
	if err := (&twoLoops{failIn: 2, failAt: 4}).run(t, dir, false); !errors.Is(err, errStopped) {
		t.Fatal(err)
	}
	p := &twoLoops{}
	if err := p.run(t, dir, true); err != nil {
		t.Fatal(err)
	}
	if p.begun[1] != 0 {
		t.Errorf("the first loop, which had ended, runs again from turn %d", p.begun[1])
	}
}

// TestAProgramThatHasEndedIsResumed: both loops have their last states, and no turn
// is run.
func TestAProgramThatHasEndedIsResumed(t *testing.T) {
	dir := t.TempDir()
	if err := (&twoLoops{}).run(t, dir, false); err != nil {
		t.Fatal(err)
	}
	p := &twoLoops{}
	if err := p.run(t, dir, true); err != nil || p.second != 600 {
		t.Errorf("resumed, the loops come to %d and %d, want 3 and 600: %v", p.first, p.second, err)
	}
	if p.begun != [3]int{} {
		t.Errorf("turns are run again: %v", p.begun)
	}
}

// TestATurnThatFailedIsNotCommitted: the run that is resumed does that turn again.
func TestATurnThatFailedIsNotCommitted(t *testing.T) {
	dir := t.TempDir()
	turns := func(resume bool, fail int) (n int, err error) {
		cfg := testConfig(t)
		cfg.Executors, cfg.Checkpoints, cfg.CheckpointEach, cfg.Resume = 1, dir, 1, resume
		_, err = volley.Run(context.Background(), cfg, "one loop", textArgs{},
			func(g *rdd.Graph, _ textArgs) rdd.Action[int64] {
				return rdd.Count(rdd.Range(g, 0, 3, 1))
			}, func(ctx context.Context, s *rdd.Session, _ textArgs, _ rdd.Action[int64]) (string, error) {
				for it := range rdd.Iterations(ctx, s, &n, 5) {
					if it.Number == fail {
						return "", errStopped
					}
					n++
				}
				return "end", s.Err()
			})
		return n, err
	}
	if _, err := turns(false, 3); !errors.Is(err, errStopped) {
		t.Fatal(err)
	}
	if n, err := turns(true, 0); err != nil || n != 5 {
		t.Errorf("five turns come to %d: %v", n, err)
	}
}

// TestPacksKeepTheirNumbers: a program that is resumed in its second loop opens the pack of
// the first one too, so that its event log is that of a run that was not interrupted.
func TestPacksKeepTheirNumbers(t *testing.T) {
	cfg := testConfig(t)
	cfg.Checkpoints, cfg.CheckpointEach, cfg.EventLog = t.TempDir(), 1, filepath.Join(t.TempDir(), "events.jsonl")
	sums := func(g *rdd.Graph, _ textArgs) (plans [2]rdd.Step[float64, float64]) {
		for i := range plans {
			rows := rdd.Pack(rdd.Map(rdd.Range(g, int64(i), 40, 4), func(n int64) float64 { return float64(n) }),
				rdd.Splits(2))
			plans[i] = rdd.Aggregate(rows, rdd.Aggregator[float64, float64, float64]{
				Zero: func(float64) float64 { return 0 }, Add: func(_, sum, row float64) float64 { return sum + row },
				Merge: func(a, b float64) float64 { return a + b }},
				rdd.Aggressive(1))
		}
		return plans
	}
	run := func(failAt int) error {
		_, err := volley.Run(context.Background(), cfg, "two packs", textArgs{}, sums,
			func(ctx context.Context, s *rdd.Session, _ textArgs, plans [2]rdd.Step[float64, float64]) (string, error) {
				turns := 0
				for i := range plans {
					state := 0.0
					for range rdd.Iterations(ctx, s, &state, 3) {
						if turns++; turns == failAt {
							return "", errStopped
						}
						sum, err := plans[i].Run(ctx, s, state)
						if err != nil {
							return "", err
						}
						state += sum
					}
				}
				return "end", s.Err()
			})
		return err
	}
	if err := run(6); !errors.Is(err, errStopped) {
		t.Fatal(err)
	}
	cfg.Resume = true
	if err := run(0); err != nil {
		t.Fatal(err)
	}
	log, err := audit.Read(cfg.EventLog)
	if err != nil {
		t.Fatal(err)
	}
	if r := audit.Verify(log); len(r.Violations) > 0 {
		t.Errorf("%v", r.Violations)
	}
}
