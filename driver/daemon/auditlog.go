package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/wire"
)

// auditLine says who did what, or was not let do it.
type auditLine struct {
	At      time.Time `json:"at"`
	Who     string    `json:"who"`
	From    string    `json:"from,omitempty"` // address
	Call    string    `json:"call"`
	Subject string    `json:"subject,omitempty"`
	Failed  string    `json:"failed,omitempty"`   // why nothing came of it
	Refused string    `json:"refused,omitempty"`  // why it was not let in
	Left    int       `json:"left_out,omitempty"` // refusals before this one that were too many to be written
}

const (
	// auditName is the file in a driver's data directory.
	auditName = "audit.jsonl"
	// auditMost is how large it grows before it is put aside, under a name with .1 for the latest.
	auditMost = 64 << 20
	// auditKept is how many of those stay.
	auditKept = 8
	// refusalsMost is how many refusals are written in a second: unauthenticated callers do not fill the disk.
	refusalsMost = 10
	// subjectMost is how many bytes of a call's subject are written.
	subjectMost = 256
)

// auditLog is the file in which a driver notes who did what.
type auditLog struct {
	path string
	log  hclog.Logger
	// onRefused is called for each refusal, written or not.
	onRefused func()

	mu      sync.Mutex
	size    int64
	second  time.Time // that refusals are counted in
	strange int       // refusals in it
	left    int
}

func newAuditLog(dataDir string, log hclog.Logger) *auditLog {
	a := &auditLog{path: filepath.Join(dataDir, auditName), log: log, onRefused: func() {}}
	info, err := os.Stat(a.path)
	_, serr := os.Stat(a.path + sealsSuffix)
	if err != nil && serr != nil {
		return a // it is the first
	}
	if err == nil {
		a.size = info.Size()
	}
	if err := checkSealed(a.path); err != nil {
		a.putAside()
		log.Error("the audit log is damaged", "file", a.path+".1", "error", err)
		a.size = 0
		a.write(auditLine{Who: "driver", Call: "start", Failed: a.path + ".1: " + err.Error()})
	}
	a.checkAside()
	return a
}

// checkAside names those put aside that are damaged.
func (a *auditLog) checkAside() {
	for i := 1; i <= auditKept; i++ {
		path := fmt.Sprintf("%s.%d", a.path, i)
		if _, err := os.Stat(path + sealsSuffix); err != nil {
			continue // of an earlier version
		}
		if err := checkSealed(path); err != nil {
			a.log.Error("the audit log is damaged", "file", path, "error", err)
			a.write(auditLine{Who: "driver", Call: "start", Failed: path + ": " + err.Error()})
		}
	}
}

// checkSealed compares the audit log with its seals. One of an earlier version has none, and is put aside.
func checkSealed(path string) error {
	seals, err := os.ReadFile(path + sealsSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("it has no digests beside it, as before 0.2.0")
	}
	if err != nil {
		return err
	}
	return checkFile(path, seals)
}

// did notes what was done.
func (a *auditLog) did(l auditLine) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.write(l)
}

// refused notes that a caller was not let in.
func (a *auditLog) refused(l auditLine) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onRefused()
	if now := time.Now(); now.Sub(a.second) >= time.Second {
		a.second, a.strange = now, 0
	}
	if a.strange++; a.strange > refusalsMost {
		a.left++
		return
	}
	l.Left, a.left = a.left, 0
	a.write(l)
}

// write appends a line; a.mu is held.
func (a *auditLog) write(l auditLine) {
	l.At, l.Subject = time.Now().UTC(), l.Subject[:min(len(l.Subject), subjectMost)]
	raw, _ := json.Marshal(l) // plain fields
	if err := a.append(append(raw, '\n')); err != nil {
		a.log.Error("cannot note who did what", "line", string(raw), "error", err)
	}
}

