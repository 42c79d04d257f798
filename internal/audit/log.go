package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
)

// Log is an event log as it was read.
type Log struct {
	Path   string
	Header *driver.LogHeader
	Lines  []Line // steps, evaluations and resumes, in order
	Footer *driver.LogFooter
	digest string // of everything before the footer
	count  int    // lines before the footer
	// followed is that of one whose lines are forgotten once they are checked, and which may lack its end, as that of a
	// run that goes on, or was interrupted.
	followed bool
}

// Line is one line between header and footer; one of the pointers is set.
type Line struct {
	Number     int // in the file, from 1
	Step       *driver.LogStep
	Evaluation *driver.LogEvaluation
	Resume     *driver.LogResume
	Pack       *driver.LogPack
	Iteration  *driver.LogIteration
	Plan       *driver.LogPlan
	Action     *driver.LogAction
	Shuffle    *driver.LogShuffle
	Slots      *driver.LogSlots
	Tables     *driver.LogTables
}

// maxLogLine bounds a line of the log.
const maxLogLine = 256 << 20

// mostItems is how many items a line may have: for each of a million splits, which is what a job may have, a dozen.
const mostItems = 12_000_000

// Read reads a log; a line that is not one of the documented events is an
// error that names it.
func Read(path string) (*Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.New(fault.BadInput, "read the event log", path, err)
	}
	defer f.Close()
	l := &Log{Path: path}
	sum := sha256.New()
	r := bufio.NewReaderSize(f, 1<<20)
	for number := 1; ; number++ {
		raw, err := readLine(r)
		if err == io.EOF {
			return l, nil
		}
		if err != nil {
			return nil, l.bad(number, "%v", err)
		}
		if err := l.take(number, raw, hex.EncodeToString(sum.Sum(nil))); err != nil {
			return nil, err
		}
		sum.Write(raw)
	}
}

var errCut = errors.New("it is cut short")

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLogLine {
			return nil, fmt.Errorf("it is longer than %d MiB", maxLogLine>>20)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err == io.EOF && len(line) > 0 {
			return nil, errCut
		}
		return line, err
	}
}

func (l *Log) bad(number int, format string, args ...any) error {
	return fault.Newf(fault.BadInput, "read the event log", fmt.Sprintf("%s line %d", l.Path, number), format, args...)
}

func (l *Log) take(number int, raw []byte, digest string) error {
	event, err := eventOf(raw)
	if err != nil {
		return l.bad(number, "it is not JSON: %v", err)
	}
	if l.Footer != nil {
		return l.bad(number, "it comes after the footer")
	}
	line := Line{Number: number}
	var into any
	switch event {
	case "header":
		l.Header = &driver.LogHeader{}
		into = l.Header
	case "step":
		line.Step = &driver.LogStep{}
		into = line.Step
	case "evaluation":
		line.Evaluation = &driver.LogEvaluation{}
		into = line.Evaluation
	case "iteration":
		line.Iteration = &driver.LogIteration{}
		into = line.Iteration
	case "plan":
		line.Plan = &driver.LogPlan{}
		into = line.Plan
	case "action":
		line.Action = &driver.LogAction{}
		into = line.Action
	case "shuffle":
		line.Shuffle = &driver.LogShuffle{}
		into = line.Shuffle
	case "slots":
		line.Slots = &driver.LogSlots{}
		into = line.Slots
	case "tables":
		line.Tables = &driver.LogTables{}
		into = line.Tables
	case "pack":
		line.Pack = &driver.LogPack{}
		into = line.Pack
	case "resume":
		line.Resume = &driver.LogResume{}
		into = line.Resume
	case "footer":
		l.Footer, l.digest, l.count = &driver.LogFooter{}, digest, number-1
		into = l.Footer
	default:
		return l.bad(number, "unknown event %q", event)
	}
	if bytes.Count(raw, []byte(",")) > mostItems {
		return l.bad(number, "it has more than %d items: no job has as many splits", mostItems)
	}
	if err := decode(raw, event, into); err != nil {
		return l.bad(number, "%v", err)
	}
	if (l.Header == nil || event == "header") && number != 1 || number == 1 && event != "header" {
		return l.bad(number, "a log begins with one header")
	}
	if event != "header" && event != "footer" {
		l.Lines = append(l.Lines, line)
	}
	return nil
}

// eventOf returns what a line is of. Where that is said first it is read no further: decode looks at the rest.
func eventOf(raw []byte) (string, error) {
	if rest, first := bytes.CutPrefix(raw, []byte(`{"event":"`)); first {
		if name, _, whole := bytes.Cut(rest, []byte(`"`)); whole && known[string(name)] {
			return string(name), nil
		}
	}
	var kind struct {
		Event string `json:"event"`
	}
	err := json.Unmarshal(raw, &kind)
	return kind.Event, err
}

// known are the events that a log has.
var known = map[string]bool{"header": true, "step": true, "evaluation": true, "iteration": true, "plan": true,
	"action": true, "shuffle": true, "slots": true, "tables": true, "pack": true, "resume": true, "footer": true}

// decode decodes a line, which has nothing but one value, and no key that is not documented.
func decode(raw []byte, event string, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err != nil || len(bytes.Trim(raw[dec.InputOffset():], " \t\r\n")) > 0 {
		if bad := json.Unmarshal(raw, new(json.RawMessage)); bad != nil {
			return fmt.Errorf("it is not JSON: %v", bad)
		}
	}
	if mistake := plainKeys(raw, event); mistake != nil {
		return mistake
	}
	return err
}
