package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// keptJobs are records of jobs that have ended, and of one that runs.
func keptJobs() (all []Record) {
	for i := range 6 {
		id := plan.JobID(fmt.Sprintf("job-%06d", i+1))
		all = append(all, Record{Kind: JobSubmitted, Job: id, At: 7,
			Spec: &JobSpec{Kind: "logistic", Args: []string{"--reg", fmt.Sprint(i)}, Token: fmt.Sprint("token", i)}},
			Record{Kind: StepCommitted, Job: id, Step: plan.StepID(i + 3), Epoch: 1})
		if i < 5 {
			all = append(all, Record{Kind: JobEnded, Job: id, State: JobDone, At: 9})
		}
	}
	return all
}

// keptJournal is a journal with those jobs, and its state.
func keptJournal(t *testing.T, dir string) (state []byte) {
	t.Helper()
	r, err := OpenRaft(dir, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range keptJobs() {
		if err := r.Append(context.Background(), rec); err != nil {
			t.Fatal(err)
		}
	}
	if state, err = json.Marshal(r.State()); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return state
}

// journalFiles are the contents of a journal's files.
func journalFiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			files[path], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	return files
}

// reading is the environment's variable by which this test's program reads a journal
// and prints its state: a damaged one may end the process that reads it.
const reading = "VOLLEY_TEST_JOURNAL"

// TestReadAJournal is no test: it is what readJournal starts.
func TestReadAJournal(t *testing.T) {
	dir := os.Getenv(reading)
	if dir == "" {
		t.Skip("nobody asks")
	}
	r, err := OpenRaft(dir, hclog.NewNullLogger())
	if err != nil {
		fmt.Printf("\nrefused: %v\n", err)
		return
	}
	raw, _ := json.Marshal(r.State())
	fmt.Printf("\nstate: %s\n", raw)
	_ = r.Close()
}

// readJournal opens a journal in a process of its own, and returns its state, or why it
// was refused.
func readJournal(t *testing.T, dir string) (state []byte, refused string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestReadAJournal$")
	cmd.Env = append(os.Environ(), reading+"="+dir)
	out, err := cmd.CombinedOutput()
	for line := range bytes.Lines(out) {
		if raw, ok := bytes.CutPrefix(line, []byte("state: ")); ok {
			state = bytes.TrimSpace(raw)
		}
		if raw, ok := bytes.CutPrefix(line, []byte("refused: ")); ok {
			refused = string(raw)
		}
	}
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out[:min(len(out), 300)])
	}
	return state, refused, err
}

// damage is a change of one file.
type damage struct {
	what, path string
	raw        []byte
}

// flips are changes of single bits: of what the records say, of the file's head, and of
// anything else that is not zero.
func flips(files map[string][]byte) (all []damage) {
	rng := rand.New(rand.NewPCG(10, 16))
	for _, path := range slices.Sorted(maps.Keys(files)) {
		raw := files[path]
		var said, head, rest []int
		for i, b := range raw {
			switch {
			case inRecord(raw, i):
				said = append(said, i)
			case b != 0 && i < 8192:
				head = append(head, i)
			case b != 0:
				rest = append(rest, i)
			}
		}
		for _, from := range [][]int{said, head, rest} {
			for range min(12, len(from)) {
				at, bit := from[rng.IntN(len(from))], rng.IntN(8)
				changed := slices.Clone(raw)
				changed[at] ^= 1 << bit
				all = append(all, damage{fmt.Sprintf("bit %d of byte %d (%q)", bit, at,
					raw[max(0, at-12):min(len(raw), at+12)]), path, changed})
			}
		}
	}
	return all
}

// inRecord reports whether a byte is among those of a record as text.
func inRecord(raw []byte, i int) bool {
	near := raw[max(0, i-100):min(len(raw), i+100)]
	return raw[i] >= ' ' && raw[i] < 0x7f && bytes.Contains(near, []byte(`"job"`))
}