// append seals and writes a line; a.mu is held.
func (a *auditLog) append(line []byte) error {
	if a.size+int64(len(line)) > auditMost {
		a.putAside()
		a.size = 0
	}
	if err := addSeal(a.path, a.size, line); err != nil {
		return err
	}
	f, err := os.OpenFile(a.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	n, err := f.Write(line)
	a.size += int64(n)
	return errors.Join(err, f.Close())
}

// putAside makes room for a new file.
func (a *auditLog) putAside() {
	for i := auditKept; i > 1; i-- {
		from, to := fmt.Sprintf("%s.%d", a.path, i-1), fmt.Sprintf("%s.%d", a.path, i)
		_ = os.Rename(from, to) // not all are there
		_ = os.Remove(to + sealsSuffix)
		_ = os.Rename(from+sealsSuffix, to+sealsSuffix)
	}
	err := os.Rename(a.path, a.path+".1")
	_ = os.Remove(a.path + ".1" + sealsSuffix)
	if serr := os.Rename(a.path+sealsSuffix, a.path+".1"+sealsSuffix); !errors.Is(serr, fs.ErrNotExist) {
		err = errors.Join(err, serr)
	}
	if err != nil {
		a.log.Error("cannot put the audit log aside", "error", err)
	}
}

// noted notes the calls that change something, and what came of them.
func (d *Daemon) noted(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any,
	error) {
	if err := d.allowed(wire.CallerOf(ctx), info.FullMethod); err != nil {
		return nil, err // its body has come late: it has lost its right since
	}
	reply, err := handle(ctx, req)
	subject, changes := subjectOf(req, reply)
	switch {
	case !changes:
	case info.FullMethod != wire.Cluster_Join_FullMethodName:
		d.did(ctx, shortMethod(info.FullMethod), subject, err)
	case err != nil:
		d.audit.refused(auditLine{From: wire.CallerOf(ctx).Addr, Call: "Join", Subject: subject,
			Refused: status.Convert(err).Message()})
	}
	return reply, err
}

// refusedConnection notes a connection that has come to nothing.
func (r *Replica) refusedConnection(addr string, err error) {
	r.audit.refused(auditLine{From: addr, Call: "connect", Refused: err.Error()})
}

// did notes what a caller has done.
func (d *Daemon) did(ctx context.Context, call, subject string, err error) {
	c := wire.CallerOf(ctx)
	l := auditLine{Who: whoText(d.admission.who(c)), From: c.Addr, Call: call, Subject: subject}
	if err != nil {
		l.Failed = status.Convert(err).Message()
	}
	d.audit.did(l)
}

// subjectOf returns what a call is about, and reports whether it changes something.
func subjectOf(req, reply any) (subject string, changes bool) {
	switch r := req.(type) {
	case *wire.SubmitRequest:
		if id, ok := reply.(*wire.SubmitReply); ok && id != nil {
			return id.Id, true
		}
		return r.Job, true
	case *wire.CancelRequest:
		return r.Id, true
	case *wire.ResumeRequest:
		return r.Id, true
	case *wire.RemoveRequest:
		return r.Id, true
	case *wire.PruneRequest:
		return fmt.Sprint(r.GetKeep()), true
	case *wire.DrainRequest:
		return r.Name, true
	case *wire.JoinRequest:
		return r.Name, true
	case *wire.CreateTokenRequest:
		made, _ := reply.(*wire.CreateTokenReply)
		return fmt.Sprintf("%s %s %s for %v", made.GetId(), r.Role, r.Name, time.Duration(r.TtlNs)), true
	case *wire.RevokeTokenRequest:
		return r.Id, true
	case *wire.RevokeCertificateRequest:
		return r.Which, true
	case *wire.ChangeAuthorityRequest:
		return fmt.Sprintf("retire=%v force=%v", r.Retire, r.Force), true
	case *wire.RemoveDriverRequest:
		return r.Id, true
	case *wire.EnrolRequest:
		return r.Address, true
	case *wire.RenewRequest:
		return "", true
	}
	return "", false
}
