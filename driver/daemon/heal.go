package daemon

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/volley-engine/volley/internal/copies"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
)

// ofDriver reports whether a file of a job is the driver's own: what its process has printed.
func ofDriver(file string) bool { return file == resultName || strings.HasPrefix(file, "log.") }

// printedFiles returns what a job's process has printed, as the journal keeps it with the job's end.
func printedFiles(dir string) (out []MadeFile) {
	names := []string{resultName}
	for _, s := range logFiles(filepath.Join(dir, "log")) {
		names = append(names, filepath.Base(s.path))
	}
	for _, name := range names {
		if sum, n, err := copies.SumOf(filepath.Join(dir, name), -1); err == nil { // not all are there
			out = append(out, MadeFile{Path: name, Size: n, SHA256: plan.DigestFromBytes(sum)})
		}
	}
	return out
}

// heal brings a file of a job that has ended from another driver, where it is not here as the journal has it. Without
// other drivers there is nothing to bring, and who reads the file finds out.
func (w *jobHandle) heal(ctx context.Context, name string, made []MadeFile) error {
	if len(w.d.others()) == 0 {
		return nil
	}
	for _, f := range made {
		if f.Path == name {
			return w.d.bringWhole(ctx, path.Join(jobDir(w.info.Id), name), f.SHA256.String(), 0o600)
		}
	}
	return nil
}

// made returns the files of a job that has ended, as the journal has them.
func (w *jobHandle) made() []MadeFile {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.files
}

// resultText returns what the job has printed as its result, or why it cannot be shown.
func (w *jobHandle) resultText() (text, why string) {
	made := w.made()
	raw, _ := os.ReadFile(w.resultFile()) // a missing file counts as empty
	for _, f := range made {
		if f.Path != resultName || plan.DigestOf(raw) == f.SHA256 {
			continue
		}
		if err := w.heal(w.d.ctx, resultName, made); err == nil {
			raw, _ = os.ReadFile(w.resultFile())
		}
		if plan.DigestOf(raw) != f.SHA256 {
			return "", w.resultFile() + " is not what the job has printed"
		}
	}
	return string(raw), ""
}

// healLog brings what is damaged of the log of a job that has ended.
func (w *jobHandle) healLog(ctx context.Context) error {
	made := w.made()
	for _, f := range made {
		if !strings.HasPrefix(f.Path, "log.") {
			continue
		}
		sum, _, err := copies.SumOf(filepath.Join(w.dir, f.Path), -1)
		if err == nil && plan.DigestFromBytes(sum) == f.SHA256 {
			continue
		}
		if len(w.d.others()) == 0 {
			return fault.Newf(fault.Corrupt, "read", filepath.Join(w.dir, f.Path), "it is not what the job has printed")
		}
		if err := w.heal(ctx, f.Path, made); err != nil {
			return err
		}
	}
	return nil
}
