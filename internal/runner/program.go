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
	// accumulator and how many positions it has visited. state is the row state
	// of these rows, State numbers each; Fold may change it.
	Fold(acc any, b *pack.Batch, from, to int, state []float64) (any, int, error)
	// Weighted reports whether results are sums over rows times their weights,
	// where rows have weights.
	Weighted() bool
	// State returns how many numbers the row state has for each row; the next step continues with them.
	State() int
	Merge(a, b any) any
	Scale(a any, by float64) any
	// Close finishes the result of a split, which stands for a number of rows, before
	// it is merged with others.
	Close(a any, rows float64) any
	Encode(a any) ([]byte, error)
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

// Shuffles holds the map outputs that tasks make for each other.
type Shuffles interface {
	// Advance notes that a task has read more rows.
	Advance(rows int)
	// Moved notes that a task makes progress: rows were processed, or bytes moved.
	Moved(n int)
	// Spilled notes that a task has written bytes of rows to disk, as they do not fit into memory.
	Spilled(bytes int64)
	// Memory returns how many bytes of rows a task may hold.
	Memory() int
	// Held returns how many bytes a task may hold as a whole, such as the values of a
	// key; 0 is no limit.
	Held() int
	// NewMapOutput begins the output of a map task, or rows that do not fit into
	// memory.
	NewMapOutput(partitions int) *shuffle.Writer
	// KeepShuffle keeps the output of a map task for its readers, and returns
	// the name of the holder.
	KeepShuffle(key shuffle.Key, b *shuffle.Output) plan.ExecutorID
	// OpenMapOutput reads partitions of an output from its holder.
	OpenMapOutput(ctx context.Context, holder plan.ExecutorID, key shuffle.Key, span shuffle.Span) (io.ReadCloser,
		error)
	// DropShuffle gives up the outputs of a node up to an attempt.
	DropShuffle(node int, through uint64)
	// Shared returns a value of about the given size that all tasks of this process
	// share: the first task to ask for a version of it makes it, and another
	// version is dropped.
	Shared(name, version string, bytes int64, make func() (any, error)) (any, error)
}

// Acc is a partial result with the count of positions that the fold itself
// reports.
type Acc struct {
	Value any
	Count int64
	// Weight divides sums to give means: the weight of the rows visited, or, where the
	// result stands for whole splits, of all their rows. A row without a weight has
	// weight 1.
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
