package objects

import (
	"context"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/storage"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/googleapis/gax-go/v2"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcp"
	"google.golang.org/api/option"

	"github.com/volley-engine/volley/internal/fault"
)

// Info is what a store says of an object.
type Info struct {
	Name    string
	Size    int64
	ModTime time.Time
	Tag     string // changes with the object's bytes; may be empty
	Whole   bool   // it can be read from its beginning only
}

// store is a bucket, or a web server.
type store interface {
	stat(ctx context.Context, key string) (Info, error)
	// read opens length bytes of an object from an offset on, and says what the object is now.
	read(ctx context.Context, key string, offset, length int64) (body io.ReadCloser, now Info, err error)
	// list calls a function with the objects whose keys have a prefix, in order, until it returns false.
	list(ctx context.Context, prefix string, yield func(key string, i Info) bool) error
	// write begins an object, which appears when the writer is closed, unless the context has ended before. One that
	// must not exist is refused if it does.
	write(ctx context.Context, key string, fresh bool) (io.WriteCloser, error)
	remove(ctx context.Context, key string) error
}

// stores are those that this process has opened, by scheme and bucket; they stay open.
var stores struct {
	sync.Mutex
	open map[string]store
}

// storeOf returns the store of a name, and the key that the name has in it.
func storeOf(ctx context.Context, name string) (store, string, error) {
	p, err := parse(name)
	if err != nil {
		return nil, "", err
	}
	stores.Lock()
	defer stores.Unlock()
	at := p.scheme + "://" + p.bucket
	s := stores.open[at]
	if s == nil {
		if s, err = open(ctx, p); err != nil {
			return nil, "", explained("open", name, err)
		}
		if stores.open == nil {
			stores.open = map[string]store{}
		}
		stores.open[at] = s
	}
	return s, p.key, nil
}

// open connects to a store, with the credentials of the environment.
func open(ctx context.Context, p place) (store, error) {
	switch p.scheme {
	case "s3":
		return openS3(ctx, p.bucket)
	case "gs":
		return openGCS(ctx, p.bucket)
	case "http", "https":
		return &web{client: &http.Client{Transport: transport()}, root: p.scheme + "://" + p.bucket + "/"}, nil
	}
	return nil, fault.Newf(fault.BadInput, "open", p.scheme+"://"+p.bucket, "there is no such kind of store")
}

// credentialWait bounds how long the machine is asked for credentials where the environment has none.
const credentialWait = 10 * time.Second

// openS3 opens a bucket of S3, or of a server that speaks its protocol at AWS_ENDPOINT_URL. Without credentials it is
// read as the public may.
func openS3(ctx context.Context, name string) (store, error) {
	http := awshttp.NewBuildableClient().WithTransportOptions(hurry)
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(http))
	if err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, credentialWait)
	defer cancel()
	if _, err := cfg.Credentials.Retrieve(asking); err != nil {
		cfg.Credentials = aws.AnonymousCredentials{}
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1"
	}
	other := os.Getenv("AWS_ENDPOINT_URL") + os.Getenv("AWS_ENDPOINT_URL_S3")
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = other != ""
		o.DisableLogOutputChecksumValidationSkipped = true // of every range that is read
	})
	b, err := s3blob.OpenBucket(ctx, client, name, nil)
	if err != nil {
		return nil, err
	}
	return &bucket{b}, nil
}

// openGCS opens a bucket of Google Cloud Storage. Without credentials it is read as the public may.
func openGCS(ctx context.Context, name string) (store, error) {
	asking, cancel := context.WithTimeout(ctx, credentialWait)
	defer cancel()
	http := gcp.NewAnonymousHTTPClient(transport())
	if creds, err := gcp.DefaultCredentials(asking); err == nil {
		if http, err = gcp.NewHTTPClient(transport(), creds.TokenSource); err != nil {
			return nil, err
		}
	}
	client, err := storage.NewClient(ctx, option.WithHTTPClient(&http.Client))
	if err != nil {
		return nil, err
	}
	client.SetRetry(storage.WithMaxAttempts(tries), storage.WithBackoff(gax.Backoff{Initial: firstWait}))
	b, err := gcsblob.OpenBucket(ctx, nil, name, &gcsblob.Options{Client: client})
	if err != nil {
		return nil, err
	}
	return &bucket{b}, nil
}

// bucket is a store of gocloud's.
type bucket struct{ b *blob.Bucket }

func (b *bucket) stat(ctx context.Context, key string) (Info, error) {
	if key == "" {
		return Info{}, missing{}
	}
	a, err := b.b.Attributes(ctx, key)
	if err != nil {
		return Info{}, err
	}
	i := Info{Size: a.Size, ModTime: a.ModTime, Tag: plainTag(a.ETag)}
	var g storage.ObjectAttrs
	if a.As(&g) {
		i.Tag = generation(g.Generation)
	}
	return i, nil
}

func (b *bucket) read(ctx context.Context, key string, offset, length int64) (io.ReadCloser, Info, error) {
	r, err := b.b.NewRangeReader(ctx, key, offset, length, nil)
	if err != nil {
		return nil, Info{}, err
	}
	now := Info{Size: r.Size(), ModTime: r.ModTime()}
	var s s3.GetObjectOutput
	var g *storage.Reader
	switch {
	case r.As(&s):
		now.Tag = plainTag(aws.ToString(s.ETag))
	case r.As(&g):
		now.Tag = generation(g.Attrs.Generation)
	}
	return r, now, nil
}

func (b *bucket) list(ctx context.Context, prefix string, yield func(string, Info) bool) error {
	for all := b.b.List(&blob.ListOptions{Prefix: prefix}); ; {
		o, err := all.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !yield(o.Key, Info{Size: o.Size, ModTime: o.ModTime, Tag: tagOf(o)}) {
			return nil
		}
	}
}

// tagOf returns the tag of an object in a list.
func tagOf(o *blob.ListObject) string {
	var s types.Object
	var g storage.ObjectAttrs
	switch {
	case o.As(&s):
		return plainTag(aws.ToString(s.ETag))
	case o.As(&g):
		return generation(g.Generation)
	}
	return ""
}

// generation returns the tag of an object of Google's: all of its answers have this number.
func generation(n int64) string { return strconv.FormatInt(n, 10) }

// plainTag returns a tag without quotes: not all answers have them.
func plainTag(tag string) string { return strings.Trim(tag, `"`) }

// A part of an object that is uploaded in several, and how many of one object's are on their way at a time.
const (
	partBytes = 8 << 20
	partsSent = 3
)

func (b *bucket) write(ctx context.Context, key string, fresh bool) (io.WriteCloser, error) {
	return b.b.NewWriter(ctx, key, &blob.WriterOptions{BufferSize: partBytes, MaxConcurrency: partsSent,
		ContentType: "application/octet-stream", IfNotExist: fresh})
}

func (b *bucket) remove(ctx context.Context, key string) error { return b.b.Delete(ctx, key) }
