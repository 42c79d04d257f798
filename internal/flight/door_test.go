package flight

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	arrowflight "github.com/apache/arrow/go/v15/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/volley-engine/volley/storage/arrowstream"
	"github.com/volley-engine/volley/storage/input/files"
)

// shelf is a catalog of one table, which never ends, and of files.
type shelf struct {
	files []files.File
	saved func(next func() (arrowstream.Message, error)) (int64, error)
}

var number = arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)

func (s *shelf) List(_ context.Context, _ []string, yield func(Flight) error) error {
	return yield(Flight{Path: []string{"endless"}, Rows: -1})
}

func (s *shelf) Find(_ context.Context, path []string) (Flight, error) {
	if path[0] != "endless" {
		return Flight{Path: path, Files: s.files}, nil
	}
	return Flight{Path: path, Make: func(_ context.Context, _ func(), yield func(arrowstream.Message) error) error {
		rows, err := arrowstream.NewRows(number, yield)
		for n := int64(0); err == nil; n++ {
			rows.Field(0).(*array.Int64Builder).Append(n)
			err = rows.Added(8)
		}
		return err
	}}, nil
}

func (s *shelf) Save(_ context.Context, _ []string, next func() (arrowstream.Message, error), _ func()) (int64, error) {
	return s.saved(next)
}

// dialed returns a client of a door.
func dialed(t *testing.T, d *Door) arrowflight.FlightServiceClient {
	t.Helper()
	l := bufconn.Listen(1 << 20)
	s := grpc.NewServer(Codec())
	arrowflight.RegisterFlightServiceServer(s, d)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	conn, err := grpc.NewClient("passthrough:door", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return l.Dial() }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return arrowflight.NewFlightServiceClient(conn)
}

// doorOf returns a door of a catalog, whose caller is a.
func doorOf(c Catalog) *Door {
	key := NewKey()
	return &Door{Catalog: c, Key: func() []byte { return key },
		Who: func(context.Context) (string, error) { return "a", nil }}
}

func ticketOf(t *testing.T, c arrowflight.FlightServiceClient, path ...string) *arrowflight.Ticket {
	t.Helper()
	info, err := c.GetFlightInfo(context.Background(), &arrowflight.FlightDescriptor{
		Type: arrowflight.DescriptorPATH, Path: path})
	if err != nil || len(info.Endpoint) == 0 {
		t.Fatal(info, err)
	}
	return info.Endpoint[0].Ticket
}

// got reads a stream to its end, and returns how many messages it has.
func got(c arrowflight.FlightServiceClient, ticket *arrowflight.Ticket) (n int, err error) {
	stream, err := c.DoGet(context.Background(), ticket)
	for err == nil {
		if _, err = stream.Recv(); err == nil {
			n++
		}
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// TestTickets: a ticket is good for who it was given to, until it expires, as it was given.
func TestTickets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "part-00000")
	if err := os.WriteFile(path, []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := files.Resolve(path)
	if err != nil {
		t.Fatal(err)
	}
	d := doorOf(&shelf{files: found})
	now, who := time.Now(), "a"
	d.Now = func() time.Time { return now }
	d.Who = func(context.Context) (string, error) { return who, nil }
	c := dialed(t, d)
	good := ticketOf(t, c, "datasets", "x")
	if n, err := got(c, good); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	for i := range good.Ticket {
		bad := append([]byte{}, good.Ticket...)
		bad[i] ^= 1
		if _, err := got(c, &arrowflight.Ticket{Ticket: bad}); status.Code(err) != codes.FailedPrecondition {
			t.Fatalf("byte %d was changed: %v", i, err)
		}
	}
	for _, bad := range [][]byte{nil, good.Ticket[:10], append(good.Ticket, 0)} {
		if _, err := got(c, &arrowflight.Ticket{Ticket: bad}); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("%d bytes: %v", len(bad), err)
		}
	}
	who = "b"
	if _, err := got(c, good); status.Code(err) != codes.PermissionDenied {
		t.Errorf("another's: %v", err)
	}
	who, now = "a", now.Add(TicketLife)
	_, err = got(c, good)
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "expired") {
		t.Errorf("late: %v", err)
	}
	if raw, err := (ticket{Who: "a", Ends: now.Add(time.Hour).Unix()}).sealed(nil); err != nil {
		t.Fatal(err)
	} else if _, err := openTicket(nil, raw, "a", now); err == nil {
		t.Error("a door without a key has opened a ticket")
	}
}

