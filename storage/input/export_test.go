package input

import "context"

// PrepareAgain prepares a source whose parts were changed.
func (s *Source) PrepareAgain(o Options) error {
	s.Prepared = nil
	return s.prepare(context.Background(), o)
}

// ForgetCuts has a source know its parts only as they are in a plan.
func (s *Source) ForgetCuts() { s.cuts.Store(nil) }
