package flight

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"

	arrowflight "github.com/apache/arrow/go/v15/arrow/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/fault"
)

// pathIn returns the path of a descriptor: a command is taken for one that is written with slashes.
func pathIn(d *arrowflight.FlightDescriptor) ([]string, error) {
	path := d.GetPath()
	if d.GetType() == arrowflight.DescriptorCMD {
		path = pathOf(string(d.GetCmd()))
	}
	if len(path) == 0 {
		return nil, status.Error(codes.InvalidArgument, "the descriptor has no path: want one such as jobs, or "+
			"datasets and a directory")
	}
	return path, nil
}

// pathOf returns the names of a path. What follows datasets/ is one name, as it is.
func pathOf(text string) []string {
	if text == "" {
		return nil
	}
	if dir, ok := strings.CutPrefix(text, Datasets+"/"); ok && dir != "" {
		return []string{Datasets, dir}
	}
	return strings.Split(strings.Trim(text, "/"), "/")
}

// Datasets is the first name of the paths of datasets that were saved; the second is where.
const Datasets = "datasets"

func (f Flight) descriptor() *arrowflight.FlightDescriptor {
	return &arrowflight.FlightDescriptor{Type: arrowflight.DescriptorPATH, Path: f.Path}
}

// codesOf are by what the protocol says what a failure is.
var codesOf = map[fault.Kind]codes.Code{
	fault.BadInput: codes.InvalidArgument, fault.Usage: codes.InvalidArgument, fault.Corrupt: codes.DataLoss,
	fault.NoResources: codes.ResourceExhausted, fault.Timeout: codes.DeadlineExceeded,
	fault.Cancelled: codes.Canceled, fault.Unauthorized: codes.PermissionDenied,
	fault.PlanMismatch: codes.FailedPrecondition, fault.LostInput: codes.FailedPrecondition,
}

// failure returns an error as the protocol has it.
func failure(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	code, known := codesOf[fault.KindOf(err)]
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code = codes.NotFound
	case errors.Is(err, fs.ErrExist):
		code = codes.AlreadyExists
	case !known:
		code = codes.Internal
	}
	return status.Error(code, err.Error())
}

// How many streams are open at a time, and how many of them are one caller's.
const (
	mostStreams    = 128
	mostOfACaller  = 32
	mostSaves      = 8 // of all: a message that comes is as large as its sender makes it
	againIfNoneNow = "read fewer side by side, or try again"
)

// openStreams are those that go on.
type openStreams struct {
	mu    sync.Mutex
	all   int
	saves int
	by    map[string]int
}

// takeSave notes a caller's save, until it is released.
func (o *openStreams) takeSave(who string) (release func(), err error) {
	stream, err := o.take(who)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	busy := o.saves
	if busy < mostSaves {
		o.saves++
	}
	o.mu.Unlock()
	if busy >= mostSaves {
		stream()
		return nil, status.Errorf(codes.ResourceExhausted, "%d datasets are being saved: try again", busy)
	}
	return func() {
		stream()
		o.mu.Lock()
		defer o.mu.Unlock()
		o.saves--
	}, nil
}

// take notes a caller's stream, until it is released.
func (o *openStreams) take(who string) (release func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.by == nil {
		o.by = map[string]int{}
	}
	if o.all >= mostStreams || o.by[who] >= mostOfACaller {
		return nil, status.Errorf(codes.ResourceExhausted, "%d streams are open, %d of them of %s: "+
			"%s", o.all, o.by[who],
			who, againIfNoneNow)
	}
	o.all++
	o.by[who]++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.all--
		if o.by[who]--; o.by[who] == 0 {
			delete(o.by, who)
		}
	}, nil
}
