package wire

import (
	"encoding/json"
	"os"
	"strings"
	"time"
)

// Roles of a process that a cluster has started.
const (
	JobRole    = "job"
	RunnerRole = "runner"
)

// Process tells a program that a cluster has started what it is there for. It
// travels in one environment variable, which only the same user can read.
type Process struct {
	Role string // empty: the program was started by its user
	Job  string
	// Incarnation tells processes of one job apart.
	Incarnation string
	// Term counts the processes that the job has had: what is done for an earlier one is
	// told by it.
	Term        uint32
	Driver      string // address
	Direct      string // of a runner: where the job process takes bulky messages
	Token       string // the job's own
	Executor    string // of a runner
	JobDir      string // of a job's process: where it keeps what it makes
	Dir         string // where the program was submitted, if it is the user's
	Slots       int
	Pace        string // of a runner; empty is none
	PaceRate    float64
	Unreachable bool          // of a runner: blocks go through the driver
	Beat        time.Duration // of a runner: how often to give a heartbeat
}

// ExitLost is the exit code of a job's process that has lost its driver (EX_TEMPFAIL).
const ExitLost = 75

const processEnv = "VOLLEY_PROCESS"

// Environ returns the environment of a child: of this process's what a program
// needs to run at all, where it keeps its data, and what it is there for.
func (p Process) Environ(dataDir string) []string {
	var out []string
	for _, v := range os.Environ() {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "PATH", "HOME", "LANG", "TZ", "TMPDIR", "GODEBUG":
			out = append(out, v)
		}
	}
	raw, _ := json.Marshal(p) // plain fields
	return append(out, processEnv+"="+string(raw), "VOLLEY_DATA_DIR="+dataDir)
}

// RunnerFD is the file descriptor of a runner's connection to its executor.
const RunnerFD = 3

// ThisProcess returns what this process was started for.
func ThisProcess() Process {
	var p Process
	_ = json.Unmarshal([]byte(os.Getenv(processEnv)), &p) // what is no JSON is not from us
	return p
}
