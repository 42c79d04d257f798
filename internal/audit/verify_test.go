package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/audit/logtest"
)

// TestEveryTamperingIsRefused runs the stories in testdata: logs of real runs, what was done
// to them, and what is said of that.
//
//	log RUN [leftout] [real]    of one of runs; leftout: without reports; real: of the real clock
//	verify
//	tamper [unsealed]           the log as it was, with edits, one a line; its footer hashes them, unless unsealed:
//	    LINE PATH = VALUE, LINE PATH none, LINE drop, LINE twice, LINE text TEXT, LINE torn, swap LINE LINE,
//	    join LINE LINE: the first is gone, what the job was told until then stands in the second
func TestEveryTamperingIsRefused(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var log [][]byte
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "log" {
				log = made(t, d)
				return ""
			}
			lines := slices.Clone(log)
			for edit := range strings.Lines(d.Input) {
				lines = edited(t, d, lines, strings.TrimSpace(edit))
			}
			if !d.HasArg("unsealed") {
				lines = logtest.Seal(lines)
			}
			return said(t, lines)
		})
	})
}

func made(t *testing.T, d *datadriven.TestData) [][]byte {
	log := logtest.Runs[d.CmdArgs[0].Key](t).Written()
	for i := range log {
		if d.HasArg("leftout") && bytes.Contains(log[i], []byte(`"reports"`)) {
			log[i] = logtest.Changed(t, log[i], "reports", nil)
			log[i] = logtest.Changed(t, log[i], "reports_left_out", true)
		}
	}
	if d.HasArg("real") {
		log[0] = logtest.Changed(t, log[0], "options.clock", "real")
	}
	return logtest.Seal(log)
}

// What is left out of what is said: it changes with every key of a line.
var digests, options = regexp.MustCompile(`digest is \w+, its footer says \w+`), regexp.MustCompile(`{[^}]*}`)
var files = regexp.MustCompile(`^read the event log \S+ `)

// said is what reading and verifying a log come to.
func said(t *testing.T, log [][]byte) string {
	l, err := readLog(t, log)
	if err != nil {
		return files.ReplaceAllString(err.Error(), "read the event log log ") + "\n"
	}
	r := Verify(l)
	var out strings.Builder
	for _, v := range r.Violations {
		fmt.Fprintln(&out, digests.ReplaceAllString(options.ReplaceAllString(v.String(), "{...}"),
			"digest is A, its footer says B"))
	}
	if len(r.Violations) == 0 {
		fmt.Fprintf(&out, "all %d facts of %d steps hold, %d decided, %d not\n", r.Facts, r.Steps, r.Decided,
			r.Undecided)
	}
	return out.String()
}

// edited is a log with one edit.
func edited(t *testing.T, d *datadriven.TestData, lines [][]byte, edit string) [][]byte {
	words := strings.SplitN(edit, " ", 4)
	if words[0] == "swap" {
		a, b := number(t, d, words[1])-1, number(t, d, words[2])-1
		lines[a], lines[b] = lines[b], lines[a]
		return lines
	}
	if words[0] == "join" {
		return joined(t, d, lines, number(t, d, words[1])-1, number(t, d, words[2])-1)
	}
	at := number(t, d, words[0]) - 1
	switch {
	case words[1] == "drop":
		return slices.Delete(lines, at, at+1)
	case words[1] == "twice":
		return slices.Insert(lines, at, lines[at])
	case words[1] == "torn":
		lines[at] = lines[at][:len(lines[at])-1]
	case words[1] == "text":
		lines[at] = []byte(strings.Join(words[2:], " ") + "\n")
	case words[2] == "none":
		lines[at] = logtest.Changed(t, lines[at], words[1], nil)
	default:
		var v any
		if err := json.Unmarshal([]byte(words[3]), &v); err != nil {
			d.Fatalf(t, "%s: %v", words[3], err)
		}
		lines[at] = logtest.Changed(t, lines[at], words[1], v)
	}
	return lines
}

// joined is a log without line a, whose reports stand before those of line b.
func joined(t *testing.T, d *datadriven.TestData, lines [][]byte, a, b int) [][]byte {
	var l, other driver.LogReports
	for line, into := range map[int]*driver.LogReports{a: &l, b: &other} {
		if err := json.Unmarshal(lines[line], into); err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	lines[b] = logtest.Changed(t, lines[b], "reports", append(l.Reports, other.Reports...))
	return slices.Delete(lines, a, a+1)
}

func number(t *testing.T, d *datadriven.TestData, word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return n
}

// readLog reads a log of these lines.
func readLog(t *testing.T, lines [][]byte) (*Log, error) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(path)
}
