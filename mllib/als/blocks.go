package als

import (
	"math"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// places says where the numbers of items are in their table. A block of items, of which there are as many as workers,
// has rows of its own; a row has several items, as one of a few numbers would take longer to ask for than to use.
type places struct{ blocks, rowsOfBlock, ofRow, numbers int }

// numbersOfRow is about how many numbers a row has.
const numbersOfRow = 1024

func placesOf(items, workers, numbers int) places {
	p := places{blocks: workers, ofRow: max(1, numbersOfRow/numbers), numbers: numbers}
	p.rowsOfBlock = ((items+workers-1)/workers + p.ofRow - 1) / p.ofRow
	return p
}

// shape returns how many rows and columns the table has.
func (p places) shape() (rows, columns int) { return p.blocks * p.rowsOfBlock, p.ofRow * p.numbers }

// of returns the row of an item, and the column of its first number.
func (p places) of(item int) (row, column int) {
	at := item / p.blocks
	return item%p.blocks*p.rowsOfBlock + at/p.ofRow, at % p.ofRow * p.numbers
}

// block is a worker's ratings of a block of items, and these, in order: with their numbers as the worker has them, and
// as it has read them.
type block struct {
	ratings   []kernel.Rating // a row is a user of the worker, a column one of the block's items
	items     []int
	rows      []int // of the table, that they are in
	now, read []float64
	columns   []int32
	by        []float64
	ends      []int32 // of ratings that are handed over together, if they are: those of users, whole
	squares   float64 // of the errors in the present clock
}

// present returns the block of a worker's clock.
func present(c *tables.Clock[descent, rdd.Point, ownUsers]) *block {
	all := c.Notes(func() any { return blocks(c) }).([]block)
	return &all[(c.Worker()+c.Number())%c.Workers()]
}

// usersOf returns how many of a worker's users a rating of the block stands for, of all blocks.
func (b *block) usersOf(c *tables.Clock[descent, rdd.Point, ownUsers]) float64 {
	return float64(len(c.State.IDs)) / math.Max(1, float64(len(b.ratings)*c.Workers()))
}

// part returns ratings by where they end.
func (b *block) part(from, to int) []kernel.Rating {
	first := int32(0)
	if from > 0 {
		first = b.ends[from-1]
	}
	return b.ratings[first:b.ends[to-1]]
}

// cut finds where ratings may be handed over: between users.
func (b *block) cut() {
	for at := 0; at < len(b.ratings); {
		at += together(b.ratings[at:])
		if at == len(b.ratings) || b.ratings[at].Row != b.ratings[at-1].Row {
			b.ends = append(b.ends, int32(at))
		}
	}
}

// blocks returns a worker's ratings by block of items: as many blocks as there are workers, so that in a clock no two
// workers have the same items (Gemulla et al. 2011). In a block they are in the order of users, whose numbers are then
// looked at one after the other; at random most of the time would go into waiting for memory.
func blocks(c *tables.Clock[descent, rdd.Point, ownUsers]) []block {
	out := make([]block, c.Workers())
	user := int32(0)
	for row := range c.Rows() {
		for i, item := range row.Indices {
			b := &out[int(item)%c.Workers()]
			b.ratings = append(b.ratings, kernel.Rating{Row: user, Column: item, Value: row.Values[i]})
		}
		user++
	}
	for i := range out {
		out[i].place(i, c.Param.places(c.Workers()))
	}
	return out
}

// place finds the items that a block's ratings are of, and has these name them by their place among them.
func (b *block) place(number int, p places) {
	at := make([]int32, p.rowsOfBlock*p.ofRow) // of the block's items
	for _, x := range b.ratings {
		at[int(x.Column)/p.blocks] = 1
	}
	for i, rated := range at {
		if rated == 0 {
			continue
		}
		item := i*p.blocks + number
		at[i] = int32(len(b.items))
		b.items = append(b.items, item)
		if row, _ := p.of(item); len(b.rows) == 0 || row != b.rows[len(b.rows)-1] {
			b.rows = append(b.rows, row)
		}
	}
	for i := range b.ratings {
		b.ratings[i].Column = at[int(b.ratings[i].Column)/p.blocks]
	}
	b.cut()
}

// load reads the numbers of the block's items.
func (b *block) load(p places, items *tables.Access[float64]) {
	items.Prefetch(b.rows...) // those of the last clock were others
	b.read = b.read[:0]
	for _, item := range b.items {
		row, column := p.of(item)
		b.read = append(b.read, items.Row(row).Values[column:column+p.numbers]...)
	}
	b.now = append(b.now[:0], b.read...)
}

// tell adds to the table what has changed.
func (b *block) tell(p places, items *tables.Access[float64]) {
	next := 0
	for _, row := range b.rows {
		b.columns, b.by = b.columns[:0], b.by[:0]
		for ; next < len(b.items); next++ {
			at, column := p.of(b.items[next])
			if at != row {
				break
			}
			for k := range p.numbers {
				i := next*p.numbers + k
				b.columns, b.by = append(b.columns, int32(column+k)), append(b.by, b.now[i]-b.read[i])
			}
		}
		items.IncCells(row, b.columns, b.by)
	}
}
