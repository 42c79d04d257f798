package daemon

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

func testDaemon(t *testing.T) *Daemon {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("VOLLEY_HOME", filepath.Join(dir, "home"))
	d, err := leading(Config{Listen: wire.SocketAddress(filepath.Join(dir, "driver.sock")), HTTP: "127.0.0.1:0",
		DataDir: dir, Program: "/bin/false"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// readTokens has a read token of each driver.
var readTokens sync.Map

// readToken returns a token that opens a driver's REST interface.
func readToken(d *Daemon) string {
	if have, ok := readTokens.Load(d); ok {
		return have.(string)
	}
	t := AccessToken{Role: trust.Read, Bearer: true, Uses: 1, Expires: time.Now().Add(time.Hour).UnixNano()}
	_, token, err := d.admission.createToken(context.Background(), "a test", t, time.Now())
	if err != nil {
		panic(err)
	}
	readTokens.Store(d, token)
	return token
}

func get(t *testing.T, d *Daemon, path string, change func(*http.Request)) (int, string) {
	t.Helper()
	req, err := http.NewRequest("GET", "http://"+d.HTTPAddr()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+readToken(d))
	if change != nil {
		change(req)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// described is what the test reads of docs/openapi.yaml.
type described struct {
	Paths      map[string]map[string]any
	Components struct {
		Schemas map[string]struct {
			Required   []string
			Properties map[string]any
		}
	}
}

func readDescription(t *testing.T) described {
	t.Helper()
	raw, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d described
	if err := yaml.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestTheDescriptionIsTheInterface holds docs/openapi.yaml against the routes
// and the fields of what they answer.
func TestTheDescriptionIsTheInterface(t *testing.T) {
	desc := readDescription(t)
	var paths []string
	for p := range desc.Paths {
		paths = append(paths, p)
	}
	var ours []string
	for _, r := range routes {
		ours = append(ours, r.path)
	}
	slices.Sort(paths)
	slices.Sort(ours)
	if !slices.Equal(paths, ours) {
		t.Errorf("described are %v, served %v", paths, ours)
	}
	for name, view := range map[string]any{"Job": JobView{}, "Executor": ExecutorView{}, "JobRequest": JobRequest{}} {
		want, required := map[string]bool{}, []string{}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(view)) {
			if f.Anonymous { // its fields are there, too
				continue
			}
			field, option, _ := strings.Cut(f.Tag.Get("json"), ",")
			want[field] = true
			if option == "" {
				required = append(required, field)
			}
		}
		schema := desc.Components.Schemas[name]
		for p := range schema.Properties {
			if !want[p] {
				t.Errorf("%s has no field %s", name, p)
			}
			delete(want, p)
		}
		if len(want) > 0 {
			t.Errorf("%s: %v are not described", name, want)
		}
		slices.Sort(required)
		slices.Sort(schema.Required)
		if !slices.Equal(required, schema.Required) {
			t.Errorf("%s: always there are %v, described %v", name, required, schema.Required)
		}
	}
}

func TestEveryRoute(t *testing.T) {
	d := testDaemon(t)
	for _, r := range routes {
		path := strings.ReplaceAll(r.path, "{id}", "job-000001")
		want := http.StatusOK
		if path != r.path {
			want = http.StatusNotFound
		}
		if r.leads == nil && r.own == nil { // it does something only
			want = http.StatusMethodNotAllowed
		}
		if code, body := get(t, d, path, nil); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
		for who, change := range map[string]func(*http.Request){
			"no token": func(r *http.Request) { r.Header.Del("Authorization") },
			"a wrong token": func(r *http.Request) {
				r.Header.Set("Authorization",
					"Bearer "+trust.Token{Role: trust.Read, Secret: trust.NewSecret()}.String())
			},
		} {
			if code, _ := get(t, d, path, change); code != http.StatusUnauthorized {
				t.Errorf("%s with %s: %d", path, who, code)
			}
		}
		for who, change := range map[string]func(*http.Request){
			"another host":   func(r *http.Request) { r.Host = "volley.example:80" },
			"another origin": func(r *http.Request) { r.Header.Set("Origin", "http://volley.example") },
		} {
			if code, _ := get(t, d, path, change); code != http.StatusForbidden {
				t.Errorf("%s with %s: %d", path, who, code)
			}
		}
	}
}

func TestMetrics(t *testing.T) {
	d := testDaemon(t)
	d.metrics.committed(&wire.Commit{}, &wire.Commit{Step: 1, Share: 0.7, Cut: true, Moves: 2, StaleReports: 3,
		DroppedRows: 5})
	d.metrics.committed(&wire.Commit{Moves: 2, StaleReports: 3, DroppedRows: 5},
		&wire.Commit{Step: 2, Share: 1, Moves: 4, StaleReports: 3, DroppedRows: 9})
	_, text := get(t, d, "/metrics", nil)
	for _, line := range []string{"volley_steps_total 2", "volley_steps_cut_total 1", "volley_exchanges_total 4",
		`volley_dropped_reports_total{reason="stale"} 3`, "volley_dropped_rows_total 9",
		`volley_executors{state="alive"} 0`, "go_goroutines"} {
		if !strings.Contains(text, line) {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
	if _, body := get(t, d, "/api/v1/jobs", nil); !json.Valid([]byte(body)) || strings.TrimSpace(body) != "[]" {
		t.Errorf("%q", body)
	}
}
