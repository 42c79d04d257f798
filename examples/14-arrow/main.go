// Command arrow reads a cluster's tables as any Arrow client does, by Arrow Flight and without this module's packages:
// it lists them, and prints how many rows one has, which it reads where its parts are served, side by side.
//
//	go run ./examples/14-arrow --driver unix:$HOME/.volley/driver.sock
//	go run ./examples/14-arrow --driver HOST:PORT --certificates ~/.volley/clusters/NAME datasets/visits
//
// The same in Python, for DuckDB and in a notebook: read.py, duck.py and cluster.ipynb beside it.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow/flight"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

func main() {
	driver := flag.String("driver", "", "the driver: unix:PATH, or HOST:PORT")
	certificates := flag.String("certificates", "", "directory of ca.crt, tls.crt and tls.key, as of volley login")
	flag.Parse()
	if err := run(context.Background(), location(*driver), *certificates, flag.Arg(0)); err != nil {
		log.Fatal(err)
	}
}

// location returns an address as Flight's locations are written.
func location(driver string) string {
	if path, ok := strings.CutPrefix(driver, "unix:"); ok {
		return "grpc+unix://" + path
	}
	return "grpc+tls://" + driver
}

func run(ctx context.Context, at, certificates, table string) error {
	client, err := dial(at, certificates, "")
	if err != nil {
		return err
	}
	defer client.Close()
	if table == "" {
		return list(ctx, client)
	}
	path := strings.Split(table, "/")
	if path[0] == "datasets" { // whose second name is a directory
		path = []string{path[0], strings.TrimPrefix(table, "datasets/")}
	}
	info, err := client.GetFlightInfo(ctx, &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: path})
	if err != nil {
		return err
	}
	var rows atomic.Int64
	parts, ctx := errgroup.WithContext(ctx)
	parts.SetLimit(8)
	for _, end := range info.Endpoint {
		parts.Go(func() error {
			n, err := read(ctx, client, certificates, end)
			rows.Add(n)
			return err
		})
	}
	err = parts.Wait()
	fmt.Printf("%s: %d rows of %d, in %d parts\n", table, rows.Load(), info.TotalRecords, len(info.Endpoint))
	return err
}

// list prints the tables that there are.
func list(ctx context.Context, client flight.Client) error {
	all, err := client.ListFlights(ctx, &flight.Criteria{})
	if err != nil {
		return err
	}
	for {
		info, err := all.Recv()
		if err != nil {
			return nil // the list has ended
		}
		fmt.Println(strings.Join(info.FlightDescriptor.Path, "/"), info.TotalRecords)
	}
}

// read returns how many rows a part has, of the first that serves it and can be reached.
func read(ctx context.Context, driver flight.Client, certificates string, end *flight.FlightEndpoint) (int64, error) {
	var about struct {
		Name string `json:"server_name"` // that an executor's certificate is for
	}
	_ = json.Unmarshal(end.AppMetadata, &about) // there may be none
	if len(end.Location) > 0 {
		if client, err := dial(end.Location[0].Uri, certificates, about.Name); err == nil {
			defer client.Close()
			if n, err := count(ctx, client, end.Ticket); err == nil {
				return n, nil
			}
		}
	}
	return count(ctx, driver, end.Ticket)
}

func count(ctx context.Context, client flight.Client, ticket *flight.Ticket) (rows int64, err error) {
	stream, err := client.DoGet(ctx, ticket)
	if err != nil {
		return 0, err
	}
	records, err := flight.NewRecordReader(stream)
	if err != nil {
		return 0, err
	}
	defer records.Release()
	for records.Next() {
		rows += records.Record().NumRows()
	}
	return rows, records.Err()
}

// dial connects to a location: over a socket the system says who calls, over TLS the certificate does.
func dial(at, certificates, name string) (flight.Client, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	whole := grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1 << 30)) // the library's default is 4 MiB
	if u.Scheme == "grpc+unix" {
		return flight.NewClientWithMiddleware("unix://"+u.Path, nil, nil, whole,
			grpc.WithTransportCredentials(insecure.NewCredentials()))
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(certificates, "tls.crt"), filepath.Join(certificates, "tls.key"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	raw, err := os.ReadFile(filepath.Join(certificates, "ca.crt"))
	if err != nil || !roots.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("no authorities in %s: %w", certificates, err)
	}
	return flight.NewClientWithMiddleware(u.Host, nil, nil, whole, grpc.WithTransportCredentials(credentials.NewTLS(
		&tls.Config{Certificates: []tls.Certificate{own}, RootCAs: roots, ServerName: name})))
}
