package site

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/volley-engine/volley/driver"
)

// entry is an event log as the list has it, by its first and its last line.
type entry struct {
	Path     string // within the folder, with slashes
	Size     int64
	Changed  time.Time
	Job      string
	Sync     string
	Splits   int
	Rows     int64
	Steps    int
	Stopped  string // by what; empty is that the log has no end
	Unusable string // why it cannot be listed
}

// What is read of a log for the list: a first line of many splits is long, a last one never.
const (
	mostHeader = 16 << 20
	mostFooter = 64 << 10
)

// mostLogs is how many logs a folder may have.
const mostLogs = 100_000

// found is what is known of a folder's logs; a file that has not changed is not read again.
type found map[string]entry

// scan looks at a folder, and at those in it, and returns its logs, the newest first.
func (f found) scan(dir string) ([]entry, error) {
	var all []entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || len(all) == mostLogs {
			return ignored(path, dir, err)
		}
		info, err := d.Info()
		if err != nil {
			return nil // it has gone since
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		e, known := f[rel]
		if !known || e.Size != info.Size() || !e.Changed.Equal(info.ModTime()) {
			var is bool
			if e, is = read(path, info); !is {
				return nil
			}
			e.Path = rel
			f[rel] = e
		}
		all = append(all, e)
		return nil
	})
	slices.SortFunc(all, func(a, b entry) int { return b.Changed.Compare(a.Changed) })
	return all, err
}

// ignored returns what ends a walk: that the folder itself cannot be read. Others in it are left out.
func ignored(path, dir string, err error) error {
	if err != nil && path == dir {
		return err
	}
	return nil
}

// read reads the ends of a file; false is that it is no event log.
func read(path string, info fs.FileInfo) (e entry, is bool) {
	e = entry{Size: info.Size(), Changed: info.ModTime()}
	file, err := os.Open(path)
	if err != nil {
		return e, false
	}
	defer file.Close()
	in := bufio.NewReader(io.LimitReader(file, mostHeader))
	if begins, err := in.Peek(len(opening)); err != nil || string(begins) != opening {
		return e, false
	}
	line, err := in.ReadBytes('\n')
	var h driver.LogHeader
	if err != nil || json.Unmarshal(line, &h) != nil {
		e.Unusable = "its first line is cut short, damaged, or too long"
		return e, true
	}
	e.Job, e.Sync, e.Splits = h.Job, h.Options.Sync, len(h.N)
	for _, n := range h.N {
		e.Rows += n
	}
	if foot, err := footer(file, info.Size()); err == nil {
		e.Steps, e.Stopped = foot.Steps, foot.StoppedBy
	}
	return e, true
}

// opening is what event logs begin with.
const opening = `{"event":"header",`

var errNoFooter = errors.New("it has no footer")

// footer reads the last line of a log.
func footer(file *os.File, size int64) (f driver.LogFooter, err error) {
	raw := make([]byte, min(size, mostFooter))
	if _, err := file.ReadAt(raw, size-int64(len(raw))); err != nil && err != io.EOF {
		return f, err
	}
	raw = bytes.TrimSuffix(raw, []byte("\n"))
	raw = raw[bytes.LastIndexByte(raw, '\n')+1:]
	if err := json.Unmarshal(raw, &f); err != nil {
		return f, err
	}
	if f.Event != "footer" {
		return f, errNoFooter
	}
	return f, nil
}
