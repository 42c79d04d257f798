package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"gocloud.dev/gcerrors"
	"google.golang.org/api/googleapi"

	"github.com/volley-engine/volley/internal/fault"
)

// never is why something cannot be done with a store, however often it is tried.
type never string

func (n never) Error() string { return string(n) }

// What cannot be done with a web server.
const (
	errReadOnly = never("a web server does not promise that what it is sent appears whole: save to s3:// or gs://")
	errUnlisted = never("a web server does not list what it has: name each file")
	errUnsized  = never("the server does not say how long it is: download it first")
	errUnparted = never("the server does not send parts of it: download it first")
)

// statusError is what a web server has answered.
type statusError int

func (e statusError) Error() string {
	return fmt.Sprintf("the server answers %d %s", int(e), http.StatusText(int(e)))
}

// Is reports whether an answer says that there is no such object.
func (e statusError) Is(target error) bool {
	return target == fs.ErrNotExist && (e == http.StatusNotFound || e == http.StatusGone)
}

// missing is the error of an object that is not there.
type missing struct{ error }

func (missing) Is(target error) bool { return target == fs.ErrNotExist }

func (missing) Error() string { return "there is no such object" }

// explained returns the error about an object: what all machines would meet is the input's fault, the rest may be
// tried again.
func explained(op, name string, err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err
	}
	var not never
	kind, hint := fault.NoResources, ""
	switch code := gcerrors.Code(err); {
	case errors.Is(err, fs.ErrNotExist):
		kind = fault.BadInput
	case code == gcerrors.NotFound:
		kind, err = fault.BadInput, missing{err}
	case code == gcerrors.PermissionDenied, refused(err):
		kind, hint = fault.BadInput, credentialHint(name, err)
	case elsewhere(err) != "":
		kind, hint = fault.BadInput, "the bucket is in the region "+elsewhere(err)+": set AWS_REGION"
	case code == gcerrors.InvalidArgument, code == gcerrors.FailedPrecondition, code == gcerrors.Unimplemented,
		errors.As(err, &not), answered(err):
		kind = fault.BadInput
	}
	if statusOf(err) == http.StatusBadRequest && strings.HasPrefix(name, "s3:") {
		hint = "credentials that have expired are answered so, too"
	}
	return fault.New(kind, op, shown(name), plain(err)).WithHint(hint)
}

// credentialHint returns what to do where a server refuses this process.
func credentialHint(name string, err error) (hint string) {
	switch scheme, _, _ := strings.Cut(name, ":"); scheme {
	case "s3":
		hint = "credentials come from the environment of each process that reads or writes: AWS_ACCESS_KEY_ID and " +
			"AWS_SECRET_ACCESS_KEY, AWS_PROFILE or the machine's role"
	case "gs":
		hint = "credentials come from the environment of each process that reads or writes: " +
			"GOOGLE_APPLICATION_CREDENTIALS or the machine's account"
	default:
		return "an address that was signed may have expired"
	}
	var u uncredited
	if errors.As(err, &u) {
		hint += "; here are none: " + strings.ReplaceAll(u.why.Error(), "\n", "; ")
	}
	return hint
}

// elsewhere returns the region in which a bucket is, where the answer is that it is in another one.
func elsewhere(err error) string {
	var a *awshttp.ResponseError
	if errors.As(err, &a) && a.HTTPStatusCode()/100 == 3 {
		return cmp.Or(a.Response.Header.Get("X-Amz-Bucket-Region"), "that its owner knows")
	}
	return ""
}

// told is what a store has answered, in its own words.
type told struct {
	error
	all error
}

func (t told) Unwrap() error { return t.all }

// plain returns an error that says once what a store has answered: libraries repeat the name at each level.
func plain(err error) error {
	var a smithy.APIError
	var g *googleapi.Error
	var u *url.Error
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return err
	case errors.As(err, &a):
		return told{fmt.Errorf("the store answers %d %s: %s", statusOf(err), a.ErrorCode(), a.ErrorMessage()), err}
	case errors.As(err, &g):
		return told{fmt.Errorf("the store answers %d: %s", g.Code, g.Message), err}
	case errors.As(err, &u):
		return told{u.Err, err}
	}
	return err
}

// shown returns a name without the query of an address, which may be what makes it secret.
func shown(name string) string {
	if at := strings.IndexByte(name, '?'); at >= 0 && IsWeb(name) {
		return name[:at] + "?…"
	}
	return name
}

// statusOf returns the status of a server's answer; 0 where there was none.
func statusOf(err error) int {
	var w statusError
	var a *awshttp.ResponseError
	var g *googleapi.Error
	switch {
	case errors.As(err, &w):
		return int(w)
	case errors.As(err, &a):
		return a.HTTPStatusCode()
	case errors.As(err, &g):
		return g.Code
	}
	return 0
}

// refused reports whether a server does not let this process read or write.
func refused(err error) bool {
	s := statusOf(err)
	return s == http.StatusUnauthorized || s == http.StatusForbidden
}

// answered reports whether a server has answered that it never will.
func answered(err error) bool {
	s := statusOf(err)
	return s >= 400 && s < 500 && s != http.StatusTooManyRequests && s != http.StatusRequestTimeout
}

// again reports whether what has failed may be tried again.
func again(ctx context.Context, err error) bool {
	return ctx.Err() == nil && fault.Policy(fault.KindOf(explained("", "", err))).Retry
}
