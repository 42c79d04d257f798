package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/volley-engine/volley/internal/trust"
)

// Standing is what a driver says of the cluster's drivers.
type Standing struct {
	ID      string   `json:"id"`
	Leads   bool     `json:"leads"`
	Term    uint64   `json:"term"`
	Leader  string   `json:"leader,omitempty"` // address of the driver that leads, as far as this one knows
	Drivers []string `json:"drivers"`          // addresses of all
	Wire    string   `json:"wire"`             // the newest version of the protocol that it speaks
	Module  string   `json:"module,omitempty"` // version of its module; empty before 0.2.0
	HTTP    string   `json:"http,omitempty"`   // where REST and metrics are served
	Entries uint64   `json:"entries"`          // that its journal has had; at most one where the cluster has just been made
	Why     string   `json:"why,omitempty"`    // why it does not take part, if it does not
	// Founding distinguishes the cluster from what it was before it was restored.
	Founding string `json:"founding,omitempty"`
	Run      string `json:"run,omitempty"` // distinguishes the driver's process from others of it
}

// standingMost bounds what is read of a Standing.
const standingMost = 64 << 10

// AskStanding asks a driver who leads.
func AskStanding(ctx context.Context, addr string, by Party) (s Standing, err error) {
	conn, err := by.DialProtocol(ctx, addr, WhoLeads, trust.OfRole(trust.Driver))
	if err != nil {
		return s, err
	}
	defer conn.Close()
	if at, ok := ctx.Deadline(); ok {
		_ = conn.SetReadDeadline(at) // one that cannot be set fails at once
	}
	err = json.NewDecoder(io.LimitReader(conn, standingMost)).Decode(&s)
	return s, err
}

// ServeStanding answers the callers of a room that have a certificate of the cluster.
func ServeStanding(r *Room, standing func() Standing) {
	for {
		conn, err := r.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			if _, ok := PeerOf(conn); ok {
				_ = conn.SetWriteDeadline(time.Now().Add(handshakeWait)) // one that cannot be set fails at once
				_ = json.NewEncoder(conn).Encode(standing())             // the caller asks another
			}
		}()
	}
}

const (
	askWait    = 2 * time.Second        // for a driver's answer, at first: a bad link loses some of the asking
	settleWait = 250 * time.Millisecond // for others', once one has answered
)

// answer is what a driver says of who leads, or why it does not.
type answer struct {
	addr string
	Standing
	err error
}

// leader finds the driver that leads: of those that say so, the one of the latest term. It returns all drivers that
// are known, too.
func leader(ctx context.Context, wait time.Duration, drivers []string, by Party) (addr string, all []string, _ error) {
	answers, silent := gather(ctx, wait, drivers, by)
	var best answer
	var why []string
	all = slices.Clone(drivers)
	for _, a := range answers {
		switch {
		case a.err != nil:
			why = append(why, fmt.Sprintf("%s: %v", a.addr, a.err))
			continue
		case a.Leads && a.Term >= best.Term:
			best = a
		case !a.Leads && (a.Leader == "" || a.Why != ""):
			why = append(why, a.addr+" knows of none"+because(a.Why))
		}
		for _, d := range a.Drivers {
			if !slices.Contains(all, d) {
				all = append(all, d)
			}
		}
	}
	switch {
	case len(all) > len(drivers): // drivers that were not known, and may know of another that leads
		return leader(ctx, wait, all, by)
	case best.Leads:
		return best.addr, all, nil
	}
	return "", all, unled(answers, why, silent)
}

// gather asks drivers who leads. It waits for them, but not for long once one has answered; silent says that some had
// neither answered nor refused by then.
func gather(ctx context.Context, wait time.Duration, drivers []string, by Party) (answers []answer, silent bool) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	heard := make(chan answer, len(drivers))
	for _, a := range drivers {
		go func() {
			s, err := AskStanding(ctx, a, by)
			heard <- answer{a, s, err}
		}()
	}
	var settled <-chan time.Time
	for range drivers {
		select {
		case a := <-heard:
			switch answers = append(answers, a); {
			case a.err == nil:
				settled = time.After(settleWait)
			case timedOut(a.err), ctx.Err() != nil:
				answers, silent = answers[:len(answers)-1], true
			}
		case <-settled:
			return answers, true
		case <-ctx.Done():
			return answers, true
		}
	}
	return answers, silent
}