// TestADamagedJournalIsRefused, by name, or is read as what was written: a flipped bit must
// not run a job again, rename it, or change its arguments.
func TestADamagedJournalIsRefused(t *testing.T) {
	whole := t.TempDir()
	want := keptJournal(t, whole)
	all := make(chan damage)
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for d := range all {
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
					t.Error(err)
				}
				rel, _ := filepath.Rel(whole, d.path)
				if err := os.WriteFile(filepath.Join(dir, rel), d.raw, 0o600); err != nil {
					t.Error(err)
				}
				checkDamaged(t, dir, d.what, want)
			}
		})
	}
	for _, d := range flips(journalFiles(t, whole)) {
		all <- d
	}
	close(all)
	readers.Wait()
}

func checkDamaged(t *testing.T, dir, what string, want []byte) {
	state, refused, err := readJournal(t, dir)
	switch {
	case err != nil:
		t.Errorf("%s: it ends the process: %v", what, err)
	case refused != "" && !strings.Contains(refused, dir):
		t.Errorf("%s: it is refused, and nobody says which: %s", what, refused)
	case refused == "" && !bytes.Equal(state, want):
		got, wanted := differing(state, want)
		t.Errorf("%s: where %s was written it is read as %s", what, wanted, got)
	}
}

// differing are the places of two texts where they begin to differ.
func differing(a, b []byte) (string, string) {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	around := func(s []byte) string { return fmt.Sprintf("%q", s[max(0, min(len(s), i)-30):min(len(s), i+40)]) }
	return around(a), around(b)
}

// TestAJournalWithoutContentIsRefused: files that are empty, cut or gone do not make a
// driver of no jobs.
func TestAJournalWithoutContentIsRefused(t *testing.T) {
	whole := t.TempDir()
	want := keptJournal(t, filepath.Join(whole, "journal"))
	for path, raw := range journalFiles(t, whole) {
		if !bytes.Contains(raw, []byte("job-00000")) {
			continue // it holds nothing of the jobs
		}
		for _, size := range []int{0, 1, 4096, len(raw) / 2, len(raw) - 1} {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			rel, _ := filepath.Rel(whole, path)
			if err := os.WriteFile(filepath.Join(dir, rel), raw[:min(size, len(raw))], 0o600); err != nil {
				t.Fatal(err)
			}
			checkDamaged(t, filepath.Join(dir, "journal"), fmt.Sprintf("%s of %d bytes", rel, size), want)
		}
	}
}

// TestARecordThatNobodyReadsIsNoRecord: what a machine cannot take in is an error of the append, and of opening the
// journal.
func TestARecordThatNobodyReadsIsNoRecord(t *testing.T) {
	dir := t.TempDir()
	r, err := OpenRaft(dir, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.raft.Apply([]byte(`[{"kind":`), raftWait).Error(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := OpenRaft(dir, hclog.NewNullLogger()); err == nil {
		t.Error("a journal with an entry that is none is opened")
		_ = r.Close()
	} else if !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
}

// TestADirectoryBelongsToOneJob: where the journal is gone and jobs' directories are not,
// either the driver does not start, and says so, or no job gets a directory that
// another had.
func TestADirectoryBelongsToOneJob(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("VOLLEY_HOME", filepath.Join(dir, "home"))
	old := filepath.Join(dir, "jobs", "job-000001")
	if err := os.MkdirAll(filepath.Join(old, "checkpoints"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(old, "result.json"), []byte(`{"objective":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := leading(Config{Listen: wire.SocketAddress(filepath.Join(dir, "driver.sock")), DataDir: dir,
		Program: "/bin/false"})
	if err != nil {
		if !strings.Contains(err.Error(), dir) {
			t.Error(err)
		}
		return
	}
	defer d.Close()
	id := submittedID(t, d)
	if id == "job-000001" {
		t.Error("a new job has the directory of one that was there before")
	}
	if raw, err := os.ReadFile(filepath.Join(old, "result.json")); err != nil || string(raw) != `{"objective":1}` {
		t.Errorf("what the old job left is %q: %v", raw, err)
	}
}
