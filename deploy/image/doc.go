// Command image builds the OCI image of Volley from scratch, without Docker: the static binary, a user of its own, a
// temporary directory. The same sources make the same digest.
//
// It must add nothing that the binary does not need.
package main
