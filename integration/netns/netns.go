package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
)

// Network is hosts that a switch joins, or a bridge.
type Network struct {
	Hosts   []*Host
	*Switch        // nil of Wired, whose links cannot be changed
	hub     string // namespace of the bridge; none is a switch
}

// Host is a namespace with an address.
type Host struct {
	Name string
	IP   string
	ns   string
}

// made counts the namespaces of this process.
var made atomic.Int64

// space returns a name for a namespace that no other has.
func space(host string) string { return fmt.Sprintf("volley-%d-%d-%s", os.Getpid(), made.Add(1), host) }

// Available returns why networks cannot be made here; nil where they can.
func Available() error {
	if os.Geteuid() != 0 {
		return errors.New("only root can make network namespaces")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return fmt.Errorf("%w: it is of iproute2", err)
	}
	n, err := New(1, "probe")
	if err == nil {
		n.Close()
	}
	return err
}

// subnet is the one that hosts are in; each network has a switch of its own, so that it can be the same.
const subnet = "10.77.0."

// New makes a network of hosts. What its links lose follows from the seed, and from when packets come.
func New(seed uint64, hosts ...string) (n *Network, err error) {
	n = &Network{Switch: newSwitch(seed)}
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	for i, name := range hosts {
		h, err := n.host(i, name)
		if err != nil {
			return n, err
		}
		if err := n.plug(h); err != nil {
			return n, err
		}
		if err := n.all(h.ns, "address add "+h.IP+"/24 dev "+device, "link set "+device+" mtu 1500 up",
			"link set lo up"); err != nil {
			return n, err
		}
	}
	n.serve()
	return n, nil
}

// host makes a host's namespace.
func (n *Network) host(number int, name string) (*Host, error) {
	h := &Host{Name: name, IP: fmt.Sprint(subnet, number+1), ns: space(name)}
	if err := run("ip", "netns", "add", h.ns); err != nil {
		return nil, err
	}
	n.Hosts = append(n.Hosts, h)
	return h, nil
}

// Host returns a host by its name.
func (n *Network) Host(name string) *Host {
	for _, h := range n.Hosts {
		if h.Name == name {
			return h
		}
	}
	panic("there is no host " + name)
}

// Close removes the network. Processes on it are alone from then on.
func (n *Network) Close() {
	if n.Switch != nil {
		n.stop()
	}
	if n.hub != "" {
		_ = run("ip", "netns", "del", n.hub)
	}
	for _, h := range n.Hosts {
		_ = run("ip", "netns", "del", h.ns) // it may be gone
	}
}

// On returns the program and the arguments by which a command runs on the host.
func (h *Host) On(program string, args ...string) (string, []string) {
	return "ip", append([]string{"netns", "exec", h.ns, program}, args...)
}

func run(program string, args ...string) error {
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, out)
	}
	return nil
}
