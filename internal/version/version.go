package version

import (
	"fmt"
	"strconv"
	"strings"
)

// Module is the version of this module.
const Module = "0.2.0"

// The versions of the protocol that this module speaks, from the oldest to the newest. A version is dropped one minor
// version of the module after the next has come.
const (
	Oldest = "volley/5"
	Newest = "volley/6"
)

// mostApart is how many minor versions two processes of a cluster may be apart.
const mostApart = 1

// silentModule is the version of modules that do not say theirs.
const silentModule = "0.1.0"

// Side is what a process says of itself when it calls another.
type Side struct {
	Oldest string // version of the protocol that it speaks
	Newest string // empty is the oldest: before volley/6 a process spoke one only
	Module string // empty is of a process that speaks volley/5 only
}

// Own returns what this process says.
func Own() Side { return Side{Oldest, Newest, Module} }

// Agree returns the version of the protocol in which this process and another speak: the newest that both have. It is
// an error where there is none, or where their modules are too far apart.
func (s Side) Agree() (string, error) {
	if s.Newest == "" {
		s.Newest = s.Oldest
	}
	if s.Module == "" {
		s.Module = silentModule
	}
	from, ok := number(s.Oldest)
	to, ok2 := number(s.Newest)
	if !ok || !ok2 || from > to {
		return "", fmt.Errorf("it speaks %q, which is no version of the protocol", s.Oldest)
	}
	common := min(to, must(Newest))
	if common < max(from, must(Oldest)) {
		return "", fmt.Errorf("it speaks %s (volley %s), this process %s (volley %s): upgrade the older of the two",
			span(s.Oldest, s.Newest), s.Module, span(Oldest, Newest), Module)
	}
	return prefix + strconv.Itoa(common), modulesAgree(s.Module)
}

// AtLeast reports whether a version of the protocol is another or a later one.
func AtLeast(v, least string) bool {
	n, ok := number(v)
	return ok && n >= must(least)
}

// modulesAgree returns an error where a module is further from this one than mostApart.
func modulesAgree(theirs string) error {
	major, minor, ok := parse(theirs)
	ours, our, _ := parse(Module)
	if !ok {
		return fmt.Errorf("it is of volley %q, which is no version", theirs)
	}
	if apart := minor - our; major != ours || apart > mostApart || apart < -mostApart {
		return fmt.Errorf("it is of volley %s, this process of %s: within a cluster they may be %d minor version apart",
			theirs, Module, mostApart)
	}
	return nil
}

// Number returns the number of a version of the protocol; 0 where it is none.
func Number(v string) int {
	n, _ := number(v)
	return n
}

const prefix = "volley/"

func number(v string) (int, bool) {
	raw, ok := strings.CutPrefix(v, prefix)
	n, err := strconv.Atoi(raw)
	return n, ok && err == nil && n > 0
}

// must returns the number of one of this package's own versions.
func must(v string) int {
	n, ok := number(v)
	if !ok {
		panic("not a version of the protocol: " + v)
	}
	return n
}

// parse returns the first two numbers of a version MAJOR.MINOR.PATCH.
func parse(v string) (major, minor int, ok bool) {
	parts := strings.SplitN(strings.TrimPrefix(v, "v"), ".", 3)
	if len(parts) != 3 {
		return 0, 0, false
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return major, minor, err == nil && err2 == nil
}

func span(oldest, newest string) string {
	if oldest == newest {
		return oldest
	}
	return oldest + " to " + newest
}
