// Package shuffle owns shuffled rows: their blocks, the outputs of map tasks by
// partition, and the outputs that an executor keeps for readers.
//
// It must not know what rows mean, or which tasks read them.
package shuffle
