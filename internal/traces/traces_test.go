package traces

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// received is a collector, and what it was sent.
type received struct {
	mu  sync.Mutex
	all []*spans.Span
}

func (r *received) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var body io.Reader = req.Body
	if req.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(req.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	raw, err := io.ReadAll(body)
	m := &collector.ExportTraceServiceRequest{}
	if err == nil {
		err = proto.Unmarshal(raw, m)
	}
	if err != nil || req.URL.Path != "/v1/traces" {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range m.ResourceSpans {
		for _, y := range x.ScopeSpans {
			r.all = append(r.all, y.Spans...)
		}
	}
}

// TestATraceOfAJob: its steps are under its own span, although another driver, which leads later, tells of its end.
func TestATraceOfAJob(t *testing.T) {
	got := &received{}
	server := httptest.NewServer(got)
	defer server.Close()
	j := Job{ID: "job-000007", Submitted: time.Now().Add(-time.Minute), Kind: "logistic", Owner: "submit/alice"}
	other := Job{ID: "job-000007", Submitted: time.Now(), Kind: "logistic"} // of another cluster
	for n := range 3 {
		driver, err := Open(server.URL, "driver/1", hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		switch n {
		case 0:
			driver.Step(j, Step{Number: 1, Took: 20 * time.Millisecond, Share: 0.5, Rows: 10, Cut: true})
			driver.Step(j, Step{Number: 2, Took: 10 * time.Millisecond, Share: 1, Rows: 20})
		case 1:
			driver.End(j, End{At: time.Now(), State: "failed", Why: "it broke", Failed: true, Steps: 2})
		default:
			driver.Step(other, Step{Number: 1})
		}
		if err := driver.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(got.all) != 4 {
		t.Fatalf("%d spans", len(got.all))
	}
	job := got.all[2]
	if job.Name != "job logistic" || len(job.ParentSpanId) > 0 || job.Status.Message != "it broke" {
		t.Errorf("%v", job)
	}
	for _, s := range got.all[:2] {
		under := string(s.ParentSpanId) == string(job.SpanId) && string(s.TraceId) == string(job.TraceId)
		if s.Name != "step" || !under {
			t.Errorf("%v is not under %v", s, job)
		}
	}
	if took := got.all[0].EndTimeUnixNano - got.all[0].StartTimeUnixNano; took != uint64(20*time.Millisecond) {
		t.Errorf("a step of 20 ms took %d ns", took)
	}
	if string(got.all[3].TraceId) == string(job.TraceId) {
		t.Error("jobs of two clusters are one trace")
	}
}

// TestACollectorThatIsAwayHoldsNothingUp, and what is none is refused.
func TestACollectorThatIsAwayHoldsNothingUp(t *testing.T) {
	away, err := Open("http://127.0.0.1:1", "driver/1", hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for n := range uint64(3 * queueMost) {
		away.Step(Job{ID: "job-000001"}, Step{Number: n})
	}
	_ = away.Close()
	if took := time.Since(began); took > closeWait+10*time.Second {
		t.Errorf("%v", took)
	}
	for _, bad := range []string{"", "localhost:4318", "ftp://x", "http://"} {
		if _, err := Open(bad, "", hclog.NewNullLogger()); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	var none *Tracer
	none.Step(Job{}, Step{})
	none.End(Job{}, End{})
	if err := none.Close(); err != nil {
		t.Error(err)
	}
}
