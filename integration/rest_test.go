package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/integration/restclient"
)

// bearing has a client show a token.
func bearing(token string) restclient.ClientOption {
	return restclient.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	})
}

// TestRESTByAGeneratedClient: a client that was made of docs/openapi.yaml submits a job, follows it to its end by
// events, reads what it printed and its event log, cancels and resumes another; a token that may read does none of it.
func TestRESTByAGeneratedClient(t *testing.T) {
	c := &cluster{lab.New(binary, t.TempDir(), "--suspicion", suspicion.String(), "--http", "127.0.0.1:0"), t}
	t.Cleanup(c.stop)
	c.startDriver()
	c.join("a")
	create := func(role string) string {
		out, errs, code := volley(t, "token", "create", "--role", role, "--driver", c.Addr)
		if code != 0 {
			t.Fatalf("exit %d: %s", code, errs)
		}
		return strings.TrimSpace(out)
	}
	at, ctx := "http://"+c.Driver.Ready["http"], t.Context()
	reader, err := restclient.NewClientWithResponses(at, bearing(create("read")))
	if err != nil {
		t.Fatal(err)
	}
	submitter, err := restclient.NewClientWithResponses(at, bearing(create("submit")))
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--data", labelled(t, 2000), "--splits", "2", "--max-iterations", "30", "--sync", "bsp"}
	job := restclient.JobRequest{Job: "logistic", Args: &args}
	refused, err := reader.SubmitJobWithResponse(ctx, job)
	if err != nil || refused.StatusCode() != http.StatusForbidden {
		t.Fatalf("a token that may read submits: %v, %v", refused, err)
	}
	odd, err := submitter.SubmitJobWithBodyWithResponse(ctx, "application/json",
		strings.NewReader(`{"job":"logistic","flags":[]}`))
	if err != nil || odd.StatusCode() != http.StatusBadRequest || !strings.Contains(string(odd.Body), "flags") {
		t.Errorf("a field that is none: %v, %s", err, odd.Body)
	}
	made, err := submitter.SubmitJobWithResponse(ctx, job)
	if err != nil || made.JSON200 == nil {
		t.Fatalf("%v: %s", err, made.Body)
	}
	id := made.JSON200.Id
	if last := followed(t, reader, id); last.State != restclient.Done || last.Step == 0 || last.Result == nil ||
		last.Iteration == nil || last.Objective == nil || last.LeftSeconds != nil {
		t.Errorf("its events have ended with %+v", last)
	}
	shown, err := reader.GetJobWithResponse(ctx, id)
	if err != nil || shown.JSON200 == nil || shown.JSON200.Job != "logistic" {
		t.Errorf("%v: %s", err, shown.Body)
	}
	log, err := reader.JobLogWithResponse(ctx, id, nil)
	if err != nil || log.StatusCode() != http.StatusOK || log.HTTPResponse.Header.Get("Volley-Next") == "" {
		t.Errorf("%v: %s", err, log.Body)
	}
	if res, err := reader.JobEventLogWithResponse(ctx, id); err != nil || res.StatusCode() != http.StatusForbidden {
		t.Errorf("who may read has the event log: %v", err)
	}
	events, err := submitter.JobEventLogWithResponse(ctx, id)
	if err != nil || !strings.HasPrefix(string(events.Body), `{"event":"header"`) ||
		!strings.Contains(string(events.Body), `{"event":"footer"`) {
		t.Errorf("%v: %.100s", err, events.Body)
	}
	all, err := reader.ListExecutorsWithResponse(ctx)
	if err != nil || all.JSON200 == nil || len(*all.JSON200) != 1 {
		t.Errorf("%v: %s", err, all.Body)
	}
	cancelledAndResumed(t, c, submitter, args)
	for _, command := range [][]string{{"top", id, "--once"}, {"job", id}} {
		out, errs, code := volley(t, append(command, "--driver", c.Addr)...)
		for _, want := range []string{"logistic", "bsp", "objective", "splits      in steps 1 to", "rows a second"} {
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("%v: exit %d, no %q: %s%s", command, code, want, out, errs)
			}
		}
	}
}

// followed returns the last that a job's events have of it.
func followed(t *testing.T, c *restclient.ClientWithResponses, id string) (last restclient.Job) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, err := c.ClientInterface.(*restclient.Client).JobEvents(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(data), &last); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return last
}

// cancelledAndResumed cancels a job that would run for long, and has it go on.
func cancelledAndResumed(t *testing.T, c *cluster, submitter *restclient.ClientWithResponses, args []string) {
	t.Helper()
	long := append(args[:len(args):len(args)], "--tol", "0", "--solver", "nesterov", "--max-iterations", "1000000")
	made, err := submitter.SubmitJobWithResponse(t.Context(), restclient.JobRequest{Job: "logistic", Args: &long})
	if err != nil || made.JSON200 == nil {
		t.Fatalf("%v: %s", err, made.Body)
	}
	id := made.JSON200.Id
	c.atStep(id, 3)
	for _, do := range []string{"cancel", "resume", "cancel"} {
		var code int
		switch do {
		case "cancel":
			res, err := submitter.CancelJobWithResponse(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			code = res.StatusCode()
			c.await(id, "its cancellation", func(j job) bool { return j.State == "cancelled" })
		case "resume":
			res, err := submitter.ResumeJobWithResponse(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			code = res.StatusCode()
			c.await(id, "its next steps", func(j job) bool { return j.State == "running" && j.Step > 3 })
		}
		if code != http.StatusOK {
			t.Errorf("%s: status %d", do, code)
		}
	}
	if res, err := submitter.CancelJobWithResponse(t.Context(), "job-999999"); err != nil ||
		res.StatusCode() != http.StatusNotFound {
		t.Errorf("a job that is none: %v, %v", res.StatusCode(), err)
	}
}