// timedOut reports whether an error is that time was up. A connection's deadline may pass before the context's that it
// was taken from.
func timedOut(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// unled returns why no driver is known to lead.
func unled(answers []answer, why []string, silent bool) error {
	answered := slices.ContainsFunc(answers, func(a answer) bool { return a.err == nil })
	strange := slices.IndexFunc(answers, func(a answer) bool { return a.err != nil && untrusted(a.err) })
	switch {
	case strange >= 0 && !answered && !silent:
		return fmt.Errorf("handshake failed: %w", answers[strange].err)
	case silent && len(why) > 0:
		why = append(why, "others do not answer")
	case silent:
		return errSilent
	}
	switch err := errors.New(strings.Join(why, "; ")); {
	case answered:
		return fmt.Errorf("%w: %w", errNoneLeads, err)
	case silent:
		return fmt.Errorf("%w: %w", errSilent, err)
	default:
		return err
	}
}

// untrusted reports whether a driver was not asked because one side does not trust the other.
func untrusted(err error) bool {
	return strings.Contains(err.Error(), "trust ") || strings.Contains(err.Error(), "tls:")
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// follower connects to the driver that leads, and learns of drivers that are added.
type follower struct {
	by   Party
	list string
	mu   sync.Mutex
	to   []string
}

// learned are the drivers that this process has come to know, by the list that it began with.
var learned sync.Map

// Learned returns the drivers of a list, with those that this process has come to know since.
func Learned(list string) []string {
	if all, ok := learned.Load(list); ok {
		return all.([]string)
	}
	return Drivers(list)
}

// connect connects to the driver that leads.
func (f *follower) connect(ctx context.Context, _ string) (net.Conn, error) {
	f.mu.Lock()
	drivers := slices.Clone(f.to)
	f.mu.Unlock()
	addr, all, err := patiently(ctx, drivers, f.by)
	f.mu.Lock()
	f.to = all
	f.mu.Unlock()
	if err == nil {
		learned.Store(f.list, all)
	}
	if err != nil {
		return nil, err
	}
	return Connect(ctx, addr)
}

// patiently finds the driver that leads. It waits for one to be elected while there are drivers that answer, and asks
// again, for longer, where all are silent: one that refuses is no such. An ask that the end of the wait cuts short says
// nothing of drivers that answered before.
func patiently(ctx context.Context, drivers []string, by Party) (addr string, all []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, electWait)
	defer cancel()
	end, _ := ctx.Deadline()
	for wait := askWait; ; {
		before, short := err, time.Until(end) < wait
		addr, all, err = leader(ctx, wait, drivers, by)
		switch {
		case errors.Is(err, errSilent) && short && before != nil:
			return "", all, before
		case errors.Is(err, errSilent):
			wait *= 2
		case !errors.Is(err, errNoneLeads):
			return addr, all, err
		}
		drivers = all
		select {
		case <-time.After(electLook):
		case <-ctx.Done():
			return addr, all, err
		}
	}
}

const (
	electWait = 15 * time.Second // for a driver to be elected
	electLook = 100 * time.Millisecond
)

// errNoneLeads is why there is no driver to speak with although some answer.
var errNoneLeads = errors.New("no driver leads")

// errSilent is why there is none where no driver answers or refuses.
var errSilent = errors.New("no driver answers in time")

// DialDriver prepares a connection to the driver that leads, of a list of addresses with commas between them.
func DialDriver(list string, by Party) (*grpc.ClientConn, error) {
	if err := CheckDrivers(list); err != nil {
		return nil, err
	}
	all := Learned(list)
	if _, socket := SocketPath(all[0]); socket {
		return Dial(all[0], by, trust.OfRole(trust.Driver))
	}
	return dial(all[0], by, trust.OfRole(trust.Driver), (&follower{by: by, list: list, to: all}).connect)
}

// DialFiles prepares a connection to the copies of files that another driver of a founding keeps.
func DialFiles(addr string, by Party, founding string) (*grpc.ClientConn, error) {
	if by.ID == nil {
		return nil, NoCertificate("dial", addr)
	}
	proof := credentials.NewTLS(by.ID.Client([]string{OfFiles(founding)}, trust.OfRole(trust.Driver)))
	return dialBy(addr, by, proof, Connect)
}

// Drivers returns the addresses of a list, in which commas are between them.
func Drivers(list string) (out []string) {
	if _, socket := SocketPath(list); socket {
		return []string{list}
	}
	for a := range strings.SplitSeq(list, ",") {
		if a = strings.TrimSpace(a); a != "" && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// CheckDrivers refuses what is no list of drivers' addresses.
func CheckDrivers(list string) error {
	all := Drivers(list)
	for _, a := range all {
		if err := CheckAddress("use the driver at", a); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return CheckAddress("use the driver at", list)
	}
	return nil
}
