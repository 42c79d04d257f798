// Package solver owns the methods of minimizing an objective: each in a file of its own,
// behind the interface Solver, and all in the table of table.go. A new one is a file that
// describes it by a Method, and a line of that table.
//
// A solver is given what a pass over rows has found out, in the variables that are
// optimized, and moves the point where the next pass is made. What it keeps between steps
// is its own. It must not know of rows, losses, models or sessions.
package solver
