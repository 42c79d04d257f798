package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Kind is what sort of failure an error is. The list is append-only: kinds
// travel as numbers.
type Kind uint8

// The kinds of failure.
const (
	Internal     Kind = iota // a violated invariant of the engine itself
	UserCode                 // the user's function returned an error or panicked
	BadInput                 // the data is missing, unreadable or malformed
	FetchFailed              // a block could not be had from where it should be
	ExecutorLost             // the executor that held the work is gone
	PlanMismatch             // two nodes built different plans
	StaleEpoch               // the report belongs to an assignment since replaced
	Cancelled                // the user or a caller cancelled it
	NoResources              // disk, memory or executors ran out
	Corrupt                  // content does not match its digest
	Timeout                  // a bounded wait ran out
	Usage                    // an option is unknown, malformed or contradictory
	Unauthorized             // the caller may not do this, or speaks another version
	LostInput                // an input that another task has made is lost or damaged
	HolderLost               // the executor that holds such inputs cannot be reached: all of them are lost
	DriverLost               // the driver cannot be reached
	kinds                    // how many there are
)

var kindNames = [kinds]string{
	"internal error", "error in user code", "bad input", "fetch failed", "executor lost", "plan mismatch",
	"stale epoch", "cancelled", "out of resources", "corrupt data", "timed out", "usage error", "not allowed",
	"lost input", "holder lost", "driver lost",
}

// String returns the kind in words.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Kinds lists every kind, for tests that must be exhaustive.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// Response is what a kind of failure means for the task that met it.
type Response struct {
	Retry          bool // try the task again, elsewhere if possible
	ChargeTask     bool // counts towards the task's limit of failures
	ChargeExecutor bool // counts towards the executor's exclusion
	Remake         bool // the input must be recomputed before the retry
}

var responses = [kinds]Response{
	Internal:     {Retry: true, ChargeTask: true, ChargeExecutor: true},
	UserCode:     {},
	BadInput:     {},
	FetchFailed:  {Retry: true, ChargeTask: true, Remake: true},
	ExecutorLost: {Retry: true},
	PlanMismatch: {},
	StaleEpoch:   {},
	Cancelled:    {},
	NoResources:  {Retry: true, ChargeTask: true, ChargeExecutor: true},
	Corrupt:      {Retry: true, ChargeTask: true, ChargeExecutor: true, Remake: true},
	Timeout:      {Retry: true, ChargeTask: true, ChargeExecutor: true},
	Usage:        {},
	Unauthorized: {},
	LostInput:    {}, // the session, which knows its map task, recomputes it
	HolderLost:   {}, // the same of all its map tasks
	DriverLost:   {}, // what needs it waits, or ends
}

// Policy returns the response to a kind. An unknown kind, from a newer peer, is
// never retried.
func Policy(k Kind) Response {
	if k < kinds {
		return responses[k]
	}
	return Response{}
}

// Error is a failure: what was being done (Op), to what (Subject), what sort
// of failure it is, why, and what the reader can do about it.
type Error struct {
	Op      string
	Subject string
	Kind    Kind
	Hint    string
	Err     error
}

// Error joins operation, subject, cause and hint on one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Subject != "" {
		fmt.Fprintf(&b, " %s", e.Subject)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	} else {
		fmt.Fprintf(&b, ": %v", e.Kind)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, " (%s)", e.Hint)
	}
	return b.String()
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// New makes an error from its parts.
func New(kind Kind, op, subject string, err error) *Error {
	return &Error{Op: op, Subject: subject, Kind: kind, Err: err}
}

// Newf makes an error whose cause is a formatted message.
func Newf(kind Kind, op, subject, format string, args ...any) *Error {
	return New(kind, op, subject, fmt.Errorf(format, args...))
}

// WithHint returns the same error with advice for the reader.
func (e *Error) WithHint(hint string) *Error {
	e.Hint = hint
	return e
}

// KindOf returns the kind of an error: that of the outermost Error in its
// chain, Cancelled for a cancelled context, Timeout for an expired one, and
// Internal for anything else.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	return Internal
}

// InputLost reports whether an error says that inputs are to be made again.
func InputLost(err error) bool { return Is(err, LostInput) || Is(err, HolderLost) }

// Is reports whether an error is of a kind.
func Is(err error, k Kind) bool { return err != nil && KindOf(err) == k }
