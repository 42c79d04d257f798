// Package version owns which processes may work together: the versions of the protocol that this module speaks, and how
// far apart versions of the module may be, so that a cluster is upgraded one process at a time.
//
// It must do no I/O, and know no message.
package version
