package pace

import (
	"fmt"
	"strings"
	"time"
)

// network is what a law says of messages; zero values are the clock's own.
type network struct {
	links    []float64 // bytes per second into executors, in turn
	latency  time.Duration
	driver   float64 // bytes per second out of the driver, and as many into it
	handling float64 // bytes of tables' messages per second that a slot's core writes or reads
}

// read takes one law up.
func (n *network) read(name, arg string) (err error) {
	switch {
	case name == "link" && n.links == nil:
		for _, text := range strings.Split(arg, ",") {
			v, err := parseRate(text)
			if err != nil {
				return err
			}
			n.links = append(n.links, v)
		}
		return nil
	case name == "latency" && n.latency == 0:
		if n.latency, err = time.ParseDuration(arg); err != nil || n.latency <= 0 {
			return fmt.Errorf("%q is no latency, as 2ms", arg)
		}
		return nil
	case name == "driver-link" && n.driver == 0:
		n.driver, err = parseRate(arg)
		return err
	case name == "handling" && n.handling == 0:
		n.handling, err = parseRate(arg)
		return err
	}
	return fmt.Errorf("%s is given twice", name)
}

// units of parseRate, in bytes.
var units = []struct {
	name  string
	bytes float64
}{{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}}

// parseRate reads bytes per second, as 4MB/s.
func parseRate(arg string) (float64, error) {
	text, ok := strings.CutSuffix(arg, "/s")
	for _, u := range units {
		if num, found := strings.CutSuffix(text, u.name); ok && found {
			v, err := positive(num)
			return v * u.bytes, err
		}
	}
	return 0, fmt.Errorf("%q is no speed of a link, as 4MB/s", arg)
}

// Computed reports whether the law has parts that only computed time has: messages are not kept waiting on the real
// clock.
func (l *Law) Computed() bool {
	return l != nil && (l.network.latency > 0 || l.network.driver > 0 || l.network.handling > 0)
}

// Latency returns what a message takes beside its bytes; normally is where the law does not say.
func (l *Law) Latency(normally time.Duration) time.Duration {
	if l == nil || l.network.latency == 0 {
		return normally
	}
	return l.network.latency
}

// DriverLink returns how long bytes occupy the driver's link.
func (l *Law) DriverLink(bytes int64) time.Duration {
	if l == nil || l.network.driver == 0 {
		return 0
	}
	return seconds(float64(bytes) / l.network.driver)
}

// Handles reports whether slots' cores write and read messages, as there are no others.
func (l *Law) Handles() bool { return l != nil && l.network.handling > 0 }

// Handling returns how long a slot's core takes to write or to read bytes of tables' messages; without a law there are
// cores to spare for that.
func (l *Law) Handling(bytes int64) time.Duration {
	if !l.Handles() {
		return 0
	}
	return seconds(float64(bytes) / l.network.handling)
}

// Send returns when bytes that begin to be sent to or by an executor at a time have arrived; at a speed in bytes per
// second, or at the law's where that is slower.
func (l *Law) Send(executor int, at time.Duration, bytes int64, speed float64) time.Duration {
	if l != nil && len(l.network.links) > 0 {
		if link := l.network.links[executor%len(l.network.links)]; speed == 0 || link < speed {
			speed = link
		}
	}
	if speed == 0 {
		return at
	}
	return at + seconds(float64(bytes)/speed)
}

// seconds returns a time, at most some years: it is added to others.
func seconds(s float64) time.Duration {
	return time.Duration(min(s*float64(time.Second), float64(forever/16)))
}
