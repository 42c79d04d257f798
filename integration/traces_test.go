package integration

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/volley-engine/volley/integration/lab"
)

// TestACollectorIsToldOfSteps: of a job and of each of its steps, as one trace.
func TestACollectorIsToldOfSteps(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	named, traced := map[string]int{}, map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		raw, err := io.ReadAll(req.Body) // not compressed, unless the environment says so
		m := &collector.ExportTraceServiceRequest{}
		if err != nil || proto.Unmarshal(raw, m) != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, x := range m.ResourceSpans {
			for _, y := range x.ScopeSpans {
				for _, s := range y.Spans {
					named[s.Name]++
					traced[string(s.TraceId)] = true
				}
			}
		}
	}))
	defer server.Close()
	c := &cluster{lab.New(binary, t.TempDir(), "--suspicion", suspicion.String(), "--traces", server.URL), t}
	t.Cleanup(c.stop)
	c.startDriver()
	c.join("a")
	id := c.submit("--data", generated(t), "--solver", "gd", "--sync", "bsp", "--tol", "0", "--max-iterations", "5")
	if err := lab.Await("the trace of "+id, func() (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		return named["step"] >= 5 && named["job logistic"] == 1, nil
	}); err != nil {
		t.Fatalf("%v: %v", err, named)
	}
	if len(traced) != 1 {
		t.Errorf("%d traces of one job", len(traced))
	}
	_, errs, code := volley(t, "driver", "--data-dir", t.TempDir(), "--traces", "localhost:4318")
	if code == 0 || !strings.Contains(errs, "is no URL of a collector") {
		t.Errorf("%d: %s", code, errs)
	}
}
