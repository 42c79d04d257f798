package rdd

import "fmt"

// Descending sorts in descending order.
func Descending() ShuffleOption { return func(o *shuffleOptions) { o.descending = true } }

// mostPartitions bounds what a shuffle may be asked to make.
const mostPartitions = 1 << 14

// defaultPartitions is how many partitions a shuffle makes, unless told, of
// little data; of more it makes one for each partitionBytes. Neither depends on
// the cluster, so that every node has the same plan.
const (
	defaultPartitions = 16
	partitionBytes    = 64 << 20
)

// ShuffleOption is an option of an operation that moves rows.
type ShuffleOption func(*shuffleOptions)

type shuffleOptions struct {
	partitions int
	descending bool
}

// Partitions sets the number of partitions of a shuffle's result. Without it
// there are 16, or more where there is much data, and neighbouring ones are
// joined where they turn out to be small.
func Partitions(n int) ShuffleOption { return func(o *shuffleOptions) { o.partitions = n } }

func sortOptionsOf(g *Graph, op string, options []ShuffleOption) shuffleOptions {
	var o shuffleOptions
	for _, set := range options {
		set(&o)
	}
	if o.partitions != 0 {
		o.partitions = g.partitions(op, o.partitions)
	}
	return o
}

// shuffleOptionsOf returns the options of an operation whose result has no order.
func shuffleOptionsOf(g *Graph, op string, options []ShuffleOption) shuffleOptions {
	o := sortOptionsOf(g, op, options)
	if o.descending {
		g.fail("%s: its result has no order that Descending could turn round", op)
	}
	return o
}

func (o shuffleOptions) String() string {
	text := "as many partitions as it takes"
	if o.partitions > 0 {
		text = fmt.Sprint(o.partitions, " partitions")
	}
	if o.descending {
		text = "descending, " + text
	}
	return text
}

// count returns the number of partitions of a shuffle of some nodes.
func (o shuffleOptions) count(g *Graph, inputs ...int) func() int {
	return func() int {
		if o.partitions > 0 {
			return o.partitions
		}
		var bytes int64
		for _, in := range inputs {
			bytes += max(0, g.bytesOf(in))
		}
		return int(min(mostPartitions, max(defaultPartitions, bytes/partitionBytes)))
	}
}
