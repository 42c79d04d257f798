package runner

import (
	"sync/atomic"
	"unsafe"
)

// Page is the memory that a runner shares with its executor: a stop flag and
// one processed count for each task of the step. Every word has a cache line
// of its own. A look at it costs no message.
type Page struct {
	words []atomic.Int64
}

// stride is the distance of two words in units of eight bytes.
const stride = 8

// PageBytes is how much memory a page for a number of tasks takes.
func PageBytes(tasks int) int { return (tasks + 1) * stride * 8 }

// NewPage lays a page over memory of at least PageBytes(tasks) bytes, which
// may be mapped by two processes.
func NewPage(mem []byte, tasks int) *Page {
	_ = mem[:PageBytes(tasks)]
	p := (*atomic.Int64)(unsafe.Pointer(unsafe.SliceData(mem)))
	return &Page{words: unsafe.Slice(p, (tasks+1)*stride)}
}

// Stop asks the tasks to end at their next chunk.
func (p *Page) Stop() { p.words[0].Store(1) }

// Stopped reports whether a stop was asked for.
func (p *Page) Stopped() bool { return p.words[0].Load() != 0 }

// Add counts rows of a task as processed.
func (p *Page) Add(task int, rows int64) { p.words[(task+1)*stride].Add(rows) }

// Processed is the count of a task.
func (p *Page) Processed(task int) int64 { return p.words[(task+1)*stride].Load() }
