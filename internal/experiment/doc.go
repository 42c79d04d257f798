// Package experiment owns the experiments of volley lab: which runs a table has (tables.go, jobs.go), how they are made
// and kept (runner.go), and how they are shown (report.go, html.go).
//
// A run is a child process, volley itself with arguments that a user can repeat; nothing of the engine is measured from
// within. It must not know how jobs, solvers or policies work.
package experiment
