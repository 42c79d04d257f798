package traces

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/url"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/roots"
	"github.com/volley-engine/volley/internal/version"
)

// Job is the job that a span is of.
type Job struct {
	ID        string
	Submitted time.Time // with the id this makes the trace: every driver that leads makes the same
	Kind      string
	Owner     string
}

// Step is a training step that was committed.
type Step struct {
	Number, Epoch uint64
	Took, Waited  time.Duration // all of it, and its part after the first finisher
	Share         float64       // of all rows that it merged
	Rows, Bytes   uint64
	Cut           bool
}

// End is how a job has ended.
type End struct {
	At       time.Time
	State    string
	Why      string
	Failed   bool
	Steps    uint64
	Restarts uint32
}

// Tracer tells a collector. One that is nil tells none.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

const (
	// queueMost is how many spans wait for the collector; more are dropped.
	queueMost = 8192
	// sendWait bounds an attempt to send spans, and closeWait that at the end.
	sendWait  = 5 * time.Second
	closeWait = 2 * time.Second
)

// Open begins to tell the collector at a URL, such as http://localhost:4318. What cannot be sent is logged.
func Open(endpoint, instance string, log hclog.Logger) (*Tracer, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fault.Newf(fault.Usage, "use", "--traces", "%q is no URL of a collector", endpoint).
			WithHint("want http://HOST:4318, or https://")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	roots.Use()
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(u.String()),
		otlptracehttp.WithTimeout(sendWait))
	if err != nil {
		return nil, fault.New(fault.Usage, "use", "--traces", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("traces were not sent", "to", endpoint, "error", err)
	}))
	provider := sdk.NewTracerProvider(sdk.WithIDGenerator(named{}),
		sdk.WithBatcher(exporter, sdk.WithMaxQueueSize(queueMost)),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "volley"),
			attribute.String("service.version", version.Module), attribute.String("service.instance.id", instance))))
	return &Tracer{provider, provider.Tracer("volley")}, nil
}

// Step tells of a step, which has ended just now.
func (t *Tracer) Step(j Job, s Step) {
	if t == nil {
		return
	}
	now := time.Now()
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: j.trace(), SpanID: j.span(),
		TraceFlags: trace.FlagsSampled, Remote: true})
	_, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(context.Background(), parent), "step",
		trace.WithTimestamp(now.Add(-s.Took)), trace.WithAttributes(attribute.String("volley.job", j.ID),
			attribute.Int64("volley.step", int64(s.Number)), attribute.Int64("volley.epoch", int64(s.Epoch)),
			attribute.Float64("volley.share", s.Share), attribute.Int64("volley.rows", int64(s.Rows)),
			attribute.Int64("volley.bytes", int64(s.Bytes)), attribute.Bool("volley.cut", s.Cut),
			attribute.Float64("volley.wait_seconds", s.Waited.Seconds())))
	span.End(trace.WithTimestamp(now))
}

// End tells of a job that has ended: the span that those of its steps are under.
func (t *Tracer) End(j Job, e End) {
	if t == nil {
		return
	}
	ctx := context.WithValue(context.Background(), ofJob{}, j)
	_, span := t.tracer.Start(ctx, "job "+j.Kind, trace.WithNewRoot(), trace.WithTimestamp(j.Submitted),
		trace.WithAttributes(attribute.String("volley.job", j.ID), attribute.String("volley.owner", j.Owner),
			attribute.String("volley.state", e.State), attribute.Int64("volley.steps", int64(e.Steps)),
			attribute.Int64("volley.restarts", int64(e.Restarts))))
	if e.Failed {
		span.SetStatus(codes.Error, e.Why)
	}
	span.End(trace.WithTimestamp(e.At))
}

// Close sends what is left, for a while.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// trace and span return the ids of a job's trace, and of its own span.
func (j Job) trace() (id trace.TraceID) {
	sum := j.sum("trace")
	copy(id[:], sum[:])
	return id
}

func (j Job) span() (id trace.SpanID) {
	sum := j.sum("span")
	copy(id[:], sum[:])
	return id
}

func (j Job) sum(of string) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s %s %d", of, j.ID, j.Submitted.UnixNano()))
}

// ofJob is the key of the job whose own span is begun.
type ofJob struct{}

// named gives a job's own span the ids that its steps have named, and all others any.
type named struct{}

// NewIDs returns the ids of a span that begins a trace.
func (named) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if j, ok := ctx.Value(ofJob{}).(Job); ok {
		return j.trace(), j.span()
	}
	var id trace.TraceID
	_, _ = rand.Read(id[:]) // which does not fail
	return id, named{}.NewSpanID(ctx, id)
}

// NewSpanID returns the id of a span under another.
func (named) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	_, _ = rand.Read(id[:])
	return id
}
