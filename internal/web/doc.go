// Package web owns what a daemon shows over HTTP: only to read, over TLS or on loopback, to who may read, with bounds
// on what a client may take.
//
// It must not know what is shown, or who may read.
package web
