package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"strings"

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

// freePort returns a port that is free: the server has to know its own beforehand.
func freePort() (uint16, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port), nil
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

// run serves until there is no more input. Its arguments are the buckets.
func run() error {
	flag.Parse()
	s3, end, err := startS3(*minio, flag.Args())
	if err != nil {
		return err
	}
	defer end()
	port, err := freePort()
	if err != nil {
		return err
	}
	gcs, err := fakestorage.NewServerWithOptions(fakestorage.Options{Scheme: "http", Host: "127.0.0.1", Port: port,
		PublicHost: fmt.Sprintf("127.0.0.1:%d", port), Writer: io.Discard})
	if err != nil {
		return err
	}
	defer gcs.Stop()
	for _, name := range flag.Args() {
		gcs.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: name})
	}
	err = json.NewEncoder(os.Stdout).Encode(addresses{S3: s3, GCS: strings.TrimPrefix(gcs.URL(), "http://")})
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
