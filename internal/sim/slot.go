package sim

import (
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
)

// slot is the timeline of one slot of a run: its tasks are folded in turn, a
// chunk each, and every chunk takes the time that the pace law says.
type slot struct {
	tasks []slotTask
	next  int       // task whose chunk comes next
	left  int       // tasks with rows left
	at    plan.Time // when the next chunk begins
	began plan.Time
	spend func(at plan.Time, rows int64) plan.Time
}

type slotTask struct {
	word  int // number of the task within the run
	chunk int64
	left  int64
	done  int64
}

func newSlot(words []int, rows func(word int) (split, limit int64), now plan.Time,
	spend func(plan.Time, int64) plan.Time) *slot {
	s := &slot{at: now, began: now, spend: spend}
	for _, w := range words {
		n, limit := rows(w)
		s.tasks = append(s.tasks, slotTask{word: w, chunk: runner.ChunkRows(n), left: limit})
		if limit > 0 {
			s.left++
		}
	}
	return s
}

// step folds the next chunk if it ends by `until`; finished is the task whose
// last chunk it was, −1 for none.
func (s *slot) step(until plan.Time) (ok bool, finished int) {
	if s.left == 0 {
		return false, -1
	}
	for s.tasks[s.next].left == 0 {
		s.next = (s.next + 1) % len(s.tasks)
	}
	t := &s.tasks[s.next]
	n := min(t.chunk, t.left)
	end := s.spend(s.at, n)
	if end > until {
		return false, -1
	}
	s.at = end
	t.left -= n
	t.done += n
	s.next = (s.next + 1) % len(s.tasks)
	if t.left == 0 {
		s.left--
		return true, t.word
	}
	return true, -1
}

const forever = plan.Time(1<<63 - 1)

// split returns the split that it folds; -1 is several.
func (s *slot) split(of *wire.StartStep) int {
	if len(s.tasks) != 1 {
		return -1
	}
	return int(of.Tasks[s.tasks[0].word].Split)
}

// advance folds all chunks that end by a time.
func (s *slot) advance(until plan.Time) {
	for ok := true; ok; {
		ok, _ = s.step(until)
	}
}

// nextFinish returns when the next task has folded its last chunk.
func (s *slot) nextFinish() (at plan.Time, ok bool) {
	c := *s
	c.tasks = append([]slotTask(nil), s.tasks...)
	for {
		more, finished := c.step(forever)
		if finished >= 0 {
			return c.at, true
		}
		if !more {
			return 0, false
		}
	}
}

// stop folds the chunk in hand to its end and returns when the slot ended.
func (s *slot) stop(now plan.Time) plan.Time {
	s.advance(now)
	if s.left > 0 && s.at < now {
		s.step(forever)
	}
	s.left = 0
	return s.at
}
