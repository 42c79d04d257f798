package console

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/volley-engine/volley/internal/history"
)

// How long a page waits for what is new in a log, how much of it is read at a time, and for how long reading goes on
// when its page is looked at no more.
const (
	readFor  = 100 * time.Millisecond
	readPart = 64 << 10
	chaseFor = 10 * time.Second
)

// read has what has come to the log since read, waits for that a while, and reports whether there was something. The
// page is locked, but for the wait.
func (p *jobPage) read(name string) (news bool) {
	before := p.taken
	if p.reading == nil {
		p.reading = make(chan struct{})
		go p.chase(name, p.reading)
	}
	done := p.reading
	p.mu.Unlock()
	select {
	case <-done:
	case <-time.After(readFor):
	}
	p.mu.Lock()
	return p.taken != before
}

// chase reads on until there is no more, beside the pages that are made meanwhile, and after what else the machine has
// to do, by half a core at the most: a log is as long as its job has been running, and who looks at a job must not slow
// it.
func (p *jobPage) chase(name string, done chan struct{}) {
	lowerPriority()
	defer close(done)
	for began := time.Now(); p.readOn(name); {
		if time.Since(began) > readFor {
			time.Sleep(readFor)
			began = time.Now()
		}
	}
}

// readOn reads a part, and reports whether there is more to read and a reader who waits for it.
func (p *jobPage) readOn(name string) (more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() {
		if r := recover(); r != nil {
			more, p.failed = false, fmt.Errorf("line by line it comes to %v", r)
		}
		if !more {
			p.reading = nil
		}
	}()
	return p.take(name) && time.Since(time.Unix(0, p.used.Load())) < chaseFor
}

// take takes the next part of the log, and reports whether there was one.
func (p *jobPage) take(name string) bool {
	file, err := os.Open(p.path)
	if err != nil {
		return false // it is not there yet
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false
	}
	if changed := info.Size() != p.size; p.follow == nil || info.Size() < p.at || p.failed != nil && changed {
		p.anew = false
		p.begin(name)
	}
	p.size = info.Size()
	if p.part == nil {
		p.part = make([]byte, readPart)
	}
	n, err := file.ReadAt(p.part, p.at)
	if p.failed != nil || n == 0 || err != nil && err != io.EOF {
		return false
	}
	from := p.at
	p.at, p.taken = p.at+int64(n), p.taken+1
	if _, err := p.follow.Write(p.part[:n]); err != nil {
		p.broken(name, from, err)
	} else {
		p.anew = p.anew && p.at <= p.until
	}
	return true
}

// begin reads the log from its beginning.
func (p *jobPage) begin(name string) {
	p.follow, p.at, p.failed = history.FollowOwn(p.path, name), 0, nil
}

// broken begins anew where a log makes no sense after what was read before: a job that was interrupted goes on from
// its last checkpoint, and what its log has after that is cut off. One that makes no sense by itself stays as it is.
func (p *jobPage) broken(name string, from int64, err error) {
	if p.anew || from == 0 {
		p.failed = err
		return
	}
	p.anew, p.until = true, from
	p.begin(name)
}

// whole reports whether all that the log has by now was read.
func (p *jobPage) whole() bool {
	info, err := os.Stat(p.path)
	return err == nil && p.at == info.Size() || os.IsNotExist(err)
}
