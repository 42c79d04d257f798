package lab

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"sync"
	"time"
)

// Process is a daemon: a program that prints one line once it is ready.
type Process struct {
	*exec.Cmd                   // whose end is waited for here
	Ready     map[string]string // the line
	Ended     chan struct{}     // closed once it has ended
	Log       *Log              // what it has said
}

// Log is what a process says, while it says it.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write takes down what is said.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns what has been said.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const (
	readyWithin = 30 * time.Second // of a daemon's start
	endedWithin = 20 * time.Second // of the signal to end
)

// Launch starts a daemon and waits for its line.
func Launch(program string, args ...string) (*Process, error) {
	p, first, err := begin(program, args)
	if err != nil {
		return nil, err
	}
	select {
	case line := <-first:
		if err = json.Unmarshal(line, &p.Ready); err == nil {
			return p, nil
		}
	case <-time.After(readyWithin):
		err = fmt.Errorf("it is not ready after %v", readyWithin)
	}
	p.Kill()
	return nil, fmt.Errorf("%v: %w\n%s", args, err, p.Log)
}

// Begin starts a daemon, and does not wait for its line.
func Begin(program string, args ...string) (*Process, error) {
	p, _, err := begin(program, args)
	return p, err
}

// begin starts a daemon, whose first line comes.
func begin(program string, args []string) (p *Process, first chan []byte, err error) {
	p = &Process{Cmd: exec.Command(program, args...), Ended: make(chan struct{}), Log: &Log{}}
	p.Stderr = p.Log
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		return nil, nil, err
	}
	first = make(chan []byte, 1)
	go func() {
		s := bufio.NewScanner(out)
		s.Scan()
		first <- bytes.Clone(s.Bytes())
		for s.Scan() { // what else it prints is not looked at
		}
		_ = p.Wait()
		close(p.Ended)
	}()
	return p, first, nil
}

// Kill ends it at once.
func (p *Process) Kill() {
	_ = p.Process.Kill()
	<-p.Ended
}

// await waits until it has ended, and kills it and says so where it does not.
func (p *Process) await(name string) error {
	select {
	case <-p.Ended:
		return nil
	case <-time.After(endedWithin):
		p.Kill()
		return fmt.Errorf("%s does not end\n%s", name, p.Log)
	}
}
