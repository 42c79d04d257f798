package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/objects"
)

const checkpointVersion = 5

// checkpoint is everything that a job continues from. Its file ends in a line
// with the digest of what is before it, so that a torn or damaged one is
// noticed and the previous one is used.
type checkpoint struct {
	Version   int            `json:"version"`
	Plan      plan.Digest    `json:"plan"`
	Job       string         `json:"job"`       // what the run must agree on
	Packs     []packMark     `json:"packs"`     // in the order in which they were opened
	Sequence  int            `json:"sequence"`  // counts the checkpoints of the job
	Loops     []rdd.LoopMark `json:"loops"`     // of the program, in the order in which they began
	Life      uint32         `json:"life"`      // of the process that wrote it
	Log       driver.LogMark `json:"log"`       // of the event log, up to this step
	Executors int            `json:"executors"` // that the job had
}

// packMark is a pack, and the job's progress in it.
type packMark struct {
	Node   int             `json:"node"`
	Splits []plan.Digest   `json:"splits"`
	Ledger driver.Restored `json:"ledger"`
	Maker  plan.ExecutorID `json:"maker,omitempty"` // executor that has it in its cache
}

// pack returns what the checkpoint holds of a node's pack; nil where it has none.
func (c *checkpoint) pack(node int) *packMark {
	if c == nil {
		return nil
	}
	for i := range c.Packs {
		if c.Packs[i].Node == node {
			return &c.Packs[i]
		}
	}
	return nil
}

// nodesBefore returns the nodes of the packs that were opened before a node's.
func (c *checkpoint) nodesBefore(node int) (all []int) {
	if c == nil {
		return nil
	}
	for _, m := range c.Packs {
		if m.Node == node {
			break
		}
		all = append(all, m.Node)
	}
	return all
}

// keepCheckpoints is how many checkpoints are kept.
const keepCheckpoints = 2

// writeCheckpoint writes and syncs a checkpoint.
func writeCheckpoint(dir string, c *checkpoint) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return checkpointError(dir, err)
	}
	raw = append(raw, '\n')
	raw = disk.Seal(raw)
	name := files.Join(dir, fmt.Sprintf("checkpoint-%09d", c.Sequence))
	if objects.Is(dir) {
		if err := objects.Put(context.Background(), name, raw); err != nil {
			return err
		}
		dropCheckpoints(dir, name)
		return nil
	}
	if err := disk.MkdirAll(dir, 0o755); err != nil {
		return checkpointError(dir, err)
	}
	if err := disk.WriteSynced(name+".part", raw, 0o644); err != nil {
		disk.Remove(name + ".part")
		return checkpointError(dir, err)
	}
	err = disk.Rename(name+".part", name)
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err == nil {
			err = disk.SyncDir(d)
		}
	}
	if err != nil {
		return checkpointError(dir, err)
	}
	dropCheckpoints(dir, name)
	return nil
}

// dropCheckpoints removes all checkpoints but the newest that are whole, one of which has just been written, and what
// is damaged among the older ones.
func dropCheckpoints(dir, written string) {
	whole := 0
	all, _ := checkpointFiles(dir) // what is not removed now is removed the next time
	for _, file := range slices.Backward(all) {
		switch {
		case whole == keepCheckpoints:
			removeCheckpoint(file)
		case filepath.Base(file) == filepath.Base(written):
			whole++
		default:
			if _, err := unsealed(file); err == nil {
				whole++
			}
		}
	}
}

func removeCheckpoint(file string) {
	if objects.Is(file) {
		_ = objects.Remove(context.Background(), file) // the next time
		return
	}
	disk.Remove(file)
}

func checkpointError(dir string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fault.New(fault.NoResources, "write a checkpoint to", dir, err)
}

// checkpointFiles returns the finished checkpoints, oldest first.
func checkpointFiles(dir string) (all []string, err error) {
	if objects.Is(dir) {
		err = objects.List(context.Background(), files.Join(dir, "checkpoint-"), func(i objects.Info) bool {
			all = append(all, i.Name)
			return true
		})
		return all, err
	}
	all = disk.Glob(dir, "checkpoint-*")
	return slices.DeleteFunc(all, func(f string) bool { return strings.HasSuffix(f, ".part") }), nil
}

// latestCheckpoint returns the newest checkpoint that is whole; none is no
// error, one of another plan or of a run with other options is.
func latestCheckpoint(dir string, p plan.Digest, job string) (*checkpoint, error) {
	all, err := checkpointFiles(dir)
	if err != nil {
		return nil, err
	}
	for _, file := range slices.Backward(all) {
		c, err := readCheckpoint(file)
		if damaged(file, err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if c.Plan != p || c.Job != job {
			return nil, fault.Newf(fault.PlanMismatch, "resume from", file,
				"it was written by a run with other options").
				WithHint("resume with the options of the first run, by the same build; or begin anew")
		}
		return c, nil
	}
	if len(all) > 0 {
		return nil, fault.Newf(fault.Corrupt, "resume from", dir, "no checkpoint in it is whole")
	}
	return nil, nil
}

// damaged reports whether a checkpoint is passed over, for the one before it. A store that does not answer, or refuses,
// has it all the same.
func damaged(file string, err error) bool {
	switch {
	case err == nil || fault.Is(err, fault.PlanMismatch):
		return false
	case objects.Is(file):
		return fault.Is(err, fault.Corrupt) || errors.Is(err, fs.ErrNotExist)
	}
	return true
}

// unsealed returns what a checkpoint's file has before its digest, which it holds it against.
func unsealed(path string) ([]byte, error) {
	raw, err := files.ReadFile(path)
	if err != nil {
		return nil, err
	}
	body, whole := disk.Unseal(raw)
	if !whole {
		return nil, fault.Newf(fault.Corrupt, "read the checkpoint", path, "its digest does not match")
	}
	return body, nil
}

func readCheckpoint(path string) (*checkpoint, error) {
	body, err := unsealed(path)
	if err != nil {
		return nil, err
	}
	c := &checkpoint{}
	if err := json.Unmarshal(body, c); err != nil {
		return nil, fault.New(fault.Corrupt, "read the checkpoint", path, err)
	}
	if c.Version != checkpointVersion {
		return nil, fault.Newf(fault.PlanMismatch, "read the checkpoint", path,
			"version %d, this program reads version %d", c.Version, checkpointVersion).
			WithHint("resume with the program that wrote it, or remove the directory and begin again")
	}
	return c, nil
}

// keepOldLog moves aside the log of the run that is resumed.
func keepOldLog(path string) error {
	if path == "" {
		return nil
	}
	for k := 1; ; k++ {
		old := fmt.Sprintf("%s.%d", path, k)
		if _, err := os.Stat(old); err != nil {
			err := disk.Rename(path, old)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
	}
}
