package flight

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/storage/arrowstream"
	"github.com/volley-engine/volley/storage/input/files"
)

// TicketLife is how long a ticket is good for.
const TicketLife = 15 * time.Minute

// ThisUser is how tickets name who calls over a socket, of which there is one.
const ThisUser = "this user"

// KeyBytes is how long a key of tickets is.
const KeyBytes = 32

// NewKey returns a key of tickets.
func NewKey() []byte {
	key := make([]byte, KeyBytes)
	_, _ = rand.Read(key) // which never fails
	return key
}

// ticket lets a caller read one endpoint of a flight.
type ticket struct {
	Path []string           `json:"path,omitempty"` // of a table that the driver makes
	File *files.File        `json:"file,omitempty"` // of a dataset
	As   arrowstream.Format `json:"as,omitempty"`
	Who  string             `json:"who"`
	Ends int64              `json:"ends"` // in seconds, as Unix counts them
}

// sealed returns a ticket as clients hold it: what it says, and by which it is known to be the driver's.
func (t ticket) sealed(key []byte) ([]byte, error) {
	raw, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	return append(raw, sumOf(key, raw)...), nil
}

func sumOf(key, raw []byte) []byte {
	sum := hmac.New(sha256.New, key)
	sum.Write(raw)
	return sum.Sum(nil)
}

// openTicket returns what a ticket says, if it is of the driver's, in force, and the caller's own.
func openTicket(key, raw []byte, who string, now time.Time) (t ticket, err error) {
	ask := ": ask for the flight again (GetFlightInfo)"
	at := len(raw) - sha256.Size
	if len(key) != KeyBytes || at < 0 || !hmac.Equal(raw[at:], sumOf(key, raw[:at])) {
		return t, status.Error(codes.FailedPrecondition, "the ticket is none of the driver's that leads"+ask)
	}
	if err := json.Unmarshal(raw[:at], &t); err != nil {
		return t, status.Error(codes.FailedPrecondition, "the ticket cannot be read"+ask)
	}
	switch {
	case t.Who != who:
		return t, status.Error(codes.PermissionDenied, "the ticket is another caller's"+ask)
	case now.Unix() >= t.Ends:
		return t, status.Error(codes.FailedPrecondition, "the ticket has expired"+ask)
	}
	return t, nil
}
