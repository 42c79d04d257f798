package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/web"
	"github.com/volley-engine/volley/internal/wire"
)

// JobRequest is a job that is submitted by REST.
type JobRequest struct {
	Job         string   `json:"job"`
	Args        []string `json:"args,omitempty"`
	Pool        string   `json:"pool,omitempty"`
	Weight      uint32   `json:"weight,omitempty"`
	Priority    int32    `json:"priority,omitempty"`
	Timeout     float64  `json:"timeout_seconds,omitempty"`
	MaxRestarts *uint32  `json:"max_restarts,omitempty"`
}

// mostBody is how many bytes a request may have.
const mostBody = 1 << 20

// carryOut does what a POST asks for, where who has sent it may: by a certificate, or on a cluster of one user by a
// token of the role submit.
func (r *Replica) carryOut(at route, w http.ResponseWriter, req *http.Request) {
	d := r.present.Load()
	if d == nil {
		web.Refuse(w, http.StatusServiceUnavailable, r.whereLed())
		return
	}
	if req.TLS == nil && !r.admission.maySubmit(web.BearerOf(req)) {
		web.Refuse(w, http.StatusForbidden, "this needs a token of the role submit, as Authorization: Bearer TOKEN; "+
			"volley token create --role submit makes one")
		return
	}
	if err := d.allowed(wire.CallerOf(callerContext(req)), at.call); err != nil {
		web.Refuse(w, http.StatusForbidden, web.Reason(err))
		return
	}
	req.Body = http.MaxBytesReader(w, req.Body, mostBody)
	at.does(d, w, req)
}

// answered writes a reply, or why there is none, which is noted either way.
func (d *Daemon) answered(w http.ResponseWriter, r *http.Request, call, subject string, reply any, err error) {
	d.did(callerContext(r), shortMethod(call), subject, err)
	if err != nil {
		web.Refuse(w, statusOf(err), web.Reason(err))
		return
	}
	web.Answer(w, reply)
}

