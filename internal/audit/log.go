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
	var kind struct {
		Event string `json:"event"`
	}
	if err := json.Unmarshal(raw, &kind); err != nil {
		return l.bad(number, "it is not JSON: %v", err)
	}
	if l.Footer != nil {
		return l.bad(number, "it comes after the footer")
	}
	line := Line{Number: number}
	var into any
	switch kind.Event {
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
		return l.bad(number, "unknown event %q", kind.Event)
	}
	if bytes.Count(raw, []byte(",")) > mostItems {
		return l.bad(number, "it has more than %d items: no job has as many splits", mostItems)
	}
	if err := plainKeys(raw, kind.Event); err != nil {
		return l.bad(number, "%v", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return l.bad(number, "%v", err)
	}
	if (l.Header == nil || kind.Event == "header") && number != 1 || number == 1 && kind.Event != "header" {
		return l.bad(number, "a log begins with one header")
	}
	if line.Step != nil || line.Evaluation != nil || line.Resume != nil || line.Pack != nil ||
		line.Iteration != nil {
		l.Lines = append(l.Lines, line)
	}
	return nil
}
