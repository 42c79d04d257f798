package host

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
)

// savedName is the file in a job's directory that lists the datasets that its processes have saved, a line for each.
const savedName = "saved"

// noteSaved returns what lists the datasets that a job of a cluster saves; nil of no cluster's.
func noteSaved(p wire.Process) func(dir string, rows int64) {
	if p.Role != wire.JobRole {
		return nil
	}
	return func(dir string, rows int64) {
		raw, err := json.Marshal(&wire.SavedDataset{Dir: dir, Rows: rows})
		if err != nil {
			return
		}
		f, err := os.OpenFile(filepath.Join(p.JobDir, savedName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err == nil {
			_, err = f.Write(append(raw, '\n'))
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "volley: %s is saved, and will not be among the cluster's datasets: %v\n", dir, err)
		}
	}
}

// savedBy returns the datasets that a job's processes have saved, each once, as it was saved last.
func savedBy(dir string) (all []*wire.SavedDataset, err error) {
	path := filepath.Join(dir, savedName)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, disk.OpenError(path, err)
	}
	defer f.Close()
	at := map[string]int{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		one := &wire.SavedDataset{}
		if json.Unmarshal(lines.Bytes(), one) != nil {
			continue // a process was killed while it wrote the line, and has saved again since
		}
		if i, there := at[one.Dir]; there {
			all[i] = one
			continue
		}
		if len(all) == mostSaved {
			return nil, fault.Newf(fault.NoResources, "list", path, "the job has saved more than %d "+
				"datasets", mostSaved)
		}
		at[one.Dir] = len(all)
		all = append(all, one)
	}
	if err := lines.Err(); err != nil {
		return nil, fault.New(fault.NoResources, "read", path, err)
	}
	return all, nil
}

// mostSaved bounds how many datasets of a job are listed.
const mostSaved = 10_000
