package audit

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
)

// Following checks a log line by line, as far as it goes, and keeps none of them: however long a run becomes, what is
// kept of it does not grow.
type Following struct {
	what   string // is done with it, for errors
	l      *Log
	v      *verifier
	sum    hash.Hash
	number int
	own    bool          // what follows from reports is not read (FollowOwn)
	older  bool          // its version is an older one, whose decisions this program does not recompute
	now    time.Duration // when the line before had ended
}

// Told is a line whose decisions follow from its reports, and what these are beside it. Of a log of an older version,
// lines are as they are.
type Told struct {
	Line
	Header *driver.LogHeader // of the first line
	Footer *driver.LogFooter // of the last one

	Known        bool // when it has begun and ended, on the job's clock; where reports were left out, by its phases
	Began, Ended time.Duration
	Report       *driver.StepReport // recomputed of its reports; nil where they were left out
	Executors    []string           // of its pack, by their numbers
	Lost         []string           // of these, after it
	Speeds       []Speed            // that executors were seen to have in it
}

// Follow begins to follow the log of a path, for what is done with it.
func Follow(what, path string) *Following {
	l := &Log{Path: path, followed: true}
	return &Following{what: what, l: l, v: newVerifier(l), sum: sha256.New()}
}

// MaxLine is how long a line may be.
const MaxLine = maxLogLine

// Take takes the log's next line, with its end.
func (f *Following) Take(raw []byte) (t Told, err error) {
	f.number++
	f.l.Lines = f.l.Lines[:0]
	had := f.l.Header
	clear(f.v.r.spans)
	clear(f.v.r.told)
	f.v.r.Speeds = f.v.r.Speeds[:0]
	if f.own && had != nil && !f.older {
		if err := f.takeOwn(raw, &t); err != nil {
			return t, err
		}
		return t, f.found(&t)
	}
	if err := f.l.take(f.number, raw, hex.EncodeToString(f.sum.Sum(nil))); err != nil {
		return t, err
	}
	f.sum.Write(raw)
	switch {
	case had == nil:
		t.Header = f.l.Header
		if f.older = t.Header.Version > 0 && t.Header.Version < withoutActions; !f.older {
			f.v.begin()
		}
	case f.older:
		f.asItIs(&t)
		return t, nil
	case f.l.Footer != nil:
		f.v.footer()
		t.Footer = f.l.Footer
	default:
		t.Line = f.l.Lines[0]
		f.v.line(&t.Line)
	}
	return t, f.found(&t)
}

// found adds what was recomputed of a line.
func (f *Following) found(t *Told) error {
	if len(f.v.r.Violations) > 0 {
		return fault.Newf(fault.Corrupt, f.what, f.l.Path, "%s", f.v.r.Violations[0]).WithHint("see volley verify")
	}
	t.Report, t.Speeds = f.v.r.told[f.number], f.v.r.Speeds
	if t.Began, t.Ended, t.Known = f.v.r.Took(f.number); t.Known {
		f.now = t.Ended
	} else if t.Header == nil {
		f.asItIs(t) // its reports were left out
	}
	if t.Report != nil {
		t.Executors, t.Lost = f.v.retelling.Executors(t.Report.Pack)
	}
	return nil
}

// asItIs takes what a line says of itself, from which nothing was recomputed.
func (f *Following) asItIs(t *Told) {
	if t.Footer = f.l.Footer; t.Footer != nil {
		return
	}
	t.Line = f.l.Lines[0]
	var took, update int64
	switch l := t.Line; {
	case l.Step != nil:
		took, update, t.Executors = l.Step.Phases.Compute+l.Step.Phases.Collect, l.Step.Phases.Update, l.Step.Executors
	case l.Evaluation != nil:
		took = l.Evaluation.TookNs
	default:
		return
	}
	t.Known, t.Began, t.Ended = true, f.now, f.now+time.Duration(took)
	f.now = t.Ended + time.Duration(update)
}

// FollowFile passes on all whole lines that a log has; of a run that goes on, or was interrupted, the last may be a
// part of one. With each goes how long it is, in bytes.
func FollowFile(what, path string, take func(t Told, bytes int)) error {
	file, err := os.Open(path)
	if err != nil {
		return fault.New(fault.BadInput, "read the event log", path, err)
	}
	defer file.Close()
	f, r := Follow(what, path), bufio.NewReaderSize(file, 1<<20)
	for {
		raw, err := readLine(r)
		if err == io.EOF || errors.Is(err, errCut) && f.number > 0 {
			return nil
		}
		if err != nil {
			return f.l.bad(f.number+1, "%v", err)
		}
		t, err := f.Take(raw)
		if err != nil {
			return err
		}
		take(t, len(raw))
	}
}
