package integration

import (
	"strings"
	"testing"
)

// TestAJobIsResumed: one that was cancelled half-way goes on from its checkpoint, under its
// id, to the bytes of an undisturbed run; its log has each step once.
func TestAJobIsResumed(t *testing.T) {
	t.Parallel()
	data := generated(t)
	c := newCluster(t)
	c.join("e1", "--pace", "rate:100000")
	id := c.submit(jobFlags(data)...)
	c.atStep(id, 3)
	if _, errs, code := volley(t, "cancel", id, "--driver", c.Addr); code != 0 {
		t.Fatal(errs)
	}
	stopped := c.await(id, "the cancellation", func(j job) bool { return j.State == "cancelled" })
	if stopped.Step < 3 || stopped.Step >= 40 {
		t.Fatalf("it was cancelled at step %d", stopped.Step)
	}
	c.join("e2")
	if _, errs, code := volley(t, "job", "resume", id, "--driver", c.Addr); code != 0 {
		t.Fatal(errs)
	}
	c.ended(id)
	c.gives(id, undisturbed(t, jobFlags(data)...))
	c.verified(id, true)
	if _, errs, code := volley(t, "job", "resume", id, "--driver", c.Addr); code != 2 ||
		!strings.Contains(errs, "is done") {
		t.Errorf("one that is done: exit %d: %s", code, errs)
	}
}
