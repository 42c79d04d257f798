// Package arrowstream owns how files of any format are read as messages of an Arrow IPC stream, the schema first, and
// how such messages are written into files that readers of datasets read.
//
// What Arrow files have is passed on as it is, by its lengths alone; Parquet is decoded by a child process (ADR 2). It
// must not know who reads, or over which protocol.
package arrowstream
