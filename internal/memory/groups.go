package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

// Groups makes control groups (version 2) below the one that the system has given this process for itself, as systemd
// does by Delegate=memory, and a container's runtime by a namespace.
type Groups struct {
	dir  string
	made atomic.Uint64
}

// Where a system shows its control groups, and in which one this process is.
const (
	groupsRoot = "/sys/fs/cgroup"
	groupsSelf = "/proc/self/cgroup"
)

// Files of a control group.
const (
	procs       = "cgroup.procs"
	controllers = "cgroup.controllers"
	subtree     = "cgroup.subtree_control"
	killAll     = "cgroup.kill"
	most        = "memory.max"
	events      = "memory.events"
)

// Divide moves this process, once, into a leaf of the group that it was given, so that there may be others beside it.
// It returns nil where it was given none, and tells the log why.
func Divide(log hclog.Logger) *Groups {
	g, err := divided()
	if err != nil {
		log.Info("memory is limited by rlimits, and watched", "no control group, as", err)
		return nil
	}
	log.Info("memory is limited by control groups", "below", g.dir)
	return g
}

var divided = sync.OnceValues(func() (*Groups, error) { return divide(groupsRoot, groupsSelf) })

func divide(root, self string) (*Groups, error) {
	raw, err := os.ReadFile(self)
	if err != nil {
		return nil, err
	}
	_, path, ok := strings.Cut(string(raw), "0::")
	if !ok {
		return nil, errors.New("there are no control groups of version 2")
	}
	path, _, _ = strings.Cut(path, "\n")
	g := &Groups{dir: filepath.Join(root, path)}
	if err := g.delegated(path); err != nil {
		return nil, err
	}
	if err := g.open(); err != nil {
		return nil, err
	}
	return g, nil
}

// delegated returns why a group is not this process's to divide.
func (g *Groups) delegated(path string) error {
	have, err := os.ReadFile(g.file(controllers))
	switch {
	case err != nil:
		return err
	case !slices.Contains(strings.Fields(string(have)), "memory"):
		return fmt.Errorf("the group %s has no memory controller", path)
	}
	if _, err := os.Stat(g.file(most)); err != nil {
		return errors.New("this process is in the system's root group")
	}
	if path != "/" && !marked(g.dir) { // / is the root of a namespace: a container's own
		return fmt.Errorf("the group %s is not delegated (systemd: Delegate=memory)", path)
	}
	in, err := os.ReadFile(g.file(procs))
	if err == nil && strings.TrimSpace(string(in)) != strconv.Itoa(os.Getpid()) {
		return fmt.Errorf("other processes are in the group %s", path)
	}
	return err
}

// marked reports whether systemd has noted that it leaves a group to its processes.
func marked(dir string) bool {
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// open makes room for groups beside this process's: a group that is divided may have no process of its own.
func (g *Groups) open() error {
	leaf := g.file("daemon")
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	self := strconv.Itoa(os.Getpid())
	err := write(filepath.Join(leaf, procs), self)
	if err == nil {
		err = write(g.file(subtree), "+memory")
	}
	if err != nil {
		_ = write(g.file(procs), self) // as it was
		_ = os.Remove(leaf)
	}
	return err
}

// write sets a file of a control group, all of which the kernel has made.
func write(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

func (g *Groups) file(name string) string { return filepath.Join(g.dir, name) }

// group is one of Groups: of a process and all that it starts.
type group struct{ dir string }

// group makes a group that may take a number of bytes, and no swap beyond them: what takes more is ended whole.
func (g *Groups) group(name string, bytes uint64) (*group, error) {
	n := &group{g.file(fmt.Sprintf("%s.%d", name, g.made.Add(1)))}
	if err := os.Mkdir(n.dir, 0o755); err != nil {
		return nil, err
	}
	err := write(n.file(most), strconv.FormatUint(bytes, 10))
	if err == nil {
		err = write(n.file("memory.oom.group"), "1")
	}
	if err != nil {
		_ = os.Remove(n.dir)
		return nil, err
	}
	_ = write(n.file("memory.swap.max"), "0") // a system without swap has none
	return n, nil
}

func (g *group) file(name string) string { return filepath.Join(g.dir, name) }

// exceeded reports whether a process of the group was ended because it took too much.
func (g *group) exceeded() bool {
	raw, err := os.ReadFile(g.file(events))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(raw)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strings.TrimSpace(n) != "0"
		}
	}
	return false
}

// kill ends the processes of the group, those too that have left their process group.
func (g *group) kill() { _ = write(g.file(killAll), "1") } // not there before Linux 5.14