// statusOf returns the status by which HTTP says what a call has failed by.
func statusOf(err error) int {
	switch status.Code(err) {
	case codes.NotFound:
		return http.StatusNotFound
	case codes.InvalidArgument:
		return http.StatusBadRequest
	case codes.PermissionDenied, codes.Unauthenticated:
		return http.StatusForbidden
	case codes.FailedPrecondition, codes.AlreadyExists:
		return http.StatusConflict
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// postJob submits a bundled job.
func (d *Daemon) postJob(w http.ResponseWriter, r *http.Request) {
	var j JobRequest
	in := json.NewDecoder(r.Body)
	in.DisallowUnknownFields()
	if err := in.Decode(&j); err != nil {
		web.Refuse(w, http.StatusBadRequest, "the request is not of the form that docs/openapi.yaml has: "+err.Error())
		return
	}
	if j.Job == "" || j.Timeout < 0 || j.Timeout > (365*24*time.Hour).Seconds() {
		web.Refuse(w, http.StatusBadRequest, "it needs the name of a job, and a timeout_seconds of a year at most")
		return
	}
	req := &wire.SubmitRequest{Job: j.Job, Args: j.Args, Pool: j.Pool, Weight: max(1, j.Weight), Priority: j.Priority,
		TimeoutNs: int64(j.Timeout * float64(time.Second)), Restarts: j.MaxRestarts}
	reply, err := d.Submit(callerContext(r), req)
	subject := j.Job
	if err == nil {
		subject = reply.Id
	}
	d.answered(w, r, wire.Cluster_Submit_FullMethodName, subject, map[string]string{"id": reply.GetId()}, err)
}

// postCancel cancels a job.
func (d *Daemon) postCancel(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	_, err := d.Cancel(callerContext(r), &wire.CancelRequest{Id: id})
	d.answered(w, r, wire.Cluster_Cancel_FullMethodName, id, map[string]string{"id": id}, err)
}

// postResume has a job go on from its last checkpoint.
func (d *Daemon) postResume(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	_, err := d.Resume(callerContext(r), &wire.ResumeRequest{Id: id})
	d.answered(w, r, wire.Cluster_Resume_FullMethodName, id, map[string]string{"id": id}, err)
}

// getLog sends what a job has printed, or its runner on an executor, from an offset on. The offset after it is in a
// header: who asks from there has the rest.
func (d *Daemon) getLog(w http.ResponseWriter, r *http.Request) {
	job, err := d.jobs.find(r.PathValue("id"))
	if err != nil {
		web.Refuse(w, http.StatusNotFound, web.Reason(err))
		return
	}
	from, err := strconv.ParseInt(r.URL.Query().Get("from"), 10, 64)
	if err != nil && r.URL.Query().Has("from") || from < 0 {
		web.Refuse(w, http.StatusBadRequest, "from is the number of a byte")
		return
	}
	path, err := d.logOf(r.Context(), job, r.URL.Query().Get("executor"))
	if err != nil {
		web.Refuse(w, statusOf(err), web.Reason(err))
		return
	}
	end := logEnd(path)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Volley-Next", strconv.FormatInt(end, 10))
	_, _ = readLog(path, from, func(part []byte, next int64) error { // who has asked may be gone
		web.Extend(w)
		part = part[:max(0, len(part)-int(max(0, next-end)))] // what has come since is the next request's
		_, err := w.Write(part)
		return err
	})
}

// eventsEvery is how often an open request is told of changes at most, and that nothing has changed at least.
const (
	eventsEvery = 200 * time.Millisecond
	eventsBeat  = 15 * time.Second
)

// getEvents sends a job as it is, and again whenever it changes, as server-sent events, until it has ended.
func (d *Daemon) getEvents(w http.ResponseWriter, r *http.Request) {
	job, err := d.jobs.find(r.PathValue("id"))
	if err != nil {
		web.Refuse(w, http.StatusNotFound, web.Reason(err))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	beat := time.NewTicker(eventsBeat)
	defer beat.Stop()
	for last := ""; ; {
		info, changed := job.snapshot()
		if Over(info.State) {
			info = job.described()
		}
		raw, err := json.Marshal(ViewJob(info))
		if err != nil {
			return
		}
		web.Extend(w)
		if !d.mayRead(r) {
			return // its token was revoked, or has expired
		}
		if string(raw) != last {
			last = string(raw)
			_, err = fmt.Fprintf(w, "event: job\ndata: %s\n\n", raw)
		} else {
			_, err = fmt.Fprint(w, ": \n\n")
		}
		if err != nil || http.NewResponseController(w).Flush() != nil || Over(info.State) {
			return
		}
		if !waitChange(r, d, changed, beat.C) {
			return
		}
	}
}

// waitChange waits for a while, and then until something has changed, or for a beat; false is that there is no one to
// tell.
func waitChange(r *http.Request, d *Daemon, changed <-chan struct{}, beat <-chan time.Time) bool {
	select {
	case <-time.After(eventsEvery):
	case <-r.Context().Done():
		return false
	case <-d.ctx.Done():
		return false
	}
	select {
	case <-changed:
	case <-beat:
	case <-r.Context().Done():
		return false
	case <-d.ctx.Done():
		return false
	}
	return true
}

// getEventLog sends a job's event log as far as it goes, to who may change the job.
func (d *Daemon) getEventLog(w http.ResponseWriter, r *http.Request) {
	job, err := d.jobs.find(r.PathValue("id"))
	if err != nil {
		web.Refuse(w, http.StatusNotFound, web.Reason(err))
		return
	}
	ctx := callerContext(r)
	err = d.allowed(wire.CallerOf(ctx), wire.Cluster_Download_FullMethodName)
	if err == nil {
		err = d.mayChange(ctx, job)
	}
	if err != nil || r.TLS == nil && !d.admission.maySubmit(web.BearerOf(r)) {
		web.Refuse(w, http.StatusForbidden, "an event log is for who may change its job: it needs a token, or a "+
			"certificate, of the role submit")
		return
	}
	done, err := job.read()
	if err != nil {
		web.Refuse(w, http.StatusConflict, web.Reason(err))
		return
	}
	defer done()
	path := filepath.Join(job.dir, driver.EventsName)
	w.Header().Set("Content-Type", "application/x-ndjson")
	if n, err := sendFrom(path, 0, func(part []byte) error {
		web.Extend(w)
		_, err := w.Write(part)
		return err
	}); err != nil && n == 0 {
		web.Refuse(w, http.StatusInternalServerError, fault.New(fault.NoResources, "read", path, err).Error())
	}
}
