package runner

import (
	"fmt"
	"math/bits"
	"runtime/debug"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/storage/pack"
)

// Sizes of a chunk: a 64th of the split; of a large split a 32nd, so that
// sequential reads of memory are interrupted less often.
const (
	chunkParts = 64
	minChunk   = 16
	largeChunk = 256
	maxChunk   = 1024
)

// ChunkRows returns how many rows of a split of n rows are folded between two
// checks of the stop flag.
func ChunkRows(n int64) int64 {
	rows := max(n/chunkParts, minChunk)
	if rows > largeChunk {
		rows *= 2
	}
	return min(rows, maxChunk)
}

// maxPieces is the most pieces of a split.
const maxPieces = 16

// What a piece has at least, in bytes of an accumulator, so that it takes long beside the merging of two: of sparse
// rows more, which are short for what they add.
const (
	densePiece  = 1
	sparsePiece = 8
)

// Pieces returns how many leaves of the merge tree a split has: 16, or the largest power of two below that leaves each
// piece as much as it must have. It depends on the data only.
func Pieces(f Folder, m *pack.Meta, split int, accBytes int64) int {
	if f.State() > 0 {
		return 1 // rows see what was made of those before them
	}
	least := sparsePiece * accBytes
	if m.Layout == pack.DenseLayout {
		least = densePiece * accBytes
	}
	n := maxPieces
	for n > 1 && m.Splits[split].Bytes/int64(n) < least {
		n /= 2
	}
	return n
}

// SplitFold folds one split from a cursor on, wrapping round, piece by piece;
// or one piece of it.
type SplitFold struct {
	f       Folder
	s       *pack.Split
	ranges  [2]plan.Span // positions to visit, in order
	count   int64        // positions visited so far
	limit   int64        // positions to visit
	cursor  int64        // the first of them
	pieces  []*Acc
	weight  float64   // of the rows visited, once they are merged
	entries bool      // progress is counted in these
	units   int64     // of progress
	state   []float64 // of all rows, by position
}

// NewSplitFold prepares a fold of up to limit rows, 0 being all; pieces comes
// from Pieces.
func NewSplitFold(f Folder, s *pack.Split, cursor, limit int64, pieces int) *SplitFold {
	t := &SplitFold{f: f, s: s, ranges: plan.Visited(s.Rows, cursor, limit), pieces: make([]*Acc, pieces),
		cursor: cursor}
	t.limit = t.ranges[0].Len() + t.ranges[1].Len()
	return t
}

// NewPartFold prepares the fold of the rows of them that are in one part of the
// split's pieces; parts divide the pieces.
func NewPartFold(f Folder, s *pack.Split, cursor, limit int64, pieces, parts, part int) *SplitFold {
	t := NewSplitFold(f, s, cursor, limit, pieces)
	t.ranges, t.limit = plan.VisitedOf(s.Rows, cursor, limit, parts, part)
	return t
}

// WithState continues with a copy of the row state; nil is zeros.
func (t *SplitFold) WithState(state []float64) *SplitFold {
	if n := t.f.State(); n > 0 {
		t.state = make([]float64, int(t.s.Rows)*n)
		copy(t.state, state)
	}
	return t
}

// State returns the row state now.
func (t *SplitFold) State() []float64 { return t.state }

// Rows returns the number of rows of the split.
func (t *SplitFold) Rows() int64 { return t.s.Rows }

// Left returns how many rows are still to be visited.
func (t *SplitFold) Left() int64 { return t.limit - t.count }

// Advance folds up to n more rows and returns how many it did.
func (t *SplitFold) Advance(n int64) (done int64, err error) {
	defer recovered(&err)
	n = min(n, t.Left())
	for done < n {
		b, acc, from, to := t.next(n - done)
		var state []float64
		if k := int64(t.f.State()); k > 0 {
			state = t.state[(b.First+int64(from))*k : (b.First+int64(to))*k]
		}
		value, visited, err := t.f.Fold(acc.Value, b, from, to, state)
		if err != nil {
			return done, err
		}
		acc.Value, acc.Count = value, acc.Count+int64(visited)
		acc.Weight = t.weigh(acc.Weight, b, from, to)
		t.visited(b, from, to)
		done += int64(to - from)
	}
	return n, nil
}

// recovered turns a panic of the user's function, or of reading a mapped file that has
// shrunk, into an error.
func recovered(err *error) {
	switch r := recover().(type) {
	case nil:
	case interface{ Addr() uintptr }: // slots set SetPanicOnFault
		*err = fault.Newf(fault.Corrupt, "read", "a split", "its file is shorter than it was: %v", r)
	default:
		*err = fault.New(fault.UserCode, "fold", "a row", fmt.Errorf("panic: %v\n%s", r, debug.Stack()))
	}
}

// next returns the next rows to fold, at most the given number: positions [from, to) of a
// batch that are all of one piece, and the accumulator of that.
func (t *SplitFold) next(most int64) (b *pack.Batch, acc *Acc, from, to int) {
	r := t.current()
	piece := t.pieceOf(r.From)
	end := min(r.From+most, (int64(piece)+1)*t.s.Rows/int64(len(t.pieces)), r.To)
	b = t.batchAt(r.From)
	end = min(end, b.First+int64(b.Rows))
	if t.pieces[piece] == nil {
		t.pieces[piece] = &Acc{Value: t.f.Zero()}
	}
	return b, t.pieces[piece], int(r.From - b.First), int(end - b.First)
}

