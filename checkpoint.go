package volley

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
)

const checkpointVersion = 1

// checkpoint is everything that a job goes on from. Its file ends in a line
// with the digest of what is before it, so that a torn or damaged one is
// noticed and the one before it is used.
type checkpoint struct {
	Version   int             `json:"version"`
	Plan      plan.Digest     `json:"plan"`
	Args      json.RawMessage `json:"args"`
	Iteration int             `json:"iteration"`
	State     []byte          `json:"state"`
	Ledger    driver.Restored `json:"ledger"`
}

// keepCheckpoints is how many checkpoints are kept.
const keepCheckpoints = 2

func writeCheckpoint(dir string, c *checkpoint) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return checkpointError(dir, err)
	}
	raw = append(raw, '\n')
	raw = fmt.Appendf(raw, "%s\n", plan.DigestOf(raw))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return checkpointError(dir, err)
	}
	name := filepath.Join(dir, fmt.Sprintf("checkpoint-%09d", c.Iteration))
	if err := writeSynced(name+".part", raw); err != nil {
		os.Remove(name + ".part")
		return checkpointError(dir, err)
	}
	if err := os.Rename(name+".part", name); err != nil {
		return checkpointError(dir, err)
	}
	files := checkpointFiles(dir)
	for _, old := range files[:max(0, len(files)-keepCheckpoints)] {
		os.Remove(old)
	}
	return nil
}

func writeSynced(path string, raw []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(raw); err != nil {
		return err
	}
	return f.Sync()
}

func checkpointError(dir string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fault.New(fault.NoResources, "write a checkpoint to", dir, err)
}

// checkpointFiles are the finished checkpoints, oldest first.
func checkpointFiles(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, "checkpoint-*"))
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, ".part") })
	slices.Sort(files)
	return files
}

// latestCheckpoint is the newest checkpoint that is whole and belongs to the
// plan and its arguments; none is no error, one of another plan is.
func latestCheckpoint(dir string, p plan.Digest, args json.RawMessage) (*checkpoint, error) {
	files := checkpointFiles(dir)
	for _, file := range slices.Backward(files) {
		c, err := readCheckpoint(file)
		if err != nil {
			continue
		}
		if c.Plan != p {
			return nil, fault.Newf(fault.PlanMismatch, "resume from", file, "it was written by another plan").
				WithHint("resume with the options of the first run")
		}
		return c, nil
	}
	if len(files) > 0 {
		return nil, fault.Newf(fault.Corrupt, "resume from", dir, "no checkpoint in it is whole")
	}
	return nil, nil
}

func readCheckpoint(path string) (*checkpoint, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, checkpointError(path, err)
	}
	body, sum, ok := cutLastLine(raw)
	if !ok || plan.DigestOf(body).String() != sum {
		return nil, fault.Newf(fault.Corrupt, "read the checkpoint", path, "its digest does not match")
	}
	c := &checkpoint{}
	if err := json.Unmarshal(body, c); err != nil {
		return nil, fault.New(fault.Corrupt, "read the checkpoint", path, err)
	}
	if c.Version != checkpointVersion {
		return nil, fault.Newf(fault.Corrupt, "read the checkpoint", path, "version %d, want %d", c.Version, checkpointVersion)
	}
	return c, nil
}

func cutLastLine(raw []byte) (body []byte, last string, ok bool) {
	s := strings.TrimSuffix(string(raw), "\n")
	i := strings.LastIndexByte(s, '\n')
	if i < 0 {
		return nil, "", false
	}
	return raw[:i+1], s[i+1:], true
}
