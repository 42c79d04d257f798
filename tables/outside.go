package tables

import (
	"sync"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
)

// outside is the way from a process's machines to those of other processes of a run. What is posted waits in memory
// until it is sent: machines never wait for each other; workers wait, between their clocks, while too much does.
type outside struct {
	run  *run
	send func(to int, message []byte) error
	out  []*outgoing // by executor, and at the end the job's process
	in   []*reader
	mu   sync.Mutex
	room *sync.Cond
	held int // bytes that wait
}

// outgoing is what waits to be sent to a process: parts of whole messages, so that none grows by being moved, and
// their memory is used again.
type outgoing struct {
	mu   sync.Mutex
	some *sync.Cond
	full [][]byte // parts before the writer's
	w    writer
	big  bool // the last part was, so that the next is made with room
	over bool
}

const (
	pieceBytes  = 1 << 20  // of a message between processes
	mostWaiting = 64 << 20 // bytes that wait before workers do
	smallPart   = 64 << 10 // of a part after which another small one is thought to come
)

// partFull is how long a part is that has no further message, so that one more seldom makes it longer than a piece;
// tests have smaller ones.
var partFull = 512 << 10

// parts is memory of large parts that were sent.
var parts = sync.Pool{New: func() any {
	part := make([]byte, 0, pieceBytes)
	return &part
}}

func newOutside(r *run, send func(int, []byte) error) *outside {
	o := &outside{run: r, send: send}
	o.room = sync.NewCond(&o.mu)
	for range len(r.executors) + 1 {
		q := &outgoing{}
		q.some = sync.NewCond(&q.mu)
		o.out, o.in = append(o.out, q), append(o.in, &reader{})
	}
	return o
}

// at returns the place of a process in lists.
func (o *outside) at(process int) int {
	if process == rdd.Leader {
		return len(o.out) - 1
	}
	return process
}

// start begins to send.
func (o *outside) start() {
	for i, q := range o.out {
		to := i
		if i == len(o.out)-1 {
			to = rdd.Leader
		}
		o.run.all.Go(func() { o.carry(q, to) })
	}
}

// post adds a message for a process, and returns how many bytes it has.
func (o *outside) post(to int, write func(w *writer)) int {
	q := o.out[o.at(to)]
	q.mu.Lock()
	bytes := q.add(write)
	o.waits(bytes)
	q.mu.Unlock()
	q.some.Signal()
	return bytes
}

// add adds a message to the last part, and returns how many bytes it has.
func (q *outgoing) add(write func(w *writer)) int {
	if q.w.buf == nil && q.big {
		q.w.buf = *parts.Get().(*[]byte)
	}
	before := len(q.w.buf)
	write(&q.w)
	bytes := len(q.w.buf) - before
	if len(q.w.buf) >= partFull {
		q.full, q.w.buf = append(q.full, q.w.buf), nil
	}
	return bytes
}

// next waits for a part, and takes it; nil where the run has ended.
func (q *outgoing) next() (part []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.full) == 0 && len(q.w.buf) == 0 && !q.over {
		q.some.Wait()
	}
	switch {
	case q.over:
		return nil
	case len(q.full) > 0:
		part, q.full[0] = q.full[0], nil
		q.full = q.full[1:]
	default:
		part, q.w.buf = q.w.buf, nil
	}
	q.big = len(part) > smallPart
	return part
}

func (o *outside) waits(bytes int) {
	o.mu.Lock()
	o.held += bytes
	o.mu.Unlock()
	if bytes < 0 {
		o.room.Broadcast()
	}
}

// carry sends what waits for a process, until the run ends.
func (o *outside) carry(q *outgoing, to int) {
	for part := q.next(); part != nil; part = q.next() {
		for rest := part; len(rest) > 0; {
			piece := rest[:min(len(rest), pieceBytes)]
			if err := o.send(to, piece); err != nil {
				o.run.fail(err)
				return
			}
			rest = rest[len(piece):]
			o.waits(-len(piece))
		}
		if cap(part) == pieceBytes { // none that a long message has made longer
			part = part[:0]
			parts.Put(&part)
		}
	}
}

// await waits while too much waits to be sent.
func (o *outside) await() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.held > mostWaiting && !o.run.over() {
		o.room.Wait()
	}
}

// end stops sending.
func (o *outside) end() {
	for _, q := range o.out {
		q.mu.Lock()
		q.over = true
		q.mu.Unlock()
		q.some.Broadcast()
	}
	o.mu.Lock()
	o.room.Broadcast()
	o.mu.Unlock()
}

// take takes a piece of what a process has sent.
func (o *outside) take(from int, piece []byte) error {
	if from < rdd.Leader || from >= len(o.out)-1 {
		return fault.Newf(fault.Corrupt, "read", "a message of a table", "member %d is none", from)
	}
	r := o.in[o.at(from)]
	return r.feed(piece, func(k kind, table, to int) { o.run.receive(r, k, table, to) })
}
