package scheduler

// shared are the commands of jobs that share an executor's slots: what they say is whose turn it is.
func (s *story) shared() bool {
	switch s.D.Cmd {
	case "slots":
		s.shares, s.now = NewShares(s.Number(s.Arg(0))), 0
	case "open":
		s.shares.Open(s.Arg(0), float64(s.Int("weight", 1)), s.now)
	case "close":
		s.shares.Close(s.Arg(0), s.now)
	case "began":
		s.shares.Began(s.Arg(0), s.Int("tasks", 1), s.now)
	case "over":
		s.shares.Ended(s.Arg(0), s.now)
	case "look":
	default:
		return false
	}
	if s.D.Cmd == "slots" {
		return true
	}
	turns, again := s.shares.Look(s.now)
	for _, t := range turns {
		s.say("%s: %s", t.Job, map[bool]string{true: "pause", false: "go on"}[t.Pause])
	}
	if again > 0 {
		s.say("look again in %v", again)
	}
	return true
}
