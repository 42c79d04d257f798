package plan

import "time"

// TablesUse is what workers have done with parameter tables since their loop began, and what the tables are, at a
// number of clocks that all of them have finished.
type TablesUse struct {
	Clock     int
	Executors []ExecutorUse
	Workers   []WorkerUse
	Tables    []TableUse
	Helping   int64 // bytes that workers have sent each other, who do parts of one another's clocks
	States    int64 // bytes of workers' states, for checkpoints
}

// ExecutorUse is how the slots of an executor have spent their time, all together, as it said last.
type ExecutorUse struct {
	Name   string
	Slots  int
	Busy   time.Duration
	Waited time.Duration // within clocks, and for a worker that may begin its next one
}

// WorkerUse is what a worker has done, as it said at the end of its last clock that was reported.
type WorkerUse struct {
	Executor int           // place in Executors
	Clock    int           // that it has finished
	Worked   time.Duration // in its clocks, or for others between them
	Waited   time.Duration // within its clocks: for a row, for others to see its updates, or for who does a part of it
	Waits    int64         // how often it had to, for a row or to add to one
	Shared   int64         // items of its clocks that others may do (FlexRR)
	Given    int64         // of these, what others have done
	Taken    int64         // items that it has done for others
}

// TableUse is what a table is, and what workers have read of it.
type TableUse struct {
	Name  string
	Slack int   // in clocks; -1 is no bound
	Rows  int64 // that some worker has added to
	Bytes int64 // of these, in memory
	// Reads has how often workers have read a row, by how many clocks before its own the worker has missed updates of:
	// the last is of as many, or more. A row counts once in a worker's clock, and once for each newer value.
	Reads [Ages]int64
	Waits int64            // how often a worker had to wait, for a row or to add to one
	Sent  [SentKinds]int64 // bytes between processes, by what they were
}

// Ages is how many ages of what was read are told apart.
const Ages = 16

// SentKind is what was sent between the processes of a table.
type SentKind int

// The kinds of what is sent.
const (
	SentUpdates   SentKind = iota // what workers have added
	SentAsked                     // requests for rows
	SentRows                      // rows that were asked for
	SentPushed                    // rows that had changed, to who has them
	SentProgress                  // how far workers and shards are
	SentSnapshots                 // rows for checkpoints
	SentKinds
)
