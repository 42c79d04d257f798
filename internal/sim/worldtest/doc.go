// Package worldtest owns what is asked of every simulated world: that its seeds are clean while all its faults fire,
// and that a seed is the same world each time.
//
// It is for tests, and knows no world.
package worldtest
