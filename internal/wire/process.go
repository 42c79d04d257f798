package wire

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/trust"
)

// Roles of a process that a cluster has started.
const (
	JobRole    = "job"
	RunnerRole = "runner"
)

// Process describes the role of a program that a cluster has started. It is
// passed in one environment variable, which only the same user can read.
type Process struct {
	Role string // empty: the program was started by its user
	Job  string
	// Incarnation distinguishes processes of one job.
	Incarnation string
	// Term counts the job's processes: it marks messages for an earlier one.
	Term        uint32
	Driver      string // address
	Direct      string // of a runner: where the job process takes bulky messages
	Token       string // the job's own, over sockets
	Identity    []byte // over the network: its certificate, a trust.Bundle
	Host        string // over the network: where it listens
	Executor    string // of a runner
	JobDir      string // of a job's process: its output directory
	Dir         string // where the program was submitted, if it is the user's
	Slots       int
	Pace        string // of a runner; empty is none
	PaceRate    float64
	Unreachable bool          // of a runner: blocks go through the driver
	Beat        time.Duration // of a runner: interval of heartbeats
}

// Party returns what the process shows to others.
func (p Process) Party() (Party, error) {
	if p.Identity == nil {
		return Party{Token: p.Token}, nil
	}
	b, err := trust.DecodeBundle(p.Identity)
	if err != nil {
		return Party{}, err
	}
	id, err := trust.NewIdentity(b)
	return Party{ID: id}, err
}

// ServeAt returns where the process serves others of its job: at a socket of a name in a directory of its own, or at
// a port of its machine.
func (p Process) ServeAt(dir, name string) string {
	if p.Identity == nil {
		return SocketAddress(filepath.Join(dir, name))
	}
	return net.JoinHostPort(p.Host, "0")
}

// ExitLost is the exit code of a job's process that has lost its driver (EX_TEMPFAIL).
const ExitLost = 75

const processEnv = "VOLLEY_PROCESS"

// passed are variables that children get, besides those of the credentials for stores of objects.
var passed = []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR", "GODEBUG", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY",
	"HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "STORAGE_EMULATOR_HOST"}

// Environ returns the environment of a child: the part of this process's that a
// program needs, the data directory, and its role.
func (p Process) Environ(dataDir string) []string {
	var out []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case slices.Contains(passed, name), strings.HasPrefix(name, "AWS_"), strings.HasPrefix(name, "GOOGLE_"):
			out = append(out, v)
		}
	}
	raw, _ := json.Marshal(p) // plain fields
	return append(out, processEnv+"="+string(raw), "VOLLEY_DATA_DIR="+dataDir)
}

// RunnerFD is the file descriptor of a runner's connection to its executor.
const RunnerFD = 3

// ThisProcess returns the role that this process was started for.
func ThisProcess() Process {
	var p Process
	_ = json.Unmarshal([]byte(os.Getenv(processEnv)), &p) // what is not JSON was not written by Environ
	return p
}
