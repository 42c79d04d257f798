package integration

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// certificates returns the directory that a person has logged in to.
func certificates(home string) string { return filepath.Join(home, "clusters", "test") }

// arrowClient returns a client of Arrow Flight, as somebody.
func (s *secured) arrowClient(home string) flight.Client {
	s.t.Helper()
	dir := certificates(home)
	own, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		s.t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(raw) {
		s.t.Fatal(err)
	}
	c, err := flight.NewClientWithMiddleware(s.address, nil, nil, grpc.WithTransportCredentials(
		credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{own}, RootCAs: roots})))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

func named(path ...string) *flight.FlightDescriptor {
	return &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: path}
}

// save saves numbers as a dataset.
func save(t *testing.T, c flight.Client, name string, rows int) error {
	t.Helper()
	stream, err := c.DoPut(t.Context())
	if err != nil {
		return err
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	w := flight.NewRecordWriter(stream, ipc.WithSchema(schema))
	w.SetFlightDescriptor(named("datasets", name))
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for n := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(n))
		if n%1000 == 999 {
			if err := w.Write(b.NewRecord()); err != nil {
				break // the answer says why
			}
		}
	}
	if err := errors.Join(w.Close(), stream.CloseSend()); err != nil {
		t.Logf("the answer says why: %v", err)
	}
	_, err = stream.Recv()
	return err
}

// TestArrowClients: over TLS, by the examples: a job's dataset, its events and one that a client saves are read, from
// the executors and from the driver where one is gone; who may only read reads no rows, nor by another's ticket.
func TestArrowClients(t *testing.T) {
	t.Parallel()
	s := newSecured(t, "--datasets", filepath.Join(t.TempDir(), "datasets"))
	a := s.join("a", "--flight", "127.0.0.1:0")
	s.join("b", "--flight", "127.0.0.1:0")
	alice, bob := s.person("submit", "alice"), s.person("read", "bob")
	text, counts := filepath.Join(s.dir, "text"), filepath.Join(s.dir, "counts")
	if err := os.WriteFile(text, []byte("one step\ntwo\nthree steps\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.as(alice, "submit", "--binary", built(t, "./examples/01-wordcount"), "--",
		"--input", text, "--output", counts)
	by := s.arrowClient(alice)
	if err := save(t, by, "numbers", 50_000); err != nil {
		t.Fatal(err)
	}
	if err := save(t, by, "numbers", 1000); status.Code(err) != codes.AlreadyExists {
		t.Errorf("saved over what is there: %v", err)
	}
	read := func(table string) string {
		return example(t, "./examples/14-arrow", "--driver", s.address, "--certificates", certificates(alice), table)
	}
	list := read("")
	for _, want := range []string{"jobs -1", "executors -1", "jobs/job-000001/events", "datasets/numbers 50000",
		"datasets/" + counts + " 5"} {
		if !strings.Contains(list, want) {
			t.Errorf("the list lacks %s: %s", want, list)
		}
	}
	if got := read("datasets/" + counts); !strings.Contains(got, ": 5 rows of -1") {
		t.Error(got)
	}
	if got := read("jobs"); !strings.Contains(got, ": 1 rows") {
		t.Error(got)
	}
	if got := read("datasets/numbers"); !strings.Contains(got, ": 50000 rows of 50000") {
		t.Error(got)
	}
	info, err := by.GetFlightInfo(t.Context(), named("datasets", "numbers"))
	if err != nil || len(info.Endpoint) != 1 || len(info.Endpoint[0].Location) != 2 {
		t.Fatal(info, err)
	}
	s.refuses(bob, info.Endpoint[0].Ticket)
	a.Kill() // whichever of the two serves it
	if got := read("datasets/numbers"); !strings.Contains(got, ": 50000 rows of 50000") {
		t.Error(got)
	}
	s.byPython(alice)
}

// refuses checks what a person may not do whose role is read.
func (s *secured) refuses(home string, ticket *flight.Ticket) {
	s.t.Helper()
	c, ctx := s.arrowClient(home), s.t.Context()
	if _, err := c.GetFlightInfo(ctx, named("jobs")); err != nil {
		s.t.Errorf("which jobs there are: %v", err)
	}
	for _, path := range [][]string{{"datasets", "numbers"}, {"jobs", "job-000001", "events"}} {
		if _, err := c.GetFlightInfo(ctx, named(path...)); status.Code(err) != codes.PermissionDenied {
			s.t.Errorf("%v: %v", path, err)
		}
	}
	stream, err := c.DoGet(ctx, ticket)
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.PermissionDenied {
		s.t.Errorf("by another's ticket: %v", err)
	}
	if err := save(s.t, c, "other", 1000); status.Code(err) != codes.PermissionDenied {
		s.t.Errorf("a save: %v", err)
	}
	listed, err := c.ListFlights(ctx, &flight.Criteria{})
	for err == nil {
		var info *flight.FlightInfo
		if info, err = listed.Recv(); err == nil && len(info.FlightDescriptor.Path) > 1 {
			s.t.Errorf("it lists %v", info.FlightDescriptor.Path)
		}
	}
	if err != io.EOF {
		s.t.Error(err)
	}
}

// byPython reads by the example in Python, where it has what that needs.
func (s *secured) byPython(home string) {
	if exec.Command("python3", "-c", "import pyarrow.flight").Run() != nil {
		s.t.Log("python3 has no pyarrow.flight: read.py was not run")
		return
	}
	out, err := exec.Command("python3", filepath.Join("..", "examples", "14-arrow", "read.py"), s.address,
		certificates(home), "datasets/numbers").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "n: int64") {
		s.t.Errorf("read.py: %v: %s", err, out)
	}
}
