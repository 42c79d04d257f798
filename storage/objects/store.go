package objects

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/storage"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/googleapis/gax-go/v2"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2"
	"google.golang.org/api/option"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/roots"
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
	// read opens length bytes of an object from an offset on, and returns what the object is now. Its bytes are as the
	// store keeps them.
	read(ctx context.Context, key string, offset, length int64) (body io.ReadCloser, now Info, err error)
	// list calls a function with the objects whose keys have a prefix, in order, until it returns false.
	list(ctx context.Context, prefix string, yield func(key string, i Info) bool) error
	// write begins an object, which appears when the writer is closed, unless the context has ended before, or what is
	// there now is not what is replaced.
	write(ctx context.Context, key string, r replaces) (io.WriteCloser, error)
	remove(ctx context.Context, key string) error
}

// replaces is what an object that is written may take the place of: anything, if it is zero.
type replaces struct {
	nothing bool
	tag     string // an object with this tag
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
		if b, ok := s.(*bucket); ok && errors.Is(b.anonymous, context.DeadlineExceeded) {
			return s, p.key, nil // there may be credentials the next time
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
	roots.Use()
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
	by := awshttp.NewBuildableClient().WithTransportOptions(hurry)
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(by), config.WithRetryer(retryer))
	if err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, credentialWait)
	defer cancel()
	_, why := cfg.Credentials.Retrieve(asking)
	if why != nil {
		cfg.Credentials = aws.AnonymousCredentials{}
		why = errors.Join(why, asking.Err())
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1"
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = o.BaseEndpoint != nil
		o.DisableLogOutputChecksumValidationSkipped = true // of every range that is read
	})
	b, err := s3blob.OpenBucket(ctx, client, name, nil)
	if err != nil {
		return nil, err
	}
	return &bucket{b, why}, nil
}

// retryer returns how calls of S3 are tried again, which is for about patience.
func retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts()
		o.Backoff = retry.BackoffDelayerFunc(func(n int, _ error) (time.Duration, error) {
			return min(longestWait, firstWait<<min(n, 20)), nil
		})
		o.RateLimiter = ratelimit.None // many readers fail at once where a store is away
	})
}

// attempts returns how often a call is tried for about patience, with waits that are twice as long each time up to the
// longest.
func attempts() int {
	n, wait := 2, firstWait
	for spent := time.Duration(0); spent < time.Duration(patience.Load()); n++ {
		spent += wait
		wait = min(2*wait, longestWait)
	}
	return n
}

// openGCS opens a bucket of Google Cloud Storage. Without credentials it is read as the public may.
func openGCS(ctx context.Context, name string) (store, error) {
	// The context is that of later questions for tokens, too.
	asking := context.WithValue(context.Background(), oauth2.HTTPClient,
		&http.Client{Transport: transport(), Timeout: credentialWait})
	by := gcp.NewAnonymousHTTPClient(transport())
	creds, why := gcp.DefaultCredentials(asking)
	if why == nil {
		var err error
		if by, err = gcp.NewHTTPClient(transport(), creds.TokenSource); err != nil {
			return nil, err
		}
	}
	client, err := storage.NewClient(ctx, option.WithHTTPClient(&by.Client))
	if err != nil {
		return nil, err
	}
	client.SetRetry(storage.WithMaxAttempts(attempts()),
		storage.WithBackoff(gax.Backoff{Initial: firstWait, Max: longestWait, Multiplier: 2}))
	b, err := gcsblob.OpenBucket(ctx, nil, name, &gcsblob.Options{Client: client})
	if err != nil {
		return nil, err
	}
	return &bucket{b, why}, nil
}

// bucket is a store of gocloud's.
type bucket struct {
	b         *blob.Bucket
	anonymous error // why it is read as the public may; nil where there are credentials
}

// uncredited is what a store has answered to a process that found no credentials.
type uncredited struct {
	error
	why error
}

func (u uncredited) Unwrap() error { return u.error }

// told returns an error of a store, with why there were no credentials.
func (b *bucket) told(err error) error {
	if err == nil || b.anonymous == nil {
		return err
	}
	return uncredited{err, b.anonymous}
}

func (b *bucket) stat(ctx context.Context, key string) (Info, error) {
	if key == "" {
		return Info{}, missing{}
	}
	a, err := b.b.Attributes(ctx, key)
	if err != nil {
		return Info{}, b.told(err)
	}
	i := Info{Size: a.Size, ModTime: a.ModTime, Tag: plainTag(a.ETag)}
	var g storage.ObjectAttrs
	if a.As(&g) {
		i.Tag = generation(g.Generation)
	}
	return i, nil
}

func (b *bucket) read(ctx context.Context, key string, offset, length int64) (io.ReadCloser, Info, error) {
	r, err := b.b.NewRangeReader(ctx, key, offset, length, &blob.ReaderOptions{BeforeRead: asKept})
	if err != nil {
		return nil, Info{}, b.told(err)
	}
	now := Info{Size: r.Size(), ModTime: r.ModTime()}
	var s s3.GetObjectOutput
	var g *storage.Reader
	switch {
	case r.As(&s):
		now.Tag = plainTag(aws.ToString(s.ETag))
		err = isRange(aws.ToString(s.ContentRange), offset, length)
	case r.As(&g):
		now.Tag = generation(g.Attrs.Generation)
		if g.Attrs.StartOffset != offset || g.Attrs.Decompressed {
			err = errOtherRange
		}
	}
	if err != nil {
		r.Close()
		return nil, now, err
	}
	return r, now, nil
}

// asKept asks Google for an object's bytes as they are kept: of one that is marked as gzip it sends others, and no
// range.
func asKept(as func(any) bool) error {
	var o **storage.ObjectHandle
	if as(&o) {
		*o = (*o).ReadCompressed(true)
	}
	return nil
}

func (b *bucket) list(ctx context.Context, prefix string, yield func(string, Info) bool) error {
	for all := b.b.List(&blob.ListOptions{Prefix: prefix}); ; {
		o, err := all.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return b.told(err)
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

func (b *bucket) write(ctx context.Context, key string, r replaces) (io.WriteCloser, error) {
	o := &blob.WriterOptions{BufferSize: partBytes, MaxConcurrency: partsSent, ContentType: "application/octet-stream",
		IfNotExist: r.nothing}
	if r.tag != "" {
		o.BeforeWrite = func(as func(any) bool) error { return inPlaceOf(r.tag, as) }
	}
	w, err := b.b.NewWriter(ctx, key, o)
	if err != nil {
		return nil, b.told(err)
	}
	return uploading{w, b}, nil
}

// uploading is an object that is being written to a bucket.
type uploading struct {
	*blob.Writer
	b *bucket
}

func (u uploading) Write(p []byte) (int, error) {
	n, err := u.Writer.Write(p)
	return n, u.b.told(err)
}

func (u uploading) Close() error { return u.b.told(u.Writer.Close()) }

// inPlaceOf has a write take the place of an object with a tag, and of no other.
func inPlaceOf(tag string, as func(any) bool) error {
	var s *transfermanager.UploadObjectInput
	var g **storage.ObjectHandle
	switch {
	case as(&s):
		s.IfMatch = aws.String(`"` + tag + `"`)
	case as(&g):
		n, err := strconv.ParseInt(tag, 10, 64)
		if err != nil {
			return err
		}
		*g = (*g).If(storage.Conditions{GenerationMatch: n})
	}
	return nil
}

func (b *bucket) remove(ctx context.Context, key string) error { return b.told(b.b.Delete(ctx, key)) }
