// Stores is a program for tests: servers that speak the protocols of S3 and of Google Cloud Storage, in memory. It is a
// module of its own, so that the product does not depend on them.
//
// It prints where they listen, as a line of JSON, and ends when its input does.
package main
