package runner

import (
	"context"
	"io"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/storage/pack"
	"github.com/volley-engine/volley/storage/shuffle"
)

// Folder folds rows of a pack into an accumulator, under one parameter. An
// accumulator that was handed to Fold, Merge or Scale belongs to it; what it
// returns replaces it.
type Folder interface {
	Zero() any
	// Fold adds the rows at positions [from, to) of a batch and returns the
	// accumulator and how many positions it has visited. state is what lives with
	// these rows, State numbers each; Fold may change it.
	Fold(acc any, b *pack.Batch, from, to int, state []float64) (any, int, error)
	// Weighted says that results are sums over rows times their weights, where rows
	// have some.
	Weighted() bool
	// State is how many numbers live with each row, for the next step to go on with.
	State() int
	Merge(a, b any) any
	Scale(a any, by float64) any
	// Close sees the result of a split, which stands for a number of rows, before it is
	// merged with those of others.
	Close(a any, rows float64) any
	Encode(a any) ([]byte, error)
	Decode(raw []byte) (any, error)
}

// NewFolder prepares a fold of a pack under an encoded parameter.
type NewFolder func(meta *pack.Meta, param []byte) (Folder, error)

// Program is a user's plan, built on every node from the same arguments.
type Program interface {
	// Fingerprint is a digest of the plan; nodes with different ones cannot
	// work together.
	Fingerprint() plan.Digest
	// Folders returns what prepares the fold of a step's node.
	Folders(node int) (NewFolder, error)
	// Task runs one task of an action's node on a partition.
	Task(ctx context.Context, node, partition int, args []byte, packs TaskContext) ([]byte, error)
}

// TaskContext opens the splits that a task needs.
type TaskContext interface {
	// OpenSplit maps a split of the pack that a node made.
	OpenSplit(node, split int) (*pack.Split, error)
	// MakePack makes the pack of a node on this executor, whose name it
	// returns.
	MakePack(ctx context.Context, node int) (plan.ExecutorID, *pack.Meta, error)
	Shuffles
}

// Shuffles are what tasks make for each other.
type Shuffles interface {
	// Advance says that a task has read more rows.
	Advance(rows int)
	// Moved says that a task gets on: rows have passed, or bytes were moved.
	Moved(n int)
	// Memory is how many bytes of rows a task may hold.
	Memory() int
	// Held is how many bytes may be taken by what a task holds as a whole, such as the
	// values of a key; 0 where nobody has set a limit.
	Held() int
	// NewMapOutput begins the output of a map task, or rows that do not fit into
	// memory.
	NewMapOutput(partitions int) *shuffle.Writer
	// KeepShuffle keeps the output of a map task for those who ask for it, and
	// says who it is that does.
	KeepShuffle(key shuffle.Key, b *shuffle.Output) plan.ExecutorID
	// OpenMapOutput reads partitions of an output from its holder.
	OpenMapOutput(ctx context.Context, holder plan.ExecutorID, key shuffle.Key, span shuffle.Span) (io.ReadCloser,
		error)
	// DropShuffle gives up the outputs of a node up to an attempt.
	DropShuffle(node int, through uint64)
	// Shared is a value of about the given size that all tasks of this process have
	// in common: the first one to ask for a version of it makes it, and what was
	// there of another is given up.
	Shared(name, version string, bytes int64, make func() (any, error)) (any, error)
}

// Acc is a partial result with the count of positions that the fold itself
// says it visited.
type Acc struct {
	Value any
	Count int64
	// Weight is what sums are to be divided by for means: of the rows visited, or, of
	// a result that stands for whole splits, of all of theirs. Rows weigh 1 each unless
	// they have weights.
	Weight float64
}

// merge combines two partial results, either of which may be absent.
func merge(f Folder, a, b *Acc) *Acc {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return &Acc{Value: f.Merge(a.Value, b.Value), Count: a.Count + b.Count, Weight: a.Weight + b.Weight}
}
