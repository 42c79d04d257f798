package solver

import "github.com/volley-engine/volley/mllib/internal/num"

// Led goes on from where a few steps of dual ascent have led, by a method that these have chosen: what they leave of
// the duality gap tells how hard a problem is.
type Led struct {
	*Ascent
	Then Solver // nil while dual ascent leads
	by   Name
}

// NewLed returns a method that begins by dual ascent.
func NewLed() *Led { return &Led{Ascent: &Ascent{}} }

// By returns the method that goes on; empty while dual ascent leads.
func (q *Led) By() Name { return q.by }

// GoOn has another method go on.
func (q *Led) GoOn(by Name) { q.by, q.Then = by, Of(by).New() }

// Step takes in what a pass has found out.
func (q *Led) Step(p *Point, s *Seen) Moved {
	if q.Then == nil {
		return q.Ascent.Step(p, s)
	}
	return q.Then.Step(p, s)
}

// Forget drops what is known of where the run stands.
func (q *Led) Forget() {
	if q.Then != nil {
		q.Then.Forget()
	}
}

// MarshalBinary lays out what lasts: of dual ascent nothing, once another method goes on.
func (q *Led) MarshalBinary() ([]byte, error) {
	name := func() ([]byte, error) { return []byte(q.by), nil }
	if q.Then == nil {
		return num.PutPair(name, q.Ascent.MarshalBinary)
	}
	return num.PutPair(name, q.Then.MarshalBinary)
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (q *Led) UnmarshalBinary(raw []byte) error {
	led := func(raw []byte) error {
		switch by := Name(raw); by {
		case "":
			q.by, q.Then = "", nil
		case Newton, Interior:
			q.GoOn(by)
		default:
			return num.ErrCutShort
		}
		return nil
	}
	rest := func(raw []byte) error {
		if q.Then == nil {
			return q.Ascent.UnmarshalBinary(raw)
		}
		return q.Then.UnmarshalBinary(raw)
	}
	return num.GetPair(raw, led, rest)
}
