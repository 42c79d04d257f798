package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// minio is the program of a server of S3's protocol that is used in place of the one in memory.
var minio = flag.String("minio", "", "program of a MinIO server to start")

// addresses are those of the servers.
type addresses struct {
	S3  string `json:"s3"`  // URL
	GCS string `json:"gcs"` // host and port
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// startS3 starts a server with buckets, and returns its URL.
func startS3(program string, buckets []string) (url string, end func(), err error) {
	if program != "" {
		return startMinIO(program, buckets)
	}
	backend := s3mem.New()
	for _, name := range buckets {
		if err := backend.CreateBucket(name); err != nil {
			return "", nil, err
		}
	}
	s := httptest.NewServer(gofakes3.New(backend).Server())
	return s.URL, s.Close, nil
}

// startGCS starts a server with buckets, and returns its address. The server has to know its address beforehand, and so
// the port is taken first: of one only looked up, another process can have taken it since.
func startGCS(buckets []string) (*http.Server, string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	at := l.Addr().String()
	gcs, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true, Scheme: "http", PublicHost: at,
		ExternalURL: "http://" + at, Writer: io.Discard})
	if err != nil {
		l.Close()
		return nil, "", err
	}
	for _, name := range buckets {
		gcs.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: name})
	}
	s := &http.Server{Handler: gcs.HTTPHandler()}
	go s.Serve(l) // it ends with the server
	return s, at, nil
}

// run serves until there is no more input. Its arguments are the buckets.
func run() error {
	flag.Parse()
	s3, end, err := startS3(*minio, flag.Args())
	if err != nil {
		return err
	}
	defer end()
	gcs, at, err := startGCS(flag.Args())
	if err != nil {
		return err
	}
	defer gcs.Close()
	if err := json.NewEncoder(os.Stdout).Encode(addresses{S3: s3, GCS: at}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
