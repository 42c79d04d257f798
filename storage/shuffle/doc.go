// Package shuffle owns rows that move between tasks: the blocks that they lie in, the
// outputs of map tasks by partition, and those that an executor keeps for others.
//
// It must not know what rows mean, or who reads them.
package shuffle
