// Package rdd is the public dataset API: typed datasets, the plan they make,
// packs, steps and the session that runs them.
//
// A program declares its plan in Build, which runs on the driver's side and
// on every executor and must depend on its arguments only, and drives it in
// Run, an ordinary loop on the driver's side. Operations are package
// functions, since methods cannot have type parameters.
//
// The package must not know how a cluster is made: it asks a Cluster for
// steps and actions.
package rdd
