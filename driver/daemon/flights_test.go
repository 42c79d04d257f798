package daemon

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	arrowflight "github.com/apache/arrow/go/v15/arrow/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/flight"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/storage/arrowstream"
)

// saves saves rows of numbers as a dataset, in two messages, and says how many are to come.
func saves(ctx context.Context, c arrowflight.FlightServiceClient, name string, rows, announced int) error {
	ctx = metadata.AppendToOutgoingContext(ctx, overwriteHeader, "true", rowsHeader, fmt.Sprint(announced))
	stream, err := c.DoPut(ctx)
	if err != nil {
		return err
	}
	path := &arrowflight.FlightDescriptor{Type: arrowflight.DescriptorPATH, Path: []string{flight.Datasets, name}}
	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	send := func(m arrowstream.Message) error {
		_ = stream.Send(&arrowflight.FlightData{FlightDescriptor: path, DataHeader: m.Header, DataBody: m.Body})
		path = nil
		return nil // the answer says why
	}
	out, err := arrowstream.NewRows(schema, send)
	for n := 0; err == nil && n < rows; n++ {
		out.Field(0).(*array.Int64Builder).Append(int64(n))
		if err = out.Added(8); err == nil && n == rows/2 {
			err = out.Flush()
		}
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return err
	}
	_ = stream.CloseSend()
	_, err = stream.Recv()
	return err
}

// arrowOf returns an Arrow client of a driver of this user's.
func arrowOf(t *testing.T, d *Daemon) arrowflight.FlightServiceClient {
	return arrowflight.NewFlightServiceClient(plain(t, d.Addr(), wire.Party{}, &atomic.Int64{}))
}

// TestSavesOfOneDataset: clients that save the same dataset side by side have it one after the other, each whole.
func TestSavesOfOneDataset(t *testing.T) {
	d := testDaemon(t)
	c, ctx := arrowOf(t, d), context.Background()
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			for range 5 {
				if err := saves(ctx, c, "shared", 100+k, 100+k); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	f, err := catalog{d}.dataset("shared", "")
	if err != nil || f.Rows < 100 || f.Rows > 103 || len(f.Files) != 1 {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestAnotherSaveGoesOn: who waits for a save of another is told, or gives up.
func TestAnotherSaveGoesOn(t *testing.T) {
	var s saving
	release, err := s.take(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if other, err := s.take(context.Background(), "b"); err != nil {
		t.Error(err)
	} else {
		other()
	}
	given, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.take(given, "a"); err == nil {
		t.Error("two have it")
	}
	release()
	if _, err := s.take(context.Background(), "a"); err != nil {
		t.Error(err)
	}
}

// TestNamesOfDatasets: a name is a directory below that of datasets, and nothing else.
func TestNamesOfDatasets(t *testing.T) {
	d := testDaemon(t)
	c, ctx := arrowOf(t, d), context.Background()
	for _, name := range []string{"", " ",
		".", "..", ".hidden", "_SUCCESS", "-x", "a/b", "k=1", "k=1/..", "../a", "a\n",
		"a\x00", strings.Repeat("x", 129), "/tmp/a", "s3://bucket/a"} {
		if err := saves(ctx, c, name, 1, 1); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%.20q: %v", name, err)
		}
	}
	for _, name := range []string{"a", "A.b_c-1", strings.Repeat("x", 128)} {
		if err := saves(ctx, c, name, 1, 1); err != nil {
			t.Errorf("%.20q: %v", name, err)
		}
	}
	if got := (catalog{d}).named(); len(got) != 3 {
		t.Errorf("%d of 3 are listed: %v", len(got), got)
	}
	if err := saves(ctx, c, "part", 10, 11); status.Code(err) != codes.InvalidArgument ||
		!strings.Contains(err.Error(), "11 were announced") {
		t.Errorf("fewer rows than were announced: %v", err)
	}
}