// current returns the range of positions that is being visited.
func (t *SplitFold) current() *plan.Span {
	if t.ranges[0].Len() == 0 {
		return &t.ranges[1]
	}
	return &t.ranges[0]
}

// visited notes that rows have been folded.
func (t *SplitFold) visited(b *pack.Batch, from, to int) {
	t.count += int64(to - from)
	t.units += t.progress(b, from, to)
	t.current().From = b.First + int64(to)
}

// progress returns what visiting the positions [from, to) of a batch counts for.
func (t *SplitFold) progress(b *pack.Batch, from, to int) (n int64) {
	if b.Indices == nil || !t.entries {
		return int64(to - from)
	}
	for p := from; p < to; p++ {
		r := b.RowAt(p)
		n += int64(b.Offsets[r+1] - b.Offsets[r])
	}
	return n
}

// ProgressAt returns what Progress will be once n rows have been visited.
func (t *SplitFold) ProgressAt(rows int64) (units int64) {
	for _, span := range plan.Visited(t.s.Rows, t.cursor, t.limit) {
		for pos := span.From; pos < span.To && rows > 0; {
			b := t.batchAt(pos)
			n := min(rows, span.To-pos, b.First+int64(b.Rows)-pos)
			units += t.progress(b, int(pos-b.First), int(pos-b.First+n))
			pos, rows = pos+n, rows-n
		}
	}
	return units
}

// CountEntries makes progress count the entries of sparse rows.
func (t *SplitFold) CountEntries() { t.entries = true }

// Progress returns how far the fold has come: in rows, or in their entries.
func (t *SplitFold) Progress() int64 { return t.units }

// weigh adds the weights of the rows at positions [from, to) of a batch, one after
// the other.
func (t *SplitFold) weigh(sum float64, b *pack.Batch, from, to int) float64 {
	if b.Weights == nil || !t.f.Weighted() {
		return sum + float64(to-from)
	}
	for p := from; p < to; p++ {
		sum += b.Weights[b.RowAt(p)]
	}
	return sum
}

// pieceOf returns the piece k with k·rows/pieces <= pos < (k+1)·rows/pieces.
func (t *SplitFold) pieceOf(pos int64) int {
	n := int64(len(t.pieces))
	k := pos * n / t.s.Rows
	for (k+1)*t.s.Rows/n <= pos {
		k++
	}
	return int(k)
}

func (t *SplitFold) batchAt(pos int64) *pack.Batch {
	for i := range t.s.Batches {
		if b := &t.s.Batches[i]; pos < b.First+int64(b.Rows) {
			return b
		}
	}
	panic(fmt.Sprintf("position %d of %d lies in no batch", pos, t.s.Rows))
}

// Finish merges the pieces along their tree. scale makes the result stand for the
// whole split: W/ω times the sum over rows that weigh ω, of all that weigh W. A split
// without visited rows has no result.
func (t *SplitFold) Finish(scale bool) *Acc {
	acc := mergeTree(t.f, t.pieces)
	t.pieces = nil
	if acc == nil {
		return nil
	}
	t.weight = acc.Weight
	Close(t.f, acc, t.s.Meta, t.s.Number, t.count == t.s.Rows, scale)
	return acc
}

// Close ends the result of a split: scale makes it stand for all rows where not all
// were visited. Rows that weigh nothing stand for none.
func Close(f Folder, acc *Acc, meta *pack.Meta, split int, all, scale bool) {
	if scale && !all && acc.Weight > 0 {
		weight := float64(meta.Splits[split].Rows)
		if meta.Weighted && f.Weighted() {
			weight = meta.Splits[split].Weight
		}
		acc.Value = f.Scale(acc.Value, weight/acc.Weight)
		acc.Weight = weight
	}
	acc.Value = f.Close(acc.Value, acc.Weight)
}

// Part merges the pieces of a part that was folded separately; nil where it has no
// row to visit.
func (t *SplitFold) Part(parts, part int) *Acc {
	n := len(t.pieces) / parts
	return mergeTree(t.f, t.pieces[part*n:(part+1)*n])
}

// Count returns how many positions have been visited.
func (t *SplitFold) Count() int64 { return t.count }

// Weight returns what the rows visited weigh, once they are merged.
func (t *SplitFold) Weight() float64 { return t.weight }

// mergeTree combines leaves, a power of two of them, pairwise by levels.
func mergeTree(f Folder, leaves []*Acc) *Acc {
	for len(leaves) > 1 {
		half := leaves[:len(leaves)/2]
		for i := range half {
			half[i] = merge(f, leaves[2*i], leaves[2*i+1])
		}
		leaves = half
	}
	return leaves[0]
}

// Levels returns the height of the merge tree over a number of splits, padded
// to a power of two.
func Levels(splits int) int { return bits.Len(uint(max(1, splits) - 1)) }
