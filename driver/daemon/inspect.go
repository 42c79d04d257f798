package daemon

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

const (
	// profileMost is the longest profile that can be asked for.
	profileMost = 10 * time.Minute
	// inspectWait is how long processes may take to answer, beside the profile itself.
	inspectWait = 10 * time.Second
)

// inspections are those that wait for answers, by ticket.
type inspections struct {
	mu   sync.Mutex
	open map[string]*inspection
}

// inspection is what has been asked of the processes of a job.
type inspection struct {
	job     string
	answers chan *wire.Inspection
}

func (i *inspections) begin(job string, asked int) (ticket string, open *inspection) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.open == nil {
		i.open = map[string]*inspection{}
	}
	ticket, open = trust.NewSecret(), &inspection{job, make(chan *wire.Inspection, asked)}
	i.open[ticket] = open
	return ticket, open
}

func (i *inspections) end(ticket string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.open, ticket)
}

func (i *inspections) of(ticket string) *inspection {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.open[ticket]
}

// Inspect asks a job's process and its runners, and sends on what they answer; it names those that do not in time.
func (d *Daemon) Inspect(req *wire.InspectRequest, stream wire.Cluster_InspectServer) error {
	w, err := d.jobs.find(req.Id)
	if err != nil {
		return err
	}
	profile := time.Duration(req.ProfileNs)
	if profile < 0 || profile > profileMost {
		return status.Errorf(codes.InvalidArgument, "a profile cannot take %v: at most %v", profile, profileMost)
	}
	d.did(stream.Context(), "Inspect", req.Id, nil)
	if info, _ := w.snapshot(); info.State != JobRunning {
		return status.Errorf(codes.InvalidArgument, "job %s is %s: only one that runs has processes", info.Id,
			info.State)
	}
	executors := d.members.all()
	waits := map[string]bool{"": true}
	ticket, open := d.inspections.begin(req.Id, len(executors)+1)
	defer d.inspections.end(ticket)
	ask := &wire.Ask{Ticket: ticket, ProfileNs: req.ProfileNs}
	w.tell(&wire.ForJob{Body: &wire.ForJob_Ask{Ask: ask}})
	for _, m := range executors {
		if m.info().State != "alive" {
			continue // no job has a runner there
		}
		waits[m.name] = true
		_ = m.out.Put(&wire.ForExecutor{Body: &wire.ForExecutor_Ask{Ask: &wire.AskRunner{Job: req.Id, Ask: ask}}})
	}
	return open.collect(stream, waits, profile)
}

// collect sends answers on until all have come, or time is up.
func (i *inspection) collect(stream wire.Cluster_InspectServer, waits map[string]bool, profile time.Duration) error {
	ctx, cancel := context.WithTimeout(stream.Context(), profile+inspectWait)
	defer cancel()
	for len(waits) > 0 {
		select {
		case a := <-i.answers:
			if !waits[a.Executor] {
				continue // it has answered twice
			}
			delete(waits, a.Executor)
			if err := stream.Send(a); err != nil {
				return err
			}
		case <-ctx.Done():
			for executor := range waits {
				if err := stream.Send(&wire.Inspection{Executor: executor,
					Failure: "it has not answered"}); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return nil
}

// Inspected takes what a process was asked for.
func (d *Daemon) Inspected(ctx context.Context, a *wire.Inspection) (*wire.InspectedReply, error) {
	open := d.inspections.of(a.Ticket)
	who := d.admission.who(wire.CallerOf(ctx))
	if open == nil || who.ID != open.job || who.Cluster != oneUser && who.Runner != a.Executor {
		return nil, status.Error(codes.PermissionDenied, "this was not asked for")
	}
	select {
	case open.answers <- a:
		return &wire.InspectedReply{}, nil
	default:
		return nil, status.Error(codes.ResourceExhausted, "there are more answers than questions")
	}
}
