package runner

import "testing"

// TestAGate holds tasks up until it opens or their run is stopped.
func TestAGate(t *testing.T) {
	g := NewGate()
	page := func() *Page { return NewPage(make([]byte, PageBytes(1)), 1) }
	var none *Gate
	none.Pass(page())
	none.Stop(page())
	g.Pass(page())
	for _, free := range []func(*Page){func(*Page) { g.Set(false) }, g.Stop} {
		g.Set(true)
		p, at, passed := page(), make(chan struct{}), make(chan struct{})
		go func() {
			close(at)
			g.Pass(p)
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
