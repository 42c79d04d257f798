package driver

import "github.com/volley-engine/volley/internal/plan"

// LogTables is what workers on parameter tables had done at the end of the iteration before it, since their loop began.
// Only some iterations have such a line.
type LogTables struct {
	Event        string        `json:"event"` // "tables"
	Line         int           `json:"line"`  // of the log: that of the iteration
	Clock        int           `json:"clock"` // that all workers had finished
	Executors    []LogTablesOn `json:"executors"`
	Workers      []LogWorker   `json:"workers"`
	Tables       []LogTable    `json:"tables"`
	HelpingBytes int64         `json:"helping_bytes,omitempty"` // between workers that do parts of one another's clocks
	StateBytes   int64         `json:"state_bytes,omitempty"`   // of workers, for checkpoints
}

// LogTablesOn is how the slots of an executor that have workers had spent their time since the workers began there, all
// together, by its last report: waiting is within clocks, and for a worker that may begin its next one.
type LogTablesOn struct {
	Name     string `json:"name"`
	Slots    int    `json:"slots"`
	BusyNs   int64  `json:"busy_ns"`
	WaitedNs int64  `json:"waited_ns"`
}

// LogWorker is what a worker had done: the place of its executor, the clock that it had finished, for how many
// nanoseconds it had worked, and waited within its clocks, how often it had waited for a row or to add to one, the
// items of its clocks that others may do, those of them that others did, and the items that it did for others.
type LogWorker [8]int64

// UnmarshalJSON reads as many numbers as a worker has.
func (w *LogWorker) UnmarshalJSON(raw []byte) error { return numbersOf("a worker", w[:], raw) }

// LogTable is what a table was, and what was read of it (plan.TableUse).
type LogTable struct {
	Name  string  `json:"name"`
	Slack int     `json:"slack"` // -1 is no bound
	Rows  int64   `json:"rows"`
	Bytes int64   `json:"bytes"`
	Reads []int64 `json:"reads"` // by age
	Waits int64   `json:"waits"`
	Sent  []int64 `json:"sent"` // by plan.SentKind
}

// MostTables is how many tables of a job are told of, the first.
const MostTables = 1000

// TablesLine returns the line of what workers had done at the end of the iteration of another line.
func TablesLine(line int, u *plan.TablesUse) *LogTables {
	l := &LogTables{Event: "tables", Line: line, Clock: u.Clock, Executors: []LogTablesOn{}, Workers: []LogWorker{},
		Tables: []LogTable{}, HelpingBytes: u.Helping, StateBytes: u.States}
	for _, e := range u.Executors {
		l.Executors = append(l.Executors, LogTablesOn{e.Name, e.Slots, int64(e.Busy), int64(e.Waited)})
	}
	for _, w := range u.Workers {
		l.Workers = append(l.Workers, LogWorker{int64(w.Executor), int64(w.Clock), int64(w.Worked), int64(w.Waited),
			w.Waits, w.Shared, w.Given, w.Taken})
	}
	for _, t := range u.Tables[:min(len(u.Tables), MostTables)] {
		l.Tables = append(l.Tables, LogTable{brief(t.Name), t.Slack, t.Rows, t.Bytes, t.Reads[:], t.Waits, t.Sent[:]})
	}
	return l
}
