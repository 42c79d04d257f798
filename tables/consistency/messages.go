package consistency

import "time"

// Client is a number of a process, of which no other has the same, also after it has ended.
type Client int

// Life distinguishes the lives of a worker: each time it begins on another process, one more.
type Life int

// Update is what a worker has added to a row of a shard.
type Update[V any] struct {
	Row   Row
	Delta V
}

// Batch is a part of a worker's updates to a shard. A worker's batches to a shard are numbered from 1 on in each of its
// lives, and taken in order; the last of a clock ends it, even if it is empty.
type Batch[V any] struct {
	Client  Client
	Worker  Worker
	Life    Life
	Clock   Clock
	Number  int
	Ends    bool
	Updates []Update[V]
}

// Read asks a shard for a row that has at least an age. It makes the client one that is told of the row's changes,
// under a number that grows with each time it begins to be.
type Read struct {
	Client Client
	Row    Row
	Age    Clock
	Watch  int
}

// Drop says that a client has a row no more.
type Drop struct {
	Client Client
	Row    Row
	Watch  int
}

// Seen says that the workers of a client see a version of a row.
type Seen struct {
	Client  Client
	Row     Row
	Watch   int
	Version int
}

// Value is a row as a shard has it.
type Value[V any] struct {
	Row     Row
	Shard   int
	Epoch   int // of the shard
	Watch   int // of the Read that it answers
	Version int // of the row, in the epoch
	Age     Clock
	Value   V
	// Applied is the number of the last batch of each worker that is in the value; values share it.
	Applied []Applied
}

// Applied is how far a worker's batches have been applied.
type Applied struct {
	Life   Life
	Number int
}

// Taken says up to which number a shard has a worker's batches, and Synced up to which everyone has seen them.
type (
	Taken struct {
		Shard, Epoch int
		Worker       Worker
		Applied
	}
	Synced struct {
		Shard, Epoch int
		Worker       Worker
		Applied
	}
)

// Have tells the bookkeeper that a shard has all updates of a worker of clocks before one.
type Have struct {
	Shard, Epoch int
	Worker       Worker
	Life         Life
	Clock        Clock
}

// Complete says that all workers have finished a number of clocks, and all shards have them, and up to which a snapshot
// is kept. An era begins where all go back to a snapshot.
type Complete struct {
	Era       int
	Age, Kept Clock
}

// Restart says that a worker goes on in another life, from a clock on: what it has added since is taken back.
type Restart struct {
	Worker Worker
	Life   Life
	Clock  Clock
	On     Client // that runs it
}

// Moved says that a shard is another one now, which has what a snapshot had; Left that a client has let go of what it
// had from before, and that the shard has what the client had sent; Open that this is so of all clients.
type (
	Moved struct{ Shard, Epoch int }
	Left  struct {
		Client       Client
		Shard, Epoch int
	}
	Open struct{ Epoch int }
	// Gone says that a client has ended.
	Gone struct{ Client Client }
)

// SaveAt asks a shard for a snapshot when it has an age, and Saved says that it is kept.
type (
	SaveAt struct {
		Epoch int
		Age   Clock
	}
	Saved struct {
		Shard, Epoch int
		Age          Clock
	}
	// Passed says that a shard heard of a snapshot too late: it has later clocks already.
	Passed struct {
		Shard, Epoch int
		Age          Clock
	}
)

// Snapshot is what a shard is begun again from: exactly the updates of clocks before an age, and of each worker's
// batches the number after the last that it has.
type Snapshot[V any] struct {
	Age    Clock
	Values map[Row]V
	Next   map[Worker]Applied
}

// Command is what a machine has a shell do. Exactly one field is set.
type Command[V any] struct {
	ToShard      *Outgoing // a message to a shard
	ToClient     *Outgoing // to a client
	ToBookkeeper any
	Wake         *Worker      // what a worker waited for is there: it asks again
	Fail         *Failure     // it has waited for too long
	Save         *Snapshot[V] // keep it, and say so to the shard (SnapshotKept)
	Run          *Restart     // run a worker, from a clock on
	Stop         *Worker      // it goes on elsewhere
}

// Beginning has a shard begin in an epoch, from the snapshot of an age; 0 is from nothing.
type Beginning struct {
	Shard, Epoch, Era int
	Age               Clock
	Lives             []Restart // of all workers: what earlier lives have sent since is not taken
}

// Assignment says which client runs a worker, from a clock on; the others stop.
type Assignment struct {
	Client Client
	Restart
	Complete // a life that begins in an era must not go by an earlier one
}

// Outgoing is a message to a shard or a client.
type Outgoing struct {
	To      int
	Message any
	Unasked bool // a row's new value, to a client that has an older one
}

// Failure is a wait that was too long.
type Failure struct {
	Worker Worker
	For    string
	Waited time.Duration
}
