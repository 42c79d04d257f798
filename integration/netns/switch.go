package netns

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Link is what a host's packets meet on their way to another.
type Link struct {
	Cut   bool          // none arrives
	Delay time.Duration // how late one is
	Loss  float64       // the share that does not arrive
	Rate  float64       // bytes a second, from a host to another; 0 is no limit
}

// Switch carries packets between hosts.
type Switch struct {
	mu    sync.Mutex
	rng   *rand.Rand
	ports map[netip.Addr]*os.File
	every Link
	links map[[2]string]Link // by addresses
	queue map[[2]netip.Addr]chan packet
	ended chan struct{}
	wg    sync.WaitGroup
}

// packet is one that is on its way.
type packet struct {
	data   []byte
	due    time.Time
	number int // of those of its host
}

// device is the name of a host's interface, packetMost the size of its packets.
const (
	device     = "eth0"
	packetMost = 2048
	queueMost  = 4096                  // packets on one way; others are lost, as at any switch
	queueTime  = 20 * time.Millisecond // that a packet waits at the most, where there is a rate
)

func newSwitch(seed uint64) *Switch {
	return &Switch{rng: rand.New(rand.NewPCG(seed, seed)), ports: map[netip.Addr]*os.File{},
		links: map[[2]string]Link{},
		queue: map[[2]netip.Addr]chan packet{}, ended: make(chan struct{})}
}

// Every sets what all links are like but those that Set has been called for.
func (s *Switch) Every(l Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.every = l
}

// Set sets what packets of a host meet on their way to another: one way.
func (s *Switch) Set(from, to *Host, l Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links[[2]string{from.IP, to.IP}] = l
}

// Partition cuts a host off from others, both ways.
func (s *Switch) Partition(h *Host, from ...*Host) {
	for _, o := range from {
		s.Set(h, o, Link{Cut: true})
		s.Set(o, h, Link{Cut: true})
	}
}

// SetAll sets what packets meet on all ways at once; on those that are not named it is what Every has.
func (s *Switch) SetAll(ways map[[2]*Host]Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.links)
	for way, l := range ways {
		s.links[[2]string{way[0].IP, way[1].IP}] = l
	}
}

// Heal has all links be as Every has them.
func (s *Switch) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.links)
}

// plug makes a host's interface, whose packets come here.
func (s *Switch) plug(h *Host) error {
	f, err := tunIn(filepath.Join("/run/netns", h.ns))
	if err != nil {
		return err
	}
	s.ports[netip.MustParseAddr(h.IP)] = f
	return nil
}

// tunIn makes an interface in a namespace, and returns the end at which its packets are read and written.
func tunIn(ns string) (f *os.File, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // it ends with this goroutine: no other gets into the namespace
		var space, fd int
		if space, err = unix.Open(ns, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return
		}
		defer unix.Close(space)
		if err = unix.Setns(space, unix.CLONE_NEWNET); err != nil {
			return
		}
		if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
			return
		}
		var req *unix.Ifreq
		if req, err = unix.NewIfreq(device); err == nil {
			req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
			err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
		}
		if err != nil {
			unix.Close(fd)
			return
		}
		f = os.NewFile(uintptr(fd), ns)
	}()
	<-done
	if err != nil {
		err = fmt.Errorf("make an interface in %s: %w", ns, err)
	}
	return f, err
}

// serve carries packets until stop. All ways are there before the first packet is read.
func (s *Switch) serve() {
	for from := range s.ports {
		for to, g := range s.ports {
			q := make(chan packet, queueMost)
			s.queue[[2]netip.Addr{from, to}] = q
			s.wg.Go(func() { s.deliver(q, g) })
		}
	}
	for from, f := range s.ports {
		s.wg.Go(func() { s.receive(from, f) })
	}
}

// receive takes what a host sends, and puts it on its way.
func (s *Switch) receive(from netip.Addr, f *os.File) {
	buf, free := make([]byte, packetMost), map[netip.Addr]time.Time{}
	for number := 0; ; number++ {
		n, err := f.Read(buf)
		if err != nil {
			return
		}
		if n < 20 || buf[0]>>4 != 4 {
			continue // IPv6 looks for its neighbours
		}
		to := netip.AddrFrom4([4]byte(buf[16:20]))
		q := s.queue[[2]netip.Addr{from, to}]
		l, lost := s.link(from, to)
		if q == nil || lost {
			continue
		}
		due := time.Now()
		if l.Rate > 0 {
			at := free[to]
			if at.Sub(due) > queueTime {
				continue
			}
			if at.After(due) {
				due = at
			}
			due = due.Add(time.Duration(float64(n) / l.Rate * float64(time.Second)))
			free[to] = due
		}
		select {
		case q <- packet{append([]byte(nil), buf[:n]...), due.Add(l.Delay), number}:
		default:
		}
	}
}

// link returns what a packet meets, and reports whether it is lost.
func (s *Switch) link(from, to netip.Addr) (Link, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.links[[2]string{from.String(), to.String()}]
	if !ok {
		l = s.every
	}
	return l, l.Cut || l.Loss > 0 && s.rng.Float64() < l.Loss
}

// deliver hands packets of one way over, each when it is due: one whose link is quick overtakes those that are late.
func (s *Switch) deliver(q chan packet, to *os.File) {
	var late packets
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case p := <-q:
			heap.Push(&late, p)
		case <-timer.C:
		case <-s.ended:
			return
		}
		for len(late) > 0 && !time.Now().Before(late[0].due) {
			_, _ = to.Write(heap.Pop(&late).(packet).data) // its host may be gone
		}
		if len(late) > queueMost {
			late = late[:0] // a link that is so slow loses what it is sent
		}
		if len(late) > 0 {
			timer.Reset(time.Until(late[0].due))
		}
	}
}

// packets are those of one way that are on it, the first that is due first.
type packets []packet

func (p packets) Len() int { return len(p) }

func (p packets) Less(i, j int) bool {
	return p[i].due.Before(p[j].due) || p[i].due.Equal(p[j].due) && p[i].number < p[j].number
}

func (p packets) Swap(i, j int) { p[i], p[j] = p[j], p[i] }

// Push adds a packet.
func (p *packets) Push(x any) { *p = append(*p, x.(packet)) }

// Pop takes the last.
func (p *packets) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// stop ends the switch.
func (s *Switch) stop() {
	close(s.ended)
	for _, f := range s.ports {
		f.Close()
	}
	s.wg.Wait()
}
