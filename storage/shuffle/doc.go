// Package shuffle owns shuffled rows: their blocks and the codec of these
// (blocks.go), the outputs of map tasks by partition (output.go), and the
// outputs that an executor keeps for readers (outputs.go).
//
// It must not know what rows mean, or which tasks read them.
package shuffle
