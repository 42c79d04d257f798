// Package abss decides when a step ends: it accounts for the progress of every
// split's task and applies a synchronization policy (BSP, A-BSP after Algorithm
// 1 of the A-BSP paper, section 3.2, or a learned deadline). controller.go
// decides when a step is cut, config.go has policies and bounds, auto.go chooses
// how each pass is made.
//
// It is a state machine: Step takes an event and the time and returns
// decisions. It must not do I/O, start goroutines, read a clock or draw
// random numbers. It promises nothing to programs outside this module.
package abss
