package netns

import (
	"fmt"
	"strings"
)

// Wired makes a network of hosts that a bridge of the kernel joins, of which each sends a number of bytes a second at
// the most: one that takes less of the processors than a switch does, and whose links cannot be changed. Some kernels
// are built without what it needs.
func Wired(rate float64, hosts ...string) (n *Network, err error) {
	n = &Network{hub: space("hub")}
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	if err := run("ip", "netns", "add", n.hub); err != nil {
		return n, err
	}
	if err := n.all(n.hub, "link add bridge type bridge", "link set bridge up"); err != nil {
		return n, err
	}
	for i, name := range hosts {
		h, err := n.host(i, name)
		if err != nil {
			return n, err
		}
		port := fmt.Sprint("port", i)
		if err := n.all(n.hub, "link add "+port+" type veth peer name "+device+" netns "+h.ns,
			"link set "+port+" master bridge up"); err != nil {
			return n, err
		}
		if err := n.all(h.ns, "address add "+h.IP+"/24 dev "+device, "link set "+device+" up",
			"link set lo up"); err != nil {
			return n, err
		}
		bits := fmt.Sprint(int64(8*rate), "bit")
		if err := run("tc", "-n", h.ns, "qdisc", "add", "dev", device, "root", "tbf", "rate", bits, "burst", "256k",
			"latency", "50ms"); err != nil {
			return n, err
		}
	}
	return n, nil
}

// all runs commands of ip in a namespace.
func (n *Network) all(ns string, commands ...string) error {
	for _, c := range commands {
		if err := run("ip", append([]string{"-n", ns}, strings.Fields(c)...)...); err != nil {
			return err
		}
	}
	return nil
}
