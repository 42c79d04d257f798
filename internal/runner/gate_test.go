package runner

import "testing"

// TestAGate holds tasks up until it opens or their run is stopped.
func TestAGate(t *testing.T) {
	g := NewGate()
	none := NewPage(1, nil)
	none.pass()
	none.Stop()
	NewPage(1, g).pass()
	for _, free := range []func(*Page){func(*Page) { g.Set(false) }, (*Page).Stop} {
		g.Set(true)
		p, at, passed := NewPage(1, g), make(chan struct{}), make(chan struct{})
		go func() {
			close(at)
			p.pass()
			close(passed)
		}()
		<-at
		select {
		case <-passed:
			t.Error("it lets through though closed")
		default:
		}
		free(p)
		<-passed
	}
}
