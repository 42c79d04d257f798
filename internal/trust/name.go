package trust

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
)

// Role is what a process or a user is in a cluster.
type Role string

// The roles. Job is that of a job's process and of its runners.
const (
	Driver   Role = "driver"
	Executor Role = "executor"
	Submit   Role = "submit"
	Read     Role = "read"
	Admin    Role = "admin"
	Job      Role = "job"
)

// Granted are the roles that a token can grant.
var Granted = []Role{Executor, Submit, Read, Admin, Driver}

// ParseGranted returns the role of a name that a token can grant.
func ParseGranted(name string) (Role, error) {
	if r := Role(name); slices.Contains(Granted, r) {
		return r, nil
	}
	return "", fault.Newf(fault.Usage, "use the role", name, "there are executor, submit, read, admin and driver")
}

// Name says whose a certificate is: volley://CLUSTER/ROLE/ID, and volley://CLUSTER/job/ID/runner/EXECUTOR of a
// runner of a job. It is the certificate's only URI (as SPIFFE has it).
type Name struct {
	Cluster string
	Role    Role
	ID      string
	Runner  string // the executor, of a runner of a job
}

// scheme is that of names.
const scheme = "volley"

// String returns the name as a URI.
func (n Name) String() string {
	s := scheme + "://" + n.Cluster + "/" + string(n.Role) + "/" + n.ID
	if n.Runner != "" {
		s += "/runner/" + n.Runner
	}
	return s
}

// word is what a part of a name may be.
var word = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// Valid reports whether a text can be part of a name.
func Valid(part string) bool { return word.MatchString(part) }

// ParseName returns the name of a URI.
func ParseName(u *url.URL) (Name, error) {
	parts := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
	n := Name{Cluster: u.Host}
	switch {
	case len(parts) == 2:
		n.Role, n.ID = Role(parts[0]), parts[1]
	case len(parts) == 4 && parts[0] == string(Job) && parts[2] == "runner" && Valid(parts[3]):
		n.Role, n.ID, n.Runner = Job, parts[1], parts[3]
	}
	known := n.Role == Driver || n.Role == Job || slices.Contains(Granted, n.Role)
	if u.Scheme != scheme || !Valid(n.Cluster) || !known || !Valid(n.ID) || n.String() != u.String() {
		return Name{}, fault.Newf(fault.Unauthorized, "read the name", u.String(), "it is none of a cluster of Volley")
	}
	return n, nil
}