// TestFilesThatHaveChanged: a dataset that was saved anew since the ticket was given is not read by it.
func TestFilesThatHaveChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "part-00000")
	if err := os.WriteFile(path, []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := files.Resolve(path)
	if err != nil {
		t.Fatal(err)
	}
	c := dialed(t, doorOf(&shelf{files: found}))
	good := ticketOf(t, c, "datasets", "x")
	if err := os.WriteFile(path, []byte("a\nb\nc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := got(c, good); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}

// firstOf reads the first message of a stream.
func firstOf(c arrowflight.FlightServiceClient, ticket *arrowflight.Ticket) (arrowflight.FlightService_DoGetClient,
	error) {
	s, err := c.DoGet(context.Background(), ticket)
	if err == nil {
		_, err = s.Recv()
	}
	return s, err
}

// TestReadersThatStop: a stream that is not read ends, and what it held is free.
func TestReadersThatStop(t *testing.T) {
	d := doorOf(&shelf{})
	d.Patience = 50 * time.Millisecond
	c := dialed(t, d)
	ticket := ticketOf(t, c, "endless")
	s, err := firstOf(c, ticket)
	if err != nil {
		t.Fatal(err)
	}
	for d.openNow() > 0 { // the work is over
		runtime.Gosched()
	}
	for err == nil { // what had been sent
		_, err = s.Recv()
	}
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("%v", err)
	}
}

// TestACallersStreams: one more than a caller may have is refused, and no other caller's; saves are fewer.
func TestACallersStreams(t *testing.T) {
	d := doorOf(&shelf{})
	c := dialed(t, d)
	ticket := ticketOf(t, c, "endless")
	var over []func()
	for range mostOfACaller {
		release, err := d.open.take("a")
		if err != nil {
			t.Fatal(err)
		}
		over = append(over, release)
	}
	if _, err := firstOf(c, ticket); status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("one more than may be: %v", err)
	}
	if _, err := d.open.take("b"); err != nil {
		t.Error(err)
	}
	for _, release := range over {
		release()
	}
	if _, err := firstOf(c, ticket); err != nil {
		t.Errorf("after them: %v", err)
	}
	for range mostSaves {
		if _, err := d.open.takeSave("c"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.open.takeSave("d"); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one save more than may be: %v", err)
	}
}

func (d *Door) openNow() int {
	d.open.mu.Lock()
	defer d.open.mu.Unlock()
	return d.open.all
}

// TestWhoMayNotReadAnyMore: a stream that goes on ends once its reader may not read.
func TestWhoMayNotReadAnyMore(t *testing.T) {
	d := doorOf(&shelf{})
	d.Patience = 2 * time.Second // a slow machine is no reader that stops
	var revoked atomic.Bool
	d.Who = func(context.Context) (string, error) {
		if revoked.Load() {
			return "", status.Error(codes.Unauthenticated, "it was revoked")
		}
		return "a", nil
	}
	c := dialed(t, d)
	s, err := c.DoGet(context.Background(), ticketOf(t, c, "endless"))
	for n := 0; err == nil; n++ {
		_, err = s.Recv()
		revoked.Store(n > 10)
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Error(err)
	}
}

// TestSavesThatStop: a save whose client sends nothing more is given up.
func TestSavesThatStop(t *testing.T) {
	ended := make(chan error, 1)
	d := doorOf(&shelf{saved: func(next func() (arrowstream.Message, error)) (int64, error) {
		for {
			if _, err := next(); err != nil {
				ended <- err
				return 0, err
			}
		}
	}})
	d.Patience = 50 * time.Millisecond
	c := dialed(t, d)
	s, err := c.DoPut(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&arrowflight.FlightData{FlightDescriptor: &arrowflight.FlightDescriptor{
		Type: arrowflight.DescriptorCMD, Cmd: []byte("datasets/x")}, DataHeader: schemaOf(t)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); status.Code(err) != codes.DeadlineExceeded {
		t.Error(err)
	}
	if err := <-ended; err == nil || err == io.EOF {
		t.Errorf("the save goes on as if all had come: %v", err)
	}
}

// schemaOf returns the description of a schema's message.
func schemaOf(t *testing.T) (raw []byte) {
	t.Helper()
	if _, err := arrowstream.NewRows(number, func(m arrowstream.Message) error {
		raw = append(raw, m.Header...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestEvents: an event log is a table as far as it goes; a line that is none is an error that says which.
func TestEvents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	for text, want := range map[string]int64{
		"": 0, `{"event":"header"}` + "\n": 1,
		`{"event":"step","step":1,"folded":[1,2],"values":{"objective":0.5,"x":null}}` + "\n" + `{"event":"st`: 1,
	} {
		var n int64
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Events(context.Background(), path, func(m arrowstream.Message) error {
			n += m.Rows
			return nil
		})
		if err != nil || n != want {
			t.Errorf("%q: %d rows, want %d: %v", text, n, want, err)
		}
	}
	bad := "{\"event\":\"header\"}\n{\"step\":\"x\"}\n"
	if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Events(context.Background(), path, func(arrowstream.Message) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Error(err)
	}
	if err := Events(context.Background(), filepath.Join(t.TempDir(), "none"),
		func(arrowstream.Message) error { return nil }); err != nil {
		t.Error(fmt.Errorf("a log that is not there yet: %w", err))
	}
}
