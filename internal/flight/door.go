package flight

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	arrowflight "github.com/apache/arrow/go/v15/arrow/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/arrowstream"
	"github.com/volley-engine/volley/storage/input/files"
)

// Calls of the protocol, as servers name them.
const (
	service       = "/arrow.flight.protocol.FlightService/"
	ListFlights   = service + "ListFlights"
	GetFlightInfo = service + "GetFlightInfo"
	GetSchema     = service + "GetSchema"
	DoGet         = service + "DoGet"
	DoPut         = service + "DoPut"
)

// Is reports whether a call is one of the protocol.
func Is(method string) bool { return strings.HasPrefix(method, service) }

// Door serves the protocol. At an executor it has no catalog, and serves files.
type Door struct {
	arrowflight.BaseFlightServer
	Catalog Catalog
	// Key is that of tickets, now; of no length it opens none.
	Key func() []byte
	// Who names a caller, and whether it may read now.
	Who func(ctx context.Context) (string, error)
	// Ends returns where a file may be read, best first, if that is elsewhere, too.
	Ends func(f files.File) Ends

	Patience time.Duration // with streams that do not move; 0 is a minute
	Now      func() time.Time

	open openStreams
}

// Ends are where a file is read.
type Ends struct {
	At   []string // the locations
	Name string   // for which the certificate at the first is, which clients may not know it by; may be empty
}

// Catalog is what there is to read, for a caller.
type Catalog interface {
	// List yields the flights whose paths begin with some names, without their files.
	List(ctx context.Context, below []string, yield func(Flight) error) error
	// Find returns a flight.
	Find(ctx context.Context, path []string) (Flight, error)
	// Save makes a dataset of the messages that next returns until io.EOF.
	Save(ctx context.Context, path []string, next func() (arrowstream.Message, error), moved func()) (rows int64,
		err error)
}

// Flight is a table that can be read: of files, or one that is made while it is read.
type Flight struct {
	Path        []string
	Rows, Bytes int64 // −1 where that is not known
	Files       []files.File
	As          arrowstream.Format // of the files; empty looks
	// Make yields the messages of one that is made, and calls moved while it takes long.
	Make func(ctx context.Context, moved func(), yield func(arrowstream.Message) error) error
}

// admit returns a caller's place, which take gives out, until it is released.
func (d *Door) admit(ctx context.Context, take func(who string) (func(), error)) (release func(), err error) {
	if d.Catalog == nil {
		return nil, noCatalog()
	}
	who, err := d.Who(ctx)
	if err != nil {
		return nil, err
	}
	return take(who)
}

// ListFlights lists what the caller may read, below the path that the criteria have, if they have one.
func (d *Door) ListFlights(c *arrowflight.Criteria, stream arrowflight.FlightService_ListFlightsServer) error {
	release, err := d.admit(stream.Context(), d.open.take)
	if err != nil {
		return err
	}
	return d.watch(stream.Context(), release, func(ctx context.Context, moved func()) error {
		return failure(d.Catalog.List(ctx, pathOf(string(c.GetExpression())), func(f Flight) error {
			moved()
			return stream.Send(&arrowflight.FlightInfo{FlightDescriptor: f.descriptor(), TotalRecords: f.Rows,
				TotalBytes: f.Bytes})
		}))
	})
}

func noCatalog() error {
	return status.Error(codes.Unimplemented, "executors serve what tickets name: ask the driver for flights")
}

// GetFlightInfo returns how a flight is read: an endpoint for each of its files, in their order.
func (d *Door) GetFlightInfo(ctx context.Context, req *arrowflight.FlightDescriptor) (*arrowflight.FlightInfo, error) {
	f, who, release, err := d.find(ctx, req)
	if err != nil {
		return nil, err
	}
	defer release()
	info := &arrowflight.FlightInfo{FlightDescriptor: f.descriptor(), TotalRecords: f.Rows, TotalBytes: f.Bytes,
		Ordered: true}
	if info.Schema, err = f.schema(ctx); err != nil {
		return nil, failure(err)
	}
	if f.ofText() {
		info.TotalRecords = -1 // rows that were saved are not lines, nor records
	}
	if f.Make != nil {
		err = d.addEndpoint(info, ticket{Path: f.Path, Who: who}, Ends{})
		return info, err
	}
	for _, file := range f.Files {
		var at Ends
		if d.Ends != nil {
			at = d.Ends(file)
		}
		if err := d.addEndpoint(info, ticket{File: &file, As: f.As, Who: who}, at); err != nil {
			return nil, err
		}
	}
	return info, nil
}

// addEndpoint adds where a part of a flight is read, and by which ticket.
func (d *Door) addEndpoint(info *arrowflight.FlightInfo, t ticket, at Ends) error {
	ends := d.now().Add(TicketLife)
	t.Ends = ends.Unix()
	raw, err := t.sealed(d.Key())
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	end := &arrowflight.FlightEndpoint{Ticket: &arrowflight.Ticket{Ticket: raw}, ExpirationTime: timestamppb.New(ends)}
	if at.Name != "" {
		end.AppMetadata = fmt.Appendf(nil, `{"server_name":%q}`, at.Name)
	}
	for _, uri := range at.At {
		end.Location = append(end.Location, &arrowflight.Location{Uri: uri})
	}
	info.Endpoint = append(info.Endpoint, end)
	return nil
}

