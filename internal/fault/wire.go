package fault

import "errors"

// Wire is an error as it crosses a process boundary.
type Wire struct {
	Op, Subject, Hint, Message string
	Kind                       Kind
}

// ToWire flattens an error; the message of the cause is kept as text, the
// structure as it is. A nil error has no wire form.
func ToWire(err error) *Wire {
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) {
		return &Wire{Kind: KindOf(err), Message: err.Error()}
	}
	w := &Wire{Op: e.Op, Subject: e.Subject, Hint: e.Hint, Kind: e.Kind}
	if e.Err != nil {
		w.Message = e.Err.Error()
	}
	return w
}

// FromWire returns the error that a peer sent.
func FromWire(w *Wire) error {
	if w == nil {
		return nil
	}
	e := &Error{Op: w.Op, Subject: w.Subject, Hint: w.Hint, Kind: w.Kind}
	if w.Message != "" {
		e.Err = errors.New(w.Message)
	}
	return e
}
