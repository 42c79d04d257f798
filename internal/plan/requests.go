package plan

import "time"

// NoPack is the number of no pack.
const NoPack = -1

// Extension is what a plan has come to be while its job runs.
type Extension struct {
	Fingerprint Digest // of the whole plan
	Sources     []byte // what executors need beside the arguments, as they are told when they join
}

// StepRequest asks for one step: the fold of a node over a pack under a parameter.
type StepRequest struct {
	Node   int
	Pack   int
	Param  []byte  // encoded
	Digest Digest  // of Param, where the caller has it at hand
	Train  bool    // a training step, which may be cut; else a pass that is not
	Work   bool    // not cut, but part of the method
	Ratio  float64 // of this step's plan; 0 is the job's
	Batch  float64 // share of each split that a training step folds; 0 is the job's
	Sample bool    // that share is a sample, which the program makes larger as it needs; else it counts on all of it
	// Pieces are how many pieces each split has, the leaves of the merge tree; without them nothing is leased.
	Pieces   []int
	State    bool // rows have state, for the next step to go on with
	Weighted bool // results are sums over rows times their weights
	Entries  bool // progress is counted in the entries of sparse rows
}

// StepOutcome is what a step came to: encoded nodes of the merge tree, and how much they stand for.
type StepOutcome struct {
	Splits int
	Parts  []EncodedPart
	Info   StepInfo
	// Visited is how many rows of each split the result has; with Scale, results
	// stand for all of them.
	Visited []int64
	Scale   bool
}

// EncodedPart is a node of the merge tree at a level and index.
type EncodedPart struct {
	Level, Index int
	Data         []byte
	Weight       float64 // what its sums are to be divided by for means
}

// StepInfo says how much of the data a step's result stands for.
type StepInfo struct {
	Step   int     // number of the training step
	Rows   int64   // N, the rows of the pack
	Merged int64   // rows that were folded and merged
	Weight float64 // what sums in the result are to be divided by for means
	Share  float64 // Merged / Rows
	NEff   float64 // effective sample size (docs/semantics.md)
	Cut    bool
}

// CallRequest asks for an action's tasks, one for each element of Args.
type CallRequest struct {
	Node       int
	Pack       int        // number of the pack whose splits the tasks read, where these are; or NoPack
	Args       [][]byte   // by task
	Partitions []int      // by task; nil is one after the other
	Prefer     ExecutorID // is preferred, if it is connected
	Holders    [][]string // by task: executors that hold its input; may be nil
	Avoid      [][]string // by task: executors to avoid, where there are others; may be nil
}

// CallOutcome is the results of an action's tasks. Lost marks those without a result whose input is lost, which
// fails no job: it can be recomputed.
type CallOutcome struct {
	ID            uint64 // of the call: those of a job are numbered from 1, in the order in which they were asked for
	Data          [][]byte
	Lost          []error
	ExecutorsLost int64 // by the job so far
	Began, Ended  Time
	Tasks         []TaskRun // by task
}

// Shuffled is what map tasks have made of a shuffle.
type Shuffled struct {
	Node     int
	Tasks    int
	Rows     int64
	Bytes    []int64 // by partition
	HotKey   string  // as text; empty where there is none
	HotShare float64 // of the rows that tasks with a hot key have, those of the hottest
}

// TaskRun is how a task was run: by the attempt whose result was used.
type TaskRun struct {
	Executor ExecutorID // empty where its input is lost
	Rows     int64      // that it has read
	Busy     time.Duration
	Attempts int                  // it was given to an executor, on the whole
	Spilled  int64                // bytes of rows, to disk
	Fetched  map[ExecutorID]int64 // bytes of map outputs that it has read, by who holds them
}
