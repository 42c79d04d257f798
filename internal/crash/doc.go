// Package crash says what a loss of power may leave on a disk: it records the file
// operations of something (internal/disk), and makes the states that POSIX allows after
// each of them, for tests that read each state and want the old one or the new one.
//
// What is not synced may be there or not, each write and each name for itself, in any
// order: a name without its content, a file without its name, a write of which the half
// is there, a length without the bytes. A rename is there as a whole or not at all.
// What was there when the recording began is there for good. (The method is that of
// Pillai et al., All File Systems Are Not Created Equal, OSDI 2014.)
package crash
