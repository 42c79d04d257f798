package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/disk"
)

// keptJob makes a job's directory with a log and checkpoints of processes, each after the whole log; of the names that
// are damaged a byte is another.
func keptJob(t *testing.T, log string, processes map[string]int, damaged ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	sum := sha256.Sum256([]byte(log))
	files := map[string][]byte{driver.EventsName: []byte(log)}
	for name, process := range processes {
		files[filepath.Join(checkpointsDir, name)] = disk.Seal(fmt.Appendf(nil, `{"life":%d,"log":{"bytes":%d,"sha256":%q}}`+
			"\n", process, len(log), hex.EncodeToString(sum[:])))
	}
	for _, name := range damaged {
		files[name][1] ^= 1
	}
	if err := os.MkdirAll(filepath.Join(dir, checkpointsDir), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, raw := range files {
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestTwoDamagedCopiesMakeAWholeOne: one driver has the checkpoint, the other the log.
func TestTwoDamagedCopiesMakeAWholeOne(t *testing.T) {
	const one = "checkpoint-000000001"
	at := Place{Process: 1, Checkpoint: one}
	for _, its := range []bool{false, true} { // which of the two is this driver's
		here := keptJob(t, "the log\n", map[string]int{one: 1}, driver.EventsName)
		there := keptJob(t, "the log\n", map[string]int{one: 1}, filepath.Join(checkpointsDir, one))
		if its {
			here, there = there, here
		}
		if goesOnFrom(here, at) {
			t.Error("a damaged copy is gone on from")
		}
		if err := takeWhole(here, there, at); err != nil || !goesOnFrom(here, at) {
			t.Errorf("this driver has the log: %v: %v", its, err)
		}
	}
}

// TestAnotherPastIsNotGoneOnFrom: what a process before has written beyond what was committed is removed, though its
// name is newer; and nothing is where there is nothing to go on from.
func TestAnotherPastIsNotGoneOnFrom(t *testing.T) {
	const two, nine = "checkpoint-000000002", "checkpoint-000000009"
	dir := keptJob(t, "the log\n", map[string]int{two: 2, nine: 1})
	if goesOnFrom(dir, Place{Process: 3, Checkpoint: two}) || len(checkpointsIn(dir)) != 2 {
		t.Errorf("where nothing is to be gone on from there are %v", checkpointsIn(dir))
	}
	if !goesOnFrom(dir, Place{Process: 2, Checkpoint: two}) || len(checkpointsIn(dir)) != 1 {
		t.Errorf("beside what is gone on from there are %v", checkpointsIn(dir))
	}
}
