package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// JobID names one submitted job.
type JobID string

// ExecutorID names one executor; it survives a reconnect of that executor.
type ExecutorID string

// SplitID is the index of a split within its pack or dataset, from 0.
type SplitID int

// StepID numbers the steps of a job, from 1.
type StepID int

// Epoch counts the assignments of work in a job. A report that carries an
// older epoch than the one its work was last assigned under is stale.
type Epoch uint64

// Digest is a SHA-256 sum that names content.
type Digest [sha256.Size]byte

// String returns the digest in lower-case hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Short returns the first twelve hexadecimal digits, for messages to people.
func (d Digest) Short() string { return hex.EncodeToString(d[:6]) }

// IsZero reports whether the digest was never set.
func (d Digest) IsZero() bool { return d == Digest{} }

// MarshalText makes digests hexadecimal strings in JSON.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses the hexadecimal form.
func (d *Digest) UnmarshalText(text []byte) error {
	parsed, err := ParseDigest(string(text))
	if err == nil {
		*d = parsed
	}
	return err
}

// ParseDigest reads the hexadecimal form of a digest.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != len(d) {
		return d, fmt.Errorf("%q is not a SHA-256 digest: want %d hexadecimal digits", s, 2*len(d))
	}
	copy(d[:], raw)
	return d, nil
}

// DigestOf returns the digest of some bytes.
func DigestOf(data []byte) Digest { return sha256.Sum256(data) }

// DigestFromBytes copies a raw digest off the wire; anything but 32 bytes
// gives the zero digest, which equals no content.
func DigestFromBytes(raw []byte) Digest {
	var d Digest
	if len(raw) == len(d) {
		copy(d[:], raw)
	}
	return d
}

// Time is a moment on a job's own clock: the time since the job's world began.
// Decisions compare such times and never read a clock themselves.
type Time = time.Duration

// Coverage is the positions of a split that an output stands for: Count positions
// from Cursor on, wrapping round at the split's end. Folded is the count that the
// accumulator itself carries; Weight is the weight of the rows, where rows have
// weights. Two coverages of one task are two different outputs.
type Coverage struct {
	Split   SplitID
	Attempt int
	Epoch   Epoch
	Cursor  int64
	Count   int64
	Folded  int64
	Weight  float64
	Entries int64 // of the rows, where progress is counted in these
}

// Assignment hands one split's share of a step to an executor.
type Assignment struct {
	Split   SplitID
	Attempt int
	Epoch   Epoch
	Cursor  int64
	Limit   int64  // rows to fold; 0 is all
	State   uint64 // version of the row state of the split
}

// Move takes a split from one executor to another. Role means that the target
// already holds a replica, so that no bytes are sent.
type Move struct {
	Split    SplitID
	From, To ExecutorID
	Role     bool
}
