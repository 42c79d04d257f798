package runner

import "sync/atomic"

// Page is what the slots of a run share with the executor: a stop flag and one processed count for each task.
// Every word has its own cache line. Reading it costs no message.
type Page struct {
	words []atomic.Int64
	gate  *Gate
}

// stride is the distance of two words in units of eight bytes.
const stride = 8

// NewPage makes the page of a run of some tasks, whose slots pause at a gate; nil is none.
func NewPage(tasks int, gate *Gate) *Page {
	return &Page{words: make([]atomic.Int64, (tasks+1)*stride), gate: gate}
}

// Stop asks the tasks to end at their next chunk, those at the gate too.
func (p *Page) Stop() {
	p.words[0].Store(1)
	p.gate.wake()
}

// Stopped reports whether a stop was asked for.
func (p *Page) Stopped() bool { return p.words[0].Load() != 0 }

// Add counts rows of a task as processed.
func (p *Page) Add(task int, rows int64) { p.words[(task+1)*stride].Add(rows) }

// Processed returns the count of a task.
func (p *Page) Processed(task int) int64 { return p.words[(task+1)*stride].Load() }
