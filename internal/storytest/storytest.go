package storytest

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
)

// Args are the arguments of a command. What cannot be read fails the story.
type Args struct {
	T *testing.T
	D *datadriven.TestData
}

// Has reports whether an argument is given.
func (a Args) Has(key string) bool { return a.D.HasArg(key) }

// Arg returns the i-th argument.
func (a Args) Arg(i int) string { return a.D.CmdArgs[i].Key }

// Executor returns the first argument as an executor.
func (a Args) Executor() plan.ExecutorID { return plan.ExecutorID(a.Arg(0)) }

// List returns the values of key=(A,B,...).
func (a Args) List(key string) []string {
	for _, c := range a.D.CmdArgs {
		if c.Key == key {
			return c.Vals
		}
	}
	return nil
}

// Text returns the value of key=VALUE, or other.
func (a Args) Text(key, other string) string {
	if v := a.List(key); len(v) > 0 {
		return v[0]
	}
	return other
}

// Number reads a whole number.
func (a Args) Number(v string) int {
	a.T.Helper()
	n, err := strconv.Atoi(v)
	a.Must(err)
	return n
}

// Int returns the value of key=N, or other.
func (a Args) Int(key string, other int) int {
	a.T.Helper()
	if v := a.Text(key, ""); v != "" {
		return a.Number(v)
	}
	return other
}

// Float returns the value of key=F, or other.
func (a Args) Float(key string, other float64) float64 {
	a.T.Helper()
	v := a.Text(key, "")
	if v == "" {
		return other
	}
	f, err := strconv.ParseFloat(v, 64)
	a.Must(err)
	return f
}

// Duration returns the value of key=D, or other.
func (a Args) Duration(key string, other time.Duration) time.Duration {
	a.T.Helper()
	v := a.Text(key, "")
	if v == "" {
		return other
	}
	d, err := time.ParseDuration(v)
	a.Must(err)
	return d
}

// Numbered returns the arguments from one on that begin with a digit.
func (a Args) Numbered(from int) (out []string) {
	for _, c := range a.D.CmdArgs[from:] {
		if c.Key[0] >= '0' && c.Key[0] <= '9' {
			out = append(out, c.Key)
		}
	}
	return out
}

// Numbers returns the values of key=(N*TIMES,...), or other where it is not given: 7*3 is 7,7,7.
func Numbers[T int | int64 | float64](a Args, key string, other []T) (out []T) {
	if !a.Has(key) {
		return other
	}
	for _, v := range a.List(key) {
		n, times, more := strings.Cut(v, "*")
		if !more {
			times = "1"
		}
		f, err := strconv.ParseFloat(n, 64)
		a.Must(err)
		for range a.Number(times) {
			out = append(out, T(f))
		}
	}
	return out
}

// Fault returns an error of the kind that key=KIND names, blanks as hyphens; nil where it is not given.
func (a Args) Fault(key string) error { return a.FaultOf(a.Text(key, "")) }

// FaultOf returns an error of a kind by name; nil of "".
func (a Args) FaultOf(name string) error {
	a.T.Helper()
	if name == "" {
		return nil
	}
	for _, k := range fault.Kinds() {
		if k.String() == strings.ReplaceAll(name, "-", " ") {
			return fault.New(k, "read", "it", errors.New("it broke"))
		}
	}
	a.D.Fatalf(a.T, "%q is no kind of failure", name)
	return nil
}

// Must fails the story if there is an error.
func (a Args) Must(err error) {
	a.T.Helper()
	if err != nil {
		a.D.Fatalf(a.T, "%v", err)
	}
}
