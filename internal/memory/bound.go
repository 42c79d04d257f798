package memory

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Bound is a process, with all that it starts, that may take so much memory and no more. It leads a process group.
type Bound struct {
	Most  uint64 // bytes; 0 is no limit
	group *group // nil where the system has delegated none
	pid   int
	over  atomic.Bool // it was seen to have taken more
	ended chan struct{}
}

// Start starts a command under a limit in bytes; name distinguishes it from others that run. A nil Groups stands for a
// system that has delegated none: each process of the command is limited then, and all of them are watched.
func (g *Groups) Start(cmd *exec.Cmd, name string, most uint64) (*Bound, error) {
	b := &Bound{Most: most, ended: make(chan struct{})}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	if g != nil && most > 0 {
		if err := b.startIn(g, cmd, name); err != nil {
			return nil, err
		}
	} else if err := cmd.Start(); err != nil {
		return nil, err
	}
	b.pid = cmd.Process.Pid
	DiesFirst(b.pid)
	if b.group == nil && most > 0 {
		_ = unix.Prlimit(b.pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}, nil) // watch sees what passes it
		go b.watch()
	}
	return b, nil
}

// startIn starts a command in a group of its own.
func (b *Bound) startIn(g *Groups, cmd *exec.Cmd, name string) (err error) {
	if b.group, err = g.group(name, b.Most); err != nil {
		return err
	}
	dir, err := os.Open(b.group.dir)
	if err == nil {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
		err = cmd.Start()
		dir.Close()
	}
	if err != nil {
		_ = os.Remove(b.group.dir)
	}
	return err
}

// MostOfMachine returns nine tenths of the machine's memory, in bytes; 0 where that is not known.
func MostOfMachine() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return uint64(info.Totalram) * uint64(info.Unit) / 10 * 9
}

// Kill ends the process and all that it has started.
func (b *Bound) Kill() {
	if b.group != nil {
		b.group.kill()
	}
	_ = syscall.Kill(-b.pid, syscall.SIGKILL)
}

// watch ends the process group if it takes more than it may, where no control group does.
func (b *Bound) watch() {
	look := time.NewTicker(watchEvery)
	defer look.Stop()
	for {
		select {
		case <-b.ended:
			return
		case <-look.C:
			if anonymous(b.pid) > b.Most {
				b.over.Store(true)
				b.Kill()
			}
		}
	}
}

const watchEvery = time.Second

// Ended frees what held the limit, when the process has been waited for, and ends what it has left behind. It reports
// whether the process was ended because it had taken too much.
func (b *Bound) Ended() (exceeded bool) {
	close(b.ended)
	b.Kill()
	if b.group == nil {
		return b.over.Load()
	}
	exceeded = b.group.exceeded()
	for range removeTries { // the kernel takes a moment to bury them
		if err := os.Remove(b.group.dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			break
		}
		time.Sleep(removeEvery)
	}
	return exceeded
}

const (
	removeTries = 100
	removeEvery = 10 * time.Millisecond
)

// anonymous returns the memory of the processes of a process group, in bytes, without the files that they have mapped.
func anonymous(pgid int) (total uint64) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range all {
		raw, err := os.ReadFile(stat)
		if err != nil {
			continue
		}
		f := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:]) // from the third of stat's on
		if len(f) > 2 && string(f[2]) == strconv.Itoa(pgid) {
			total += ofStatus(filepath.Join(filepath.Dir(stat), "status"), "RssAnon:")
		}
	}
	return total
}

// Resident returns the memory of a process in bytes, 0 where the system does not tell.
func Resident(pid int) uint64 { return ofStatus(fmt.Sprintf("/proc/%d/status", pid), "VmRSS:") }

// ofStatus returns a number of a process's status that is given in kB, in bytes.
func ofStatus(path, name string) uint64 {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(raw) {
		if v, ok := bytes.CutPrefix(line, []byte(name)); ok && len(bytes.Fields(v)) > 0 {
			kb, _ := strconv.ParseUint(string(bytes.Fields(v)[0]), 10, 64)
			return kb << 10
		}
	}
	return 0
}