// GetSchema returns the columns of a flight.
func (d *Door) GetSchema(ctx context.Context, req *arrowflight.FlightDescriptor) (*arrowflight.SchemaResult, error) {
	f, _, release, err := d.find(ctx, req)
	if err != nil {
		return nil, err
	}
	defer release()
	raw, err := f.schema(ctx)
	return &arrowflight.SchemaResult{Schema: raw}, failure(err)
}

// find returns the flight of a descriptor for a caller, who has a stream's place until it is released.
func (d *Door) find(ctx context.Context, req *arrowflight.FlightDescriptor) (f Flight, who string, release func(),
	err error) {
	if d.Catalog == nil {
		return f, "", nil, noCatalog()
	}
	path, err := pathIn(req)
	if err != nil {
		return f, "", nil, err
	}
	if who, err = d.Who(ctx); err != nil {
		return f, "", nil, err
	}
	if f, err = d.Catalog.Find(ctx, path); err != nil {
		return f, "", nil, failure(err)
	}
	release, err = d.open.take(who)
	return f, who, release, err
}

// schema returns the columns of a flight, as streams have them; none of a dataset without files.
func (f Flight) schema(ctx context.Context) (raw []byte, err error) {
	if f.Make != nil {
		err = f.Make(ctx, func() {}, func(m arrowstream.Message) error {
			raw = arrowstream.Append(nil, m)
			return errSchema
		})
		if errors.Is(err, errSchema) {
			err = nil
		}
		return raw, err
	}
	if len(f.Files) == 0 {
		return nil, nil
	}
	as, err := f.format(f.Files[0])
	if err != nil {
		return nil, err
	}
	return arrowstream.SchemaOf(ctx, f.Files[0], as)
}

var errSchema = errors.New("the schema is there")

// ofText reports whether the rows are those of text.
func (f Flight) ofText() bool {
	if len(f.Files) == 0 {
		return false
	}
	as, err := f.format(f.Files[0])
	return err == nil && (as == arrowstream.Text || as == arrowstream.CSV)
}

func (f Flight) format(file files.File) (arrowstream.Format, error) {
	if f.As != "" {
		return f.As, nil
	}
	return arrowstream.FormatOf(file)
}

// DoGet sends what a ticket names.
func (d *Door) DoGet(req *arrowflight.Ticket, stream arrowflight.FlightService_DoGetServer) error {
	who, err := d.Who(stream.Context())
	if err != nil {
		return err
	}
	t, err := openTicket(d.Key(), req.GetTicket(), who, d.now())
	if err != nil {
		return err
	}
	release, err := d.open.take(who)
	if err != nil {
		return err
	}
	return d.watch(stream.Context(), release, func(ctx context.Context, moved func()) error {
		return failure(d.read(ctx, t, moved, func(m arrowstream.Message) error {
			defer moved()
			return stream.SendMsg(&batch{m})
		}))
	})
}

// read yields the messages of what a ticket names.
func (d *Door) read(ctx context.Context, t ticket, moved func(), yield func(arrowstream.Message) error) error {
	if t.File != nil {
		if t.File.Unchanged() != nil {
			return status.Errorf(codes.FailedPrecondition, "%s has changed since the ticket was given, or is gone: "+
				"ask for the flight again (GetFlightInfo)", t.File.Path)
		}
		as, err := Flight{As: t.As}.format(*t.File)
		if err != nil {
			return err
		}
		return arrowstream.Read(ctx, *t.File, as, yield)
	}
	if d.Catalog == nil {
		return noCatalog()
	}
	f, err := d.Catalog.Find(ctx, t.Path) // which asks anew whether the caller may
	if err != nil {
		return err
	}
	if f.Make == nil {
		return status.Error(codes.NotFound, "it is no table that the driver makes any more")
	}
	return f.Make(ctx, moved, yield)
}

// DoPut saves a dataset, and answers how many rows it has once all of it is there.
func (d *Door) DoPut(stream arrowflight.FlightService_DoPutServer) error {
	release, err := d.admit(stream.Context(), d.open.takeSave)
	if err != nil {
		return err
	}
	return d.watch(stream.Context(), release, func(ctx context.Context, moved func()) error {
		first, err := stream.Recv()
		if err != nil {
			return err
		}
		path, err := pathIn(first.GetFlightDescriptor())
		if err != nil {
			return err
		}
		rows, err := d.Catalog.Save(ctx, path, received(first, stream), moved)
		if err != nil {
			return failure(err)
		}
		return stream.Send(&arrowflight.PutResult{AppMetadata: fmt.Appendf(nil, `{"rows":%d}`, rows)})
	})
}

// received returns the messages of a stream of which one has been taken.
func received(first *arrowflight.FlightData, stream arrowflight.FlightService_DoPutServer) func() (arrowstream.Message,
	error) {
	return func() (arrowstream.Message, error) {
		data := first
		if first = nil; data == nil {
			var err error
			if data, err = stream.Recv(); err != nil {
				return arrowstream.Message{}, err
			}
		}
		m, err := arrowstream.Described(data.DataHeader, data.DataBody)
		if err != nil {
			err = fault.New(fault.BadInput, "save", "a message of the stream", err)
		}
		return m, err
	}
}

// watch carries out the work of a stream for as long as it moves, and its caller may read.
func (d *Door) watch(ctx context.Context, over func(), work func(ctx context.Context, moved func()) error) error {
	patience := d.Patience
	if patience == 0 {
		patience = stalls
	}
	return watched(ctx, patience, over, func(ctx context.Context) error {
		_, err := d.Who(ctx)
		return err
	}, work)
}

func (d *Door) now() time.Time {
	if d.Now != nil {
		return d.Now()
	}
	return time.Now()
}
